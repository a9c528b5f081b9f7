# SPDX-License-Identifier: GPL-2.0-only
"""What predictions of many cores are worth, from docs/results/data; all tables as Markdown.

.venv/bin/python -m tests.validation.predicted
.venv/bin/python -m tests.validation.predicted --measured results/large

With `--measured` the results of a larger machine, which has to have one core as well, judge the
predictions that docs/results/data/predicted-curves.json registered.
"""

import argparse
import json
import statistics
from pathlib import Path

from scipy.stats import binomtest

from docs.scripts import evidence, predicted
from fscale.analysis.conclusion import pages_of
from fscale.analysis.prediction.rule import LEVEL
from fscale.analysis.reader import load

REGISTERED = evidence.DATA / "predicted-curves.json"


def speedups(directory: Path) -> dict[tuple[str, str, int], float]:
    """The measured speed-ups over one core by workload, file system and cores."""
    return {
        (panel.workload, curve.filesystem, point.key.cores): ratio.value
        for page in pages_of(load(directory))
        for panel in page.panels
        if not panel.variant
        for curve in panel.curves
        for point in curve.points
        if (ratio := curve.speedup(point)) is not None
    }


def verdict(directory: Path) -> list[str]:
    """The registered predictions beside a measurement."""
    found = predicted.judged(json.loads(REGISTERED.read_text()), speedups(directory))
    held = [bool(one) for one in found.pop("held", [])]
    if not held:
        return [f"{directory} has no point that was registered"]
    lines = ["| predictor | n | median error | signed mean |", "|---|--:|--:|--:|"]
    for name, errors in found.items():
        error, signed = statistics.median(map(abs, errors)), statistics.fmean(errors)
        lines.append(f"| {name} | {len(errors)} | {error:.2f} | {signed:+.2f} |")
    p = binomtest(sum(held), len(held), LEVEL).pvalue
    lines += ["", f"{sum(held)} of {len(held)} intervals hold; {LEVEL:.0%} should (p = {p:.2g}"]
    lines[-1] += ", as if curves and core counts were independent)"
    return lines


def main() -> None:
    """Print the tables, or the verdict on what was registered."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measured", type=Path)
    given = parser.parse_args()
    print("\n".join(verdict(given.measured) if given.measured else predicted.tables()))


if __name__ == "__main__":
    main()
