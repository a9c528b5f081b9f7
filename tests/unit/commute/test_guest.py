# SPDX-License-Identifier: GPL-2.0-only
"""What a guest prints is checked against the model."""

from dataclasses import replace
from typing import Any

import pytest

from fscale.commute import guest, script
from fscale.commute.generate import generate
from fscale.sim.boot import PointResult
from fscale.sim.output import Conflicts
from fscale.sim.plan import GuestPoint
from tests.support import synthetic

TESTS = list(generate("link", "unlink"))[:3]
NONE = Conflicts(type="conflicts", pair=0, lost=0, lines=[])
# Each test as the interpreter prints it: without the state at the end.
PRINTED = "".join(f"{line}\n" for test in TESTS for line in script.outcome(test, "ba")[:4])
GOOD = PointResult(GuestPoint(0, synthetic.key(), 1), conflicts=[NONE] * 3, bench=PRINTED)


def test_a_boot_as_by_the_model_is_good() -> None:
    guest._check(GOOD, TESTS, "ba")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"status": 1, "stderr": "d0/n0: File exists"}, "3 of 3 .*File exists"),
        ({"conflicts": [NONE] * 2}, "2 of 3 tests were executed"),
        ({"conflicts": [NONE, NONE, NONE.model_copy(update={"lost": 1})]}, "more memory"),
        ({"bench": PRINTED.replace("ENOENT", "EIO", 1)}, "returned .*EIO.*, not .*ENOENT"),
    ],
)
def test_any_other_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(guest.InterpreterError, match=reason):
        guest._check(replace(GOOD, **changes), TESTS, "ba")
