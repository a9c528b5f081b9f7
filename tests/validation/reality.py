# SPDX-License-Identifier: GPL-2.0-only
"""What more cores bring, simulated and measured: the same curves of this machine, side by side.

fscale simulate --machine small --cores 1,2 --seeds 3 --output results/simulated
fscale run quick --cores 1,2 --repetitions 5 --output results/measured
.venv/bin/python -m tests.validation.reality results/simulated results/measured

Prints, as Markdown, a row for each workload, file system and core count: the rate by that of one
core, from both, each with the range of its repetitions, and how far the simulated one is off. The
rates of one core are not compared: no simulated rate is calibrated
(docs/design/simulator-evidence.md).
"""

import argparse
import statistics
from collections.abc import Iterator
from pathlib import Path

from scipy.stats import spearmanr

from fscale.analysis.curves import arrange
from fscale.analysis.reader import load
from fscale.analysis.summary import Ratio, summarise

NEAR = 0.15
Subject = tuple[str, str, int]


def ratios(directory: Path) -> Iterator[tuple[Subject, Ratio]]:
    """What the curves that begin at one core bring, by workload, file system and cores."""
    results = load(directory)
    points = summarise(results.scored)
    for page in arrange(points, list(results.run.filesystems), results.descriptors):
        for panel in page.panels:
            for curve in panel.curves:
                for point in curve.points:
                    if (ratio := curve.speedup(point)) is not None:
                        yield (panel.workload, curve.filesystem, point.key.cores), ratio


def told(ratio: Ratio) -> str:
    """A ratio with the range of the repetitions."""
    return f"{ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"


def main() -> None:
    """Print the table and how well both agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("simulated", type=Path)
    parser.add_argument("measured", type=Path)
    given = parser.parse_args()
    simulated, measured = (dict(ratios(path)) for path in (given.simulated, given.measured))
    both = [subject for subject in simulated if subject in measured]
    errors = [simulated[subject].value / measured[subject].value - 1 for subject in both]
    print("| workload | file system | cores | simulated | measured | error |")
    print("|---|---|--:|--:|--:|--:|")
    for subject, error in zip(both, errors, strict=True):
        row = [*map(str, subject), told(simulated[subject]), told(measured[subject])]
        print(f"| {' | '.join(row)} | {error:+.0%} |")
    near = sum(abs(error) <= NEAR for error in errors)
    ranks = spearmanr([simulated[s].value for s in both], [measured[s].value for s in both])
    print(f"\nmedian of the errors without their signs: {statistics.median(map(abs, errors)):.0%}")
    print(f"within {NEAR:.0%}: {near} of {len(errors)}")
    print(f"rank correlation (Spearman): {ranks.statistic:.2f}")


if __name__ == "__main__":
    main()
