# SPDX-License-Identifier: GPL-2.0-only
"""Write the record of errors from which `fscale predict` takes its intervals.

python -m docs.scripts.record
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from docs.scripts import evidence
from docs.scripts.evidence import Case
from fscale.analysis.prediction import rule
from fscale.analysis.prediction.record import FILE, MISFIT_LEVEL, Quantity, Target


def record() -> dict[Target, Any]:
    """The contents of fscale/analysis/prediction/record.json."""
    return {
        "this machine": _recorded(evidence.same_machine(), (2, 4, 8)),
        "another machine": _recorded(evidence.of_another(), (2,)),
    }


def _recorded(cases: Sequence[Case], anchors: Sequence[int]) -> dict[str, Any]:
    of: dict[Quantity, Callable[[Case, int, int], float]] = {
        "speedup": lambda case, at, n: case.error(
            rule.speedup(case.measured, case.simulated, at, n), n
        ),
        "rate": lambda case, at, n: case.rate_error(
            rule.scaled(case.measured, case.simulated, at, n), n
        ),
    }
    return {
        "widths": {
            quantity: {
                at: {n: _width(error(case, at, n) for case in cases) for n in _beyond(at)}
                for at in anchors
            }
            for quantity, error in of.items()
        },
        "misfits": {
            at: _width(
                (rule.misfit(case.measured, case.simulated, at) for case in cases), MISFIT_LEVEL
            )
            for at in anchors
        },
    }


def _width(found: Iterable[float], level: float = rule.LEVEL) -> float:
    return round(rule.half_width(found, level), 3)


def _beyond(at: int) -> list[int]:
    return [cores for cores in (4, 8, 16) if cores > at]


def record_text() -> str:
    """The text of the record's file."""
    return json.dumps(record(), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(record_text())
