# SPDX-License-Identifier: GPL-2.0-only
"""What a guest prints is checked against the model."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from fscale.commute import guest, script
from fscale.commute.generate import generate
from fscale.model import catalogue, variant
from fscale.model.errors import FscaleError
from fscale.sim.boot import BootError, PointResult
from fscale.sim.output import Conflicts
from fscale.sim.plan import GuestPoint
from tests.support import synthetic

TESTS = list(generate("link", "unlink"))[:3]
NONE = Conflicts(type="conflicts", pair=0, lost=0, lines=[])
# Each test as the interpreter prints it: without the state at the end.
PRINTED = "".join(f"{line}\n" for test in TESTS for line in script.outcome(test, "ba")[:4])
GOOD = PointResult(GuestPoint(0, synthetic.key(), 1), conflicts=[NONE] * 3, bench=PRINTED)


def test_a_pipe_may_have_the_number_of_a_file() -> None:
    made = ["made stat #83 1 1 stat #84 1 0 pipe #84 pipe #85", "a stat #84 1 0", "b pipe #84"]
    numbered = ["made stat #0 1 1 stat #1 1 0 pipe #2 pipe #3", "a stat #1 1 0", "b pipe #2"]
    assert script.renumbered(made) == numbered


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


@pytest.mark.parametrize("failure", [BootError("it ended", 0), guest.InterpreterError("EIO")])
def test_the_logs_of_a_guest_that_fails_are_kept(
    failure: FscaleError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    booted = MagicMock()
    booted.__enter__.return_value = booted
    booted.place.shared = tmp_path
    booted.poll.side_effect = failure
    booted.logs.return_value = {"console.log": b"last words"}
    monkeypatch.setattr(guest, "Boot", lambda *_: booted)
    monkeypatch.setattr(guest, "_command", lambda *_: [])
    one: Any = SimpleNamespace(
        filesystem=catalogue.load_variant(variant.parse("tmpfs")),
        medium=None,
        emulator=MagicMock(),
    )
    with pytest.raises(type(failure)):
        list(guest.execute(one, TESTS, "ab", 1, 0, tmp_path / "guest"))
    assert (tmp_path / "guest" / "console.log").read_text() == "last words"
