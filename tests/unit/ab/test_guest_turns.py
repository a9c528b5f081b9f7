# SPDX-License-Identifier: GPL-2.0-only
"""Two guests in turns, with guests that are made up: who runs when, and what is asked of whom."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import cast

import pytest

from fscale.ab import guest_turns
from fscale.ab.slicing import Slicing
from fscale.model.errors import FscaleError
from fscale.model.results import CellKey
from fscale.vm.paused_guest import GuestGone, PausedGuest
from tests.support import synthetic

TURN = "100 0.050000000 0.049000000 0.000000000 time"


def key(workload: str, filesystem: str = "ext4") -> CellKey:
    return synthetic.key(workload=workload, filesystem=filesystem)


class Machine:
    """Which of the guests run, at any time."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.together = 0


class Guest:
    """Answers each letter as `fscale run --turns` does, once it runs."""

    def __init__(
        self,
        machine: Machine,
        name: str,
        workloads: Iterable[str],
        *,
        filesystem: str = "ext4",
        answer: str = TURN,
        turns: int = 1000,
        ready: str = "ready",
    ) -> None:
        self.machine, self.name, self.answer = machine, name, answer
        self.cells = [f"cell {key(w, filesystem).model_dump_json()}" for w in workloads]
        self.turns, self.ready = turns, ready
        self.lines = [self._next()]
        self.letters = ""
        self.pending = ""
        self.taken = 0
        self.delay = 0.0
        machine.running.add(name)

    def _next(self) -> str:
        return self.cells.pop(0) if self.cells else "done"

    def send(self, letter: str) -> None:
        self.letters += letter
        self.pending += letter

    def receive(self) -> str | None:
        if self.name in self.machine.running:
            for letter in self.pending:
                self._react(letter)
            self.pending = ""
        return self.lines.pop(0) if self.lines else None

    def _react(self, letter: str) -> None:
        if letter == "t" and self.taken < self.turns:
            self.machine.together = max(self.machine.together, len(self.machine.running))
            self.taken += 1
            self.lines.append(self.answer)
        elif letter == "g" and self.ready == "ready":
            self.lines.append("ready")
        elif letter == "s":
            self.lines.append(self._next())
        else:
            self.lines += ["over", self._next()]

    def stop(self) -> None:
        self.machine.running.discard(self.name)

    def resume(self) -> None:
        self.machine.running.add(self.name)

    def wait(self, seconds: float) -> None:
        pass

    def cpu_wait_seconds(self) -> float:
        return self.delay * self.taken


def measure(
    a: Guest, b: Guest, closed: Iterable[str] = (), blocks: int = 6
) -> list[guest_turns.MeasuredTurns]:
    held = cast("dict[str, PausedGuest]", {"A": a, "B": b})
    slicing = Slicing(seconds=0.05, blocks=blocks, warmup=2)
    return list(
        guest_turns.measure(
            held, slicing, 1, lambda key: key.workload, lambda key: key.workload not in closed
        )
    )


def test_only_one_guest_runs_in_a_turn() -> None:
    machine = Machine()
    a, b = (Guest(machine, name, ["DRBL", "MWCL"]) for name in "AB")
    measured = measure(a, b)
    assert [one.keys["A"].workload for one in measured] == ["DRBL", "MWCL"]
    assert machine.together == 1
    assert machine.running == set()
    for one in measured:
        assert {side: len(slices) for side, slices in one.slices.items()} == {"A": 12, "B": 12}
    # g, two turns to warm up, twelve in blocks, and the end; for each cell.
    assert a.letters == b.letters == 2 * ("g" + 14 * "t" + "e")


def test_the_order_within_a_block_is_by_a_coin() -> None:
    order: list[str] = []

    class Told(Guest):
        def send(self, letter: str) -> None:
            super().send(letter)
            if letter == "t":
                order.append(self.name)

    machine = Machine()
    a, b = (Told(machine, name, ["DRBL"]) for name in "AB")
    measure(a, b, blocks=20)
    blocks = {"".join(order[i : i + 4]) for i in range(4, len(order), 4)}
    assert blocks == {"ABBA", "BAAB"}


