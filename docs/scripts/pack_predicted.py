# SPDX-License-Identifier: GPL-2.0-only
"""Predict curves of docs/results/data on machines that nobody measured, and pack the predictions.

    python -m docs.scripts.pack_predicted DAY > docs/results/data/predicted-curves.json

DAY is the day of the registration. Predictions that are registered are not written again when the
rule or the record changes: a new rule registers a new file.
"""

import math
import sys
from collections.abc import Iterator
from typing import Any

from docs.scripts import evidence
from docs.scripts.pack import text
from docs.scripts.predictors import AMDAHL, FROM_TWO, MEAN, SCALED, SIMULATED
from fscale.analysis.prediction import rule
from fscale.analysis.prediction.record import records

RULE = (
    "The simulated curve, multiplied so that it meets the measured throughput of two cores, and at "
    "most linear. The interval is the 80% one for another machine, from "
    "fscale/analysis/prediction/record.json of this revision; beyond 16 cores it is extended, as "
    "if each doubling of the cores added the same error."
)
SEEN = (
    "all curves of up to 16 cores in docs/results/data, from which the rule was chosen among some "
    "twenty, and the record taken; FxMark's paper, which has 80 cores of 2011 and Linux 4.2; no "
    "other curve of these workloads beyond 16 real cores"
)
AT = 2
STARTS = (
    ("quick-two-cores", "simulated-speed-ups", (32, 64, 80)),
    ("quick-two-cores", "simulated-xfs-btrfs", (32, 64, 80)),
    ("held-out-sixteen-cores", "simulated-today", (32,)),
)
"""measured at two cores; simulated; core counts that nobody has measured"""
OTHERS = (SIMULATED, AMDAHL, MEAN)


def packed(day: str) -> dict[str, Any]:
    """The predictions as one JSON object.

    Returns:
        `predictions`: [measured data, workload, file system, cores, speed-up, its lower and upper
        bound, speed-ups of OTHERS, whether the simulated and the measured two cores differ by more
        than the record allows].
    """
    return {
        "title": "Curves of many cores, predicted",
        "registered": day,
        "rule": RULE,
        "seen": SEEN,
        "starts": [list(start[:2]) for start in STARTS],
        "others": list(OTHERS),
        "predictions": [row for start in STARTS for row in _rows(*start)],
    }


def _rows(name: str, simulation: str, counts: tuple[int, ...]) -> Iterator[list[Any]]:
    simulated = evidence.SIMULATIONS[simulation]()
    record = records()["another machine"]
    for case in evidence.without_truth(evidence.measured(name), simulated):
        doubtful = abs(rule.misfit(case.measured, case.simulated, AT)) > record.misfit(AT)
        for cores in counts:
            width = math.exp(record.width("speedup", AT, cores).log)
            value = FROM_TWO[SCALED](case, cores)
            others = [_short(FROM_TWO[other](case, cores)) for other in OTHERS]
            bounds = [_short(value), _short(value / width), _short(value * width)]
            yield [name, *case.name, cores, *bounds, *others, int(doubtful)]


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def main() -> None:
    """Write to standard output."""
    sys.stdout.write(text(packed(sys.argv[1]), "predictions"))


if __name__ == "__main__":
    main()
