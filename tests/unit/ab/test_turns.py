# SPDX-License-Identifier: GPL-2.0-only
"""What becomes of a sliced pair when one of its sides ends early or hangs."""

import random
from collections.abc import Collection
from copy import copy
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from fscale.ab import slices
from fscale.ab.slices import _alternate, alternate_turns
from fscale.ab.slicing import Slicing
from fscale.model.errors import FscaleError
from fscale.model.histogram import summarise
from fscale.model.load import Outcome
from fscale.model.results import Cell, Status
from fscale.runner.cell.span import Watch
from fscale.runner.cell.turns import LoadEnded, LoadTimeout, SlicedLoad, Turn
from fscale.runner.session import new_cell
from fscale.runner.setup import Setup
from tests.support import synthetic


class Side:
    """Takes so many turns, then ends with an outcome, or hangs.

    Its stock is used up in turn number `exhausted`, and the turns `untimed` have no length.
    """

    def __init__(
        self,
        turns: int,
        status: Status = "ok",
        hangs: bool = False,
        ops: int = 100,
        exhausted: int = 0,
        untimed: Collection[int] = (),
    ) -> None:
        self.left, self.status, self.hangs, self.ops = turns, status, hangs, ops
        self.taken, self.exhausted, self.untimed = 0, exhausted, untimed

    def take(self) -> Turn:
        if not self.left:
            raise LoadTimeout("it hangs") if self.hangs else LoadEnded
        self.left -= 1
        self.taken += 1
        seconds = 0.0 if self.taken in self.untimed else 0.018
        return Turn(self.ops, seconds, seconds, 0.0, self.taken == self.exhausted)

    def end(self) -> Outcome:
        return Outcome(self.status, None if self.status == "ok" else "ENOSPC", ops=100, seconds=1)


def cell(side: str, cores: int = 1) -> Cell:
    return new_cell(
        synthetic.key(cores=cores, side=side)
    )  # fmt: skip


def alternate(a: Side, b: Side, cores: int = 1) -> dict[str, Cell]:
    cells = {"A": cell("A", cores), "B": cell("B", cores)}
    turns = cast("dict[str, SlicedLoad]", {"A": a, "B": b})
    span = SimpleNamespace(judge=lambda: (0.3, "other processes took 0.30 CPUs"))
    watch = cast("Watch", SimpleNamespace(end=lambda: span))
    _alternate(turns, cells, Slicing(blocks=10), random.Random(1), watch)
    return cells


def test_load_of_others_marks_both_sides() -> None:
    for one in alternate(Side(100), Side(100)).values():
        assert (one.extra["others_cpus"], one.disturbed) == (0.3, "other processes took 0.30 CPUs")


def test_a_side_that_fails_makes_its_pair_useless() -> None:
    cells = alternate(Side(100), Side(7, "error"))
    assert (cells["B"].status, cells["B"].reason) == ("error", "ENOSPC")
    assert cells["A"].status == "invalid"
    assert "other side" in (cells["A"].reason or "")


