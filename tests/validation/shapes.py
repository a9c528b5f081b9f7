# SPDX-License-Identifier: GPL-2.0-only
"""Simulated curves beside what the FxMark paper says of the same workload and file system.

.venv/bin/python -m tests.validation.shapes results/simulated-tmpfs results/simulated-xfs ...

Prints, as Markdown, a row for each workload and a column for each file system: how the rate of the
most cores stands to that of one core, as a part of ideal; where the peak is, if it is before the
most cores; and `!` where the paper has another shape. Then, of each `!`, where the cycles went and
the hottest lines.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from analysis.curves import Curve, arrange
from analysis.hot import hot, rows
from analysis.reader import load
from analysis.summary import summarise

Shape = Literal["scales", "does not"]

# Section 5.1 and 5.2 of the paper; of MRPL no sentence, only figure 6.
PAPER: dict[str, tuple[Shape, tuple[str, ...]]] = {
    # The shape of most, and the file systems that have the other one.
    "DRBL": ("scales", ()),
    "DRBM": ("scales", ("xfs",)),
    "DRBH": ("does not", ()),
    "DWOL": ("scales", ("ext4", "btrfs", "f2fs")),
    "DWOM": ("does not", ()),
    "DWAL": ("does not", ()),
    "DWTL": ("does not", ()),
    "DWSL": ("does not", ("tmpfs",)),
    "MRPL": ("scales", ()),
    "MRPM": ("does not", ()),
    "MRPH": ("does not", ()),
    "MRDL": ("scales", ("btrfs",)),
    "MRDM": ("does not", ()),
    "MWCL": ("does not", ()),
    "MWUL": ("does not", ()),
    "MWCM": ("does not", ()),
    "MWUM": ("does not", ()),
    "MWRL": ("does not", ()),
    "MWRM": ("does not", ()),
}
# Of ideal. Between them a curve is neither.
SCALES, DOES_NOT = 0.7, 0.4
# A peak is one where the rate has fallen to this part of it.
FALLEN = 0.9


def paper(workload: str, filesystem: str) -> Shape:
    """What the paper says."""
    most, others = PAPER[workload]
    if filesystem not in others:
        return most
    return "does not" if most == "scales" else "scales"


@dataclass(frozen=True)
class Found:
    """A simulated curve in figures."""

    part: float
    peak: int | None
    cores: int

    @property
    def shape(self) -> Shape | None:
        """None where it is neither."""
        if self.part >= SCALES:
            return "scales"
        return "does not" if self.part <= DOES_NOT else None

    def __str__(self) -> str:
        at = f", peak {self.peak}" if self.peak else ""
        return f"{self.part:.2f}{at}"


def found(curve: Curve) -> Found | None:
    """Of a curve that begins at one core."""
    if curve.base is None or (top := curve.top_speedup) is None:
        return None
    fell = curve.top.median < FALLEN * curve.peak.median
    cores = curve.top.key.cores
    return Found(top.value / cores, curve.peak.key.cores if fell else None, cores)


def main() -> None:
    """Print the table and what explains it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="+")
    table: dict[tuple[str, str], Found] = {}
    causes: dict[tuple[str, str], str] = {}
    for path in parser.parse_args().results:
        results = load(path)
        points = summarise(results.scored)
        for page in arrange(points, list(results.run.filesystems), results.descriptors):
            for panel in page.panels:
                for curve in panel.curves:
                    one = found(curve)
                    if one is None or curve.side or panel.workload not in PAPER:
                        continue
                    table[panel.workload, curve.filesystem] = one
                    causes[panel.workload, curve.filesystem] = cause(curve)
    filesystems = list(dict.fromkeys(fs for _, fs in table))
    print(f"| workload | {' | '.join(filesystems)} |\n|---|{'---|' * len(filesystems)}")
    for workload in PAPER:
        cells = []
        for fs in filesystems:
            one = table.get((workload, fs))
            other = one and one.shape != paper(workload, fs)
            cells.append(f"{one}{' !' if other else ''}" if one else "")
        print(f"| {workload} | {' | '.join(cells)} |")
    for (workload, fs), one in table.items():
        mark = "!" if one.shape != paper(workload, fs) else "="
        print(f"\n{mark} {workload} {fs} x{one.cores}: paper: {paper(workload, fs)}, here {one}")
        print(causes[workload, fs])


def cause(curve: Curve) -> str:
    """Where the cycles of the point with the most cores went, and its hottest lines."""
    (row,) = rows([curve.top])
    shares = ", ".join(f"{name} {share:.0%}" for name, share in row.shares.items())
    lines = [
        f"  {line.share:.0%} {line.line.object}: "
        f"{', '.join(dict.fromkeys(user.function for user in line.line.users[:5]))}"
        for line in hot(curve.top)[:4]
    ]
    return "\n".join([f"  {shares}", *lines])


if __name__ == "__main__":
    main()
