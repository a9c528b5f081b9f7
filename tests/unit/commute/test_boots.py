# SPDX-License-Identifier: GPL-2.0-only
"""What a boot leaves is checked and kept; a boot that there is is not made again."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fscale.commute import campaign, guest, script
from fscale.commute.conflicts import Conflict
from fscale.commute.generate import generate
from fscale.model.errors import FscaleError
from fscale.sim.boot import PointResult
from fscale.sim.output import Conflicts
from fscale.sim.plan import GuestPoint
from tests.support import synthetic

TESTS = list(generate("link", "unlink"))[:3]
SIZES = {("link", "unlink"): 130}
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


def test_boots_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[str] = []

    def execute(_guest: Any, tests: Any, order: str, _seed: int, _cpu: int) -> list[list[Conflict]]:
        orders.append(order)
        rwsem = Conflict("i_rwsem", False, ("down_write",), ("up_write",))
        return [[rwsem], [rwsem] if order == "ab" else [], []]

    def measure(identity: str) -> Any:
        booted: Any = SimpleNamespace(identity=identity, kernel=SimpleNamespace(release="6.1"))
        return campaign.measure(booted, "tmpfs", TESTS, SIZES, 2, 1, 0, tmp_path)

    monkeypatch.setattr(campaign, "execute", execute)
    campaign.begin(tmp_path, TESTS)
    found = measure("one")
    assert orders == ["ab", "ba"]
    assert (found.total.tests, found.total.free) == (3, 2)
    campaign.begin(tmp_path, TESTS)
    assert measure("one") == found
    assert len(orders) == 2
    with pytest.raises(FscaleError, match="another kernel, module or program"):
        measure("other")
    with pytest.raises(FscaleError, match="contains other tests"):
        campaign.begin(tmp_path, TESTS[:2])