def test_both_sides_have_the_same_whole_blocks() -> None:
    for cells in (alternate(Side(100), Side(100)), alternate(Side(100), Side(12))):
        blocks = [[s.block for s in c.slices or ()] for c in cells.values()]
        assert blocks[0] == blocks[1]
        assert blocks[0] == [n for n in range(len(blocks[0]) // 2) for _ in range(2)]
    assert len(blocks[0]) == 10  # one turn for the caches, five blocks of two, one that was cut


@pytest.mark.parametrize(
    ("side", "whole"),
    [
        (Side(11), 5),
        (Side(10), 4),
        (Side(100, exhausted=12), 5),
        (Side(100, exhausted=11), 4),
        (Side(100, untimed=range(2, 11, 2)), 5),
        (Side(100, untimed=range(2, 13, 2)), 4),
        (Side(100, untimed=range(22)), 0),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_pair_needs_five_whole_blocks(side: Side, whole: int, first: bool) -> None:
    """With fewer it has no ratio, and its verdict would be one of whole repetitions."""
    one = copy(side)
    sides = (one, Side(100)) if first else (Side(100), one)
    if whole >= 5:
        assert {cell.status for cell in alternate(*sides).values()} == {"ok"}
        return
    with pytest.raises(FscaleError, match=f"only {whole} of 10 blocks .* needs 5") as caught:
        alternate(*sides)
    assert caught.value.fault == "machine"


def test_each_turn_is_followed_by_a_pause_for_what_it_frees_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []

    class Told(Side):
        def take(self) -> Turn:
            told.append("turn")
            return super().take()

    monkeypatch.setattr(slices.time, "sleep", lambda seconds: told.append(f"{seconds} s"))
    alternate_turns({"A": Told(9), "B": Told(9)}, Slicing(blocks=2, drain=0.02), random.Random(1))
    assert told == ["turn", "0.02 s"] * 10


def test_operations_that_are_long_for_a_turn_are_no_matter_of_turns() -> None:
    with pytest.raises(FscaleError, match=r"\b7 operations .* 10 ms") as caught:
        alternate(Side(100), Side(100, ops=7))
    assert caught.value.fault == "machine"  # others took CPUs meanwhile


@pytest.mark.parametrize("cores", [2, 3, 16])
def test_each_worker_needs_its_operations(cores: int) -> None:
    assert alternate(Side(100), Side(100), 5)["A"].slices  # 100 operations: 20 each
    with pytest.raises(FscaleError, match="operations in a turn"):
        alternate(Side(100, ops=20 * cores), Side(100, ops=20 * cores - 1), cores)
    assert alternate(Side(100, ops=20 * cores), Side(100, ops=20 * cores), cores)["B"].slices


def test_a_side_that_hangs_is_said() -> None:
    with pytest.raises(LoadTimeout, match="it hangs"):
        alternate(Side(100), Side(7, hangs=True))


def test_latencies_are_those_of_the_whole_blocks() -> None:
    """Not those of the turn for the caches, nor of the block that was cut."""

    class Timed(Side):
        def end(self) -> Outcome:
            each = {number: {1000 * number: 100} for number in range(1, 13)}
            return replace(super().end(), turn_latencies=each)

    cells = alternate(Timed(100), Timed(12))  # one for the caches, five blocks of two, and a part
    for one in cells.values():
        assert one.latency is not None
        assert one.latency["count"] == 1000
        assert one.latency["quantiles"]["100"] == pytest.approx(11000, rel=1e-3)
        assert one.latency["quantiles"]["50"] == pytest.approx(6000, rel=1e-3)
        assert one.latency["errors"]["50"] > 0.1
    assert alternate(Side(100), Side(100))["A"].latency is None


def described(**changes: bool) -> SimpleNamespace:
    return SimpleNamespace(
        **({"puts_off": False, "defers_frees": False, "consumes": False} | changes)
    )


@pytest.mark.parametrize(
    ("metrics", "descriptor", "options", "part"),
    [
        (("throughput", "p99"), described(), {}, None),
        (("p50", "p99.9"), described(), {}, None),
        (("throughput", "max"), described(), {}, "max"),
        (("jain",), described(), {}, "jain"),
        (("p99",), described(puts_off=True), {}, "defers work"),
        (("p99",), described(defers_frees=True), {}, "defers work"),
        (("p99",), described(), {"keep": 5}, "defers work"),
        (("throughput",), described(puts_off=True), {"keep": 5}, None),
        (("throughput",), described(), {"rate": 5}, "arrive at a rate"),
        (("throughput",), described(), {"rate": 0}, None),
    ],
)
def test_which_metrics_slices_carry(
    metrics: tuple[str, ...],
    descriptor: SimpleNamespace,
    options: dict[str, int],
    part: str | None,
) -> None:
    load = SimpleNamespace(descriptor=descriptor, sliced=True)
    setup = cast("Setup", SimpleNamespace(loads={"DRBL": load}, filesystems={}))
    key = cell("A").key.model_copy(update={"options": options})
    reason = slices.why_not_sliced(setup, key, metrics)
    assert (reason is None) if part is None else part in str(reason)


def test_turns_with_too_few_operations_for_a_quantile_are_refused() -> None:
    one = cell("A").model_copy(update={"status": "ok", "latency": summarise([(1000, 900)])})
    slices._refuse_without([one], ("throughput", "p50"))
    with pytest.raises(FscaleError, match="900"):
        slices._refuse_without([one], ("p99",))


@pytest.mark.parametrize(("keep", "drain"), [({}, 0.0), ({"keep": 0}, 0.0), ({"keep": 5}, 0.02)])
def test_a_steady_state_frees_what_it_makes(keep: dict[str, int], drain: float) -> None:
    described = SimpleNamespace(puts_off=True, defers_frees=False, consumes=False)
    setup = SimpleNamespace(loads={"DRBL": SimpleNamespace(descriptor=described)})
    key = cell("A").key.model_copy(update={"options": keep})
    found = slices.add_settling(Slicing(), [cast("Setup", setup)], key)
    assert (found.settle, found.drain) == (True, drain)
