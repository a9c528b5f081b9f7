# SPDX-License-Identifier: GPL-2.0-only
"""The errors of earlier predictions, from which intervals are taken.

`python -m docs.scripts.record` writes record.json from docs/results/data.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

FILE = Path(__file__).with_name("record.json")
MISFIT_LEVEL = 0.95
"""a curve whose misfit is larger than this share of the record's is not predicted"""

Target = Literal["this machine", "another machine"]
"""where more cores are: on the measured machine, or on another one"""
Quantity = Literal["speedup", "rate"]


@dataclass(frozen=True)
class Width:
    """Half of an interval, as a natural logarithm."""

    log: float
    recorded: bool
    """whether predictions as far as this one were judged; if not, the width is extended"""


@dataclass(frozen=True)
class Record:
    """Half-widths of predictions for a target, and misfits."""

    widths: Mapping[Quantity, Mapping[int, Mapping[int, float]]]
    """quantity -> anchor -> predicted core count -> half-width"""
    misfits: Mapping[int, float]
    """anchor -> size of a misfit that MISFIT_LEVEL of the curves do not exceed"""

    def width(self, quantity: Quantity, anchor: int, cores: int) -> Width:
        """The half-width for a prediction of `cores` from a curve measured up to `anchor`.

        A prediction is not known better than one that is less far away. Beyond the record the
        farthest width grows with the logarithm of the distance, as if each doubling of the cores
        added the same error; the largest anchor below one that the record lacks stands for it.
        """
        used = self._known(anchor)
        judged = self.widths[quantity][used]
        asked, last = cores * used / anchor, max(judged)
        if asked > last:
            far = math.log(asked / used) / math.log(last / used)
            return Width(max(*judged.values(), judged[last] * far), recorded=False)
        next_judged = min(count for count in judged if count >= asked)
        log = max(width for count, width in judged.items() if count <= next_judged)
        return Width(log, recorded=used == anchor)

    def misfit(self, anchor: int) -> float:
        """The largest misfit with which a curve is predicted."""
        return self.misfits[self._known(anchor)]

    def _known(self, anchor: int) -> int:
        return max(count for count in self.misfits if count <= max(anchor, min(self.misfits)))


@cache
def records() -> dict[Target, Record]:
    """The record of each target."""
    return {target: _parsed(data) for target, data in json.loads(FILE.read_text()).items()}


def _parsed(data: dict[str, Any]) -> Record:
    widths = {
        quantity: {int(at): {int(n): w for n, w in row.items()} for at, row in rows.items()}
        for quantity, rows in data["widths"].items()
    }
    return Record(widths, {int(at): value for at, value in data["misfits"].items()})
