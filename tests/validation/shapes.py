# SPDX-License-Identifier: GPL-2.0-only
"""Simulated curves beside what the FxMark paper says of the same workload and file system.

.venv/bin/python -m tests.validation.shapes results/simulated-tmpfs results/simulated-xfs ...

Prints, as Markdown, a row for each workload and a column for each file system: how the rate of the
most cores stands to that of one core, as a part of ideal; where the peak is, if it is before the
most cores, with the slope behind it; and `!` where the paper has another shape. Then how many
shapes trivial predictors have right, and of each `!`, where the cycles went and the hottest lines.
Results with a security module are refused, because the paper's kernel had none.
`docs/scripts/sides.py` scores simulated curves beside measured ones.
"""

import argparse
from pathlib import Path

from fscale.analysis.curves import Curve, arrange
from fscale.analysis.hot import hot, rows
from fscale.analysis.paper.agreement import Agreement, compare_with_paper, right_shapes
from fscale.analysis.paper.statements import statements
from fscale.analysis.reader import load
from fscale.analysis.summary import summarise


def told(one: Agreement) -> str:
    """Its figures."""
    at = f", peak {one.ours.peak}, then {one.ours.behind}" if one.ours.behind else ""
    return f"{one.ours.part:.2f}{at}"


def main() -> None:
    """Print the table and what explains it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="+")
    table: dict[tuple[str, str], Agreement] = {}
    for path in parser.parse_args().results:
        results = load(path)
        if results.run.machine.labels:
            parser.error(f"{path}: a security module was on, and the paper's kernel had none")
        points = summarise(results.scored)
        for page in arrange(points, list(results.run.filesystems), results.descriptors):
            for one in compare_with_paper(page):
                table[one.panel.workload, one.curve.filesystem] = one
    filesystems = list(dict.fromkeys(fs for _, fs in table))
    print(f"| workload | {' | '.join(filesystems)} |\n|---|{'---|' * len(filesystems)}")
    for workload in dict.fromkeys(workload for workload, _, _ in statements()):
        if any(known == workload for known, _ in table):
            found = [table.get((workload, fs)) for fs in filesystems]
            print(f"| {workload} | {' | '.join(cell(one) for one in found)} |")
    print(f"\n| predictor of the shape | right, of {len(table)} |\n|---|--:|")
    for predictor, right in right_shapes(list(table.values())).items():
        print(f"| {predictor} | {right} |")
    for (workload, fs), one in table.items():
        mark = "!" if other(one) else "="
        says = f"{workload} {fs} x{one.ours.cores}: paper: {one.paper.shape}, here {told(one)}"
        print(f"\n{mark} {says}\n{cause(one.curve)}")


def cell(one: Agreement | None) -> str:
    """In the table."""
    return "" if one is None else f"{told(one)}{' !' if other(one) else ''}"


def other(one: Agreement) -> bool:
    """Whether the shape is not the paper's."""
    return one.ours.shape != one.paper.shape


def cause(curve: Curve) -> str:
    """Where the cycles of the point with the most cores went, and its hottest lines."""
    (row,) = rows([curve.top])
    shares = ", ".join(f"{name} {share:.0%}" for name, share in row.shares.items())
    lines = [
        f"  {line.share:.0%} {line.name}: "
        f"{', '.join(dict.fromkeys(user.function for user in line.users[:5]))}"
        for line in hot(curve.top)[:4]
    ]
    return "\n".join([f"  {shares}", *lines])


if __name__ == "__main__":
    main()
