# SPDX-License-Identifier: GPL-2.0-only
"""Compares the length of timed windows with the commit interval of the file system.

A workload that uses up a stock has a window for each stock. If each window is shorter than the
interval between two commits, the cost of commits and write-back may fall into none of them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from fscale.model.latency import MIN_BEYOND, PERCENTILES, beyond, recorded_share, represents_cell
from fscale.model.results import Cell, Mounted, Run
from fscale.model.words import plural

MAX_BACKLOG = 0.01
"""Largest share of the operations that may wait at the end of a window.

Otherwise more arrived than the file system served, or it paused at the end.
"""
MIN_BACKLOG = 10
"""Operations that may wait in any case: fewer make it a matter of chance."""


@dataclass(frozen=True)
class WindowLengths:
    """Lengths of the windows of a cell in seconds."""

    longest: float
    median: float


def windows_of(cell: Cell) -> WindowLengths | None:
    """The windows of a cell; None for cells in turns, for counts, and if not recorded."""
    if cell.bench is None or cell.slices is not None or cell.simulation is not None:
        return None
    lengths = [window.seconds for window in cell.bench.windows]
    return WindowLengths(max(lengths), median(lengths)) if lengths else None


def commit_seconds(filesystem: Mapping[str, Any], mounted: Mounted | None = None) -> float | None:
    """Seconds between two commits of a file system in a run; None: not known, or no commits.

    The effective mount option commit=N has priority, then the requested one (0 means the default),
    then the key commit_seconds of the file system.
    """
    configured = filesystem.get("commit_seconds")
    seconds = float(configured) if isinstance(configured, int | float) and configured > 0 else None
    mounted_with = filesystem.get("mount_options") or ()
    for options in (*mounted_with, *(mounted.options if mounted else ())):
        for option in str(options).split(","):
            name, _, value = option.partition("=")
            if name == "commit" and value.isdecimal() and int(value):
                seconds = float(value)
    return seconds


def _interval(run: Run, cell: Cell) -> float | None:
    return commit_seconds(run.filesystems.get(cell.key.filesystem, {}), cell.mount)


def warnings(run: Run, cells: Iterable[Cell]) -> list[str]:
    """Warnings about scored cells whose windows have no commit, or whose latencies do not suffice.

    Cells whose planned duration is too short for a commit are reported by `without_commit`.
    """
    scored = [c for c in cells if c.status == "ok" and c.key.profile is None]
    return [*_cut_short(run, scored), *_partial(scored), *_too_few(scored), *_overloaded(scored)]


def _cut_short(run: Run, scored: Sequence[Cell]) -> list[str]:
    groups: dict[tuple[str, float], dict[str, list[WindowLengths]]] = defaultdict(dict)
    for cell in scored:
        every = _interval(run, cell)
        windows = windows_of(cell)
        if every and windows and windows.longest < every <= cell.key.duration:
            group = groups[cell.key.filesystem, every]
            group.setdefault(cell.key.workload, []).append(windows)
    sentences = []
    for (filesystem, every), workloads in groups.items():
        lengths = [windows for own in workloads.values() for windows in own]
        sentences.append(
            f"{filesystem} commits every {every:g} s, but in {len(lengths)} cells of "
            f"{', '.join(workloads)} all windows were shorter, because the stock was used up: the "
            f"longest lasted {max(w.longest for w in lengths):.2g} s, half of them less than "
            f"{median(w.median for w in lengths):.2g} s. The cost of commits and write-back may be "
            "missing there"
        )
    return sentences


def _partial(scored: Sequence[Cell]) -> list[str]:
    shares: dict[str, list[float]] = defaultdict(list)
    for cell in scored:
        if cell.latency is not None and not represents_cell(cell.latency):
            shares[cell.key.workload].append(recorded_share(cell.latency) or 0.0)
    return [
        f"{workload}: latency percentiles are missing in {len(known)} cells, because the recorded "
        f"latencies cover only {min(known):.0%} to {max(known):.0%} of their operations"
        for workload, known in shares.items()
    ]


def _too_few(scored: Sequence[Cell]) -> list[str]:
    counts: dict[tuple[str, str], list[int]] = defaultdict(list)
    for cell in scored:
        known = (cell.latency or {}).get("count")
        if cell.latency is None or not isinstance(known, int) or not represents_cell(cell.latency):
            continue
        for metric, percentile in PERCENTILES.items():
            if metric != "max" and known and beyond(known, percentile) < MIN_BEYOND:
                counts[cell.key.workload, metric].append(known)
    return [
        f"{workload}: {metric} of the latency is left out in {len(ops)} cells, because fewer than "
        f"{MIN_BEYOND} of their operations ({min(ops)} or more) lie beyond it"
        for (workload, metric), ops in counts.items()
    ]


def not_begun(cell: Cell) -> float:
    """The share of the due operations that had not begun when the window ended; 0 if few had."""
    backlog = (cell.bench.backlog if cell.bench else None) or 0
    share = backlog / (backlog + cell.ops) if backlog else 0.0
    return share if backlog > MIN_BACKLOG and share > MAX_BACKLOG else 0.0


def _overloaded(scored: Sequence[Cell]) -> list[str]:
    waiting: dict[tuple[str, str], list[float]] = defaultdict(list)
    for cell in scored:
        if share := not_begun(cell):
            waiting[cell.key.load, cell.key.filesystem].append(share)
    return [
        f"{load} on {filesystem}: the load exceeded what the file system serves, or a pause came "
        f"last, in {plural(len(shares), 'cell')}: {min(shares):.0%} to {max(shares):.0%} of the "
        "operations that were due had not begun when the window ended"
        for (load, filesystem), shares in waiting.items()
    ]


def without_commit(run: Run, cells: Collection[Cell]) -> dict[str, float]:
    """File system -> commit interval, if all its cells were planned to be shorter."""
    intervals = {}
    for name in run.filesystems:
        measured = [c for c in cells if c.key.filesystem == name and windows_of(c)]
        every = [seconds for c in measured if (seconds := _interval(run, c))]
        if every and max(c.key.duration for c in measured) < min(every):
            intervals[name] = min(every)
    return intervals
