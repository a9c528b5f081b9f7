# SPDX-License-Identifier: GPL-2.0-only
"""How long the timed windows of cells were, against how often a file system commits.

A workload that uses up a stock has a window for each stock. What a commit or write-back costs falls
into none of them where each is shorter than the interval between two commits.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from fscale.model.latency import covered, trusted
from fscale.model.results import Cell, Mounted, Run


@dataclass(frozen=True)
class Windows:
    """Seconds that the windows of a cell lasted without a break."""

    longest: float
    median: float


def windows_of(cell: Cell) -> Windows | None:
    """Those of a cell that was timed as a whole; None of turns, of counts, and where not known."""
    if cell.bench is None or cell.slices is not None or cell.simulation is not None:
        return None
    lengths = [window.seconds for window in cell.bench.windows]
    return Windows(max(lengths), median(lengths)) if lengths else None


def commit_seconds(filesystem: Mapping[str, Any], mounted: Mounted | None = None) -> float | None:
    """Seconds between two commits of a file system as a run records it; None: not known, or none.

    The mount option commit=N in effect says so, else the one that was asked for, 0 being the
    default, else the file system's own key.
    """
    own = filesystem.get("commit_seconds")
    found = float(own) if isinstance(own, int | float) and own > 0 else None
    asked = filesystem.get("mount_options") or ()
    for options in (*asked, *(mounted.options if mounted else ())):
        for option in str(options).split(","):
            name, _, value = option.partition("=")
            if name == "commit" and value.isdecimal() and int(value):
                found = float(value)
    return found


def _interval(run: Run, cell: Cell) -> float | None:
    return commit_seconds(run.filesystems.get(cell.key.filesystem, {}), cell.mount)


def warnings(run: Run, cells: Iterable[Cell]) -> list[str]:
    """Of which scored cells the windows, or the latencies, do not show what they seem to.

    `without_commit` has the cells that were not to last for so long.
    """
    scored = [c for c in cells if c.status == "ok" and c.key.profile is None]
    return [*_cut_short(run, scored), *_partial(scored)]


def _cut_short(run: Run, scored: Sequence[Cell]) -> list[str]:
    groups: dict[tuple[str, float], dict[str, list[Windows]]] = defaultdict(dict)
    for cell in scored:
        every = _interval(run, cell)
        windows = windows_of(cell)
        if every and windows and windows.longest < every <= cell.key.duration:
            group = groups[cell.key.filesystem, every]
            group.setdefault(cell.key.workload, []).append(windows)
    said = []
    for (filesystem, every), workloads in groups.items():
        found = [windows for own in workloads.values() for windows in own]
        said.append(
            f"{filesystem} commits every {every:g} s, and no window of {', '.join(workloads)} "
            f"holds a commit in {len(found)} cells: the longest lasted for "
            f"{max(w.longest for w in found):.2g} s, half of them for less than "
            f"{median(w.median for w in found):.2g} s, as the stock was used up then. What commits "
            f"and write-back cost is missing there"
        )
    return said


def _partial(scored: Sequence[Cell]) -> list[str]:
    shares: dict[str, list[float]] = defaultdict(list)
    for cell in scored:
        if cell.latency is not None and not trusted(cell.latency):
            shares[cell.key.workload].append(covered(cell.latency) or 0.0)
    return [
        f"{workload}: quantiles of latency are not known in {len(own)} cells, as latencies cover "
        f"{min(own):.0%} to {max(own):.0%} of their operations"
        for workload, own in shares.items()
    ]


def without_commit(run: Run, cells: Collection[Cell]) -> dict[str, float]:
    """File system -> its commit interval, where no cell was to last for so long."""
    found = {}
    for name in run.filesystems:
        own = [c for c in cells if c.key.filesystem == name and windows_of(c)]
        every = [seconds for c in own if (seconds := _interval(run, c))]
        if every and max(c.key.duration for c in own) < min(every):
            found[name] = min(every)
    return found