def test_a_closed_point_is_left_out_on_both_sides() -> None:
    machine = Machine()
    a, b = (Guest(machine, name, ["DRBL", "MWCL"]) for name in "AB")
    measured = measure(a, b, closed=["DRBL"])
    assert [one.keys["B"].workload for one in measured] == ["MWCL"]
    assert a.letters.startswith("sg") and b.letters.startswith("sg")


def test_a_guest_that_cannot_set_up_costs_the_pair_and_no_more() -> None:
    machine = Machine()
    a = Guest(machine, "A", ["DRBL"])
    b = Guest(machine, "B", ["DRBL"], ready="over")
    (measured,) = measure(a, b)
    assert measured.slices == {"A": [], "B": []}
    assert (a.letters, b.letters) == ("ge", "g")


def test_a_guest_whose_load_ends_ends_the_other_too() -> None:
    machine = Machine()
    a = Guest(machine, "A", ["DRBL"])
    b = Guest(machine, "B", ["DRBL"], turns=9)
    (measured,) = measure(a, b)
    # Two to warm up, three whole blocks of two: the last turn's block was not whole.
    assert {len(slices) for slices in measured.slices.values()} == {6}
    assert a.letters.endswith("e")
    assert b.letters.endswith("t")


def test_what_another_process_took_is_not_the_guests(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    clock = iter(n * 0.1 for n in range(10_000))
    monkeypatch.setattr(guest_turns, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    a, b = (Guest(machine, name, ["DRBL"]) for name in "AB")
    b.delay = 0.04  # of the tenth of a second that a turn takes
    (measured,) = measure(a, b)
    assert {turn.seconds for turn in measured.slices["A"]} == {0.05}
    assert {round(turn.seconds, 9) for turn in measured.slices["B"]} == {0.03}
    assert {turn.ops for turn in measured.slices["B"]} == {100}


def test_guests_that_do_not_measure_the_same_are_refused() -> None:
    machine = Machine()
    with pytest.raises(FscaleError, match=r"do not measure the same cell: .*DRBL.*MWCL"):
        measure(Guest(machine, "A", ["DRBL"]), Guest(machine, "B", ["MWCL"]))


def test_sides_may_differ_in_their_file_system() -> None:
    machine = Machine()
    a, b = (Guest(machine, name, ["DRBL"], filesystem=fs) for name, fs in ("Ax", "By"))
    (measured,) = measure(a, b)
    assert [key.filesystem for key in measured.keys.values()] == ["x", "y"]


def test_words_that_are_no_answer_are_no_figures() -> None:
    machine = Machine()
    for answer in ("1e9 1.0 1.0 0.0 time", f"-{TURN}", "100 inf inf inf time", TURN[:-5]):
        a, b = Guest(machine, "A", ["DRBL"]), Guest(machine, "B", ["DRBL"], answer=answer)
        with pytest.raises(FscaleError, match="answered a turn with"):
            measure(a, b)


def test_a_guest_that_falls_silent_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(Guest):
        def _react(self, letter: str) -> None:
            if letter != "t":
                super()._react(letter)

    monkeypatch.setattr(guest_turns, "TURN_SECONDS", 0.05)
    machine = Machine()
    with pytest.raises(GuestGone, match=r"for 0\.05 s"):
        measure(Guest(machine, "A", ["DRBL"]), Silent(machine, "B", ["DRBL"]))


def test_a_guest_that_says_something_else_is_refused() -> None:
    machine = Machine()
    a, b = (Guest(machine, name, ["DRBL"]) for name in "AB")
    b.lines = ["login: "]
    with pytest.raises(FscaleError, match=r"should have named its next cell.*'login: '"):
        measure(a, b)
