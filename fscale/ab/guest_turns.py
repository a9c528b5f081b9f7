# SPDX-License-Identifier: GPL-2.0-only
"""One pair of boots: two guests measure the same cells in turns, one paused while the other runs.

Each guest runs `fscale run --turns`, which offers its cells and takes a turn when this process
tells it to (fscale/runner/turn_server.py).
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from pydantic import ValidationError

from fscale.ab.point import SIDES
from fscale.ab.slices import alternate_turns
from fscale.ab.slicing import Slicing
from fscale.model.errors import FscaleError
from fscale.model.results import CellKey, Slice
from fscale.runner.cell.turns import LoadEnded, LoadTimeout, Turn
from fscale.runner.turn_server import END, GO, SKIP, TURN
from fscale.vm.paused_guest import GuestGone, PausedGuest, wait_for_answers

# Time limit until the first cell: at most three boots of three minutes, and the preparation.
FIRST_SECONDS = 900.0
# Time limit for mkfs, mount and set-up under emulation, or for an unmount and the check.
SETUP_SECONDS = 600.0
# Time limit for a turn and its answer. A turn takes many times as long if another process uses the
# host's CPU.
TURN_SECONDS = 120.0


@dataclass(frozen=True)
class MeasuredTurns:
    """The results of one cell in both guests, by side."""

    keys: dict[str, CellKey]
    slices: dict[str, list[Slice]]


class _TurnTaker:
    """Takes turns in a guest, on `cores` of its CPUs."""

    def __init__(self, held: PausedGuest, cores: int) -> None:
        self._held = held
        self._cores = cores
        self.over = False

    def take(self) -> Turn:
        """Let the guest run for a turn.

        Raises LoadEnded, LoadTimeout, and FscaleError for a bad answer.

        The guest's clock advances while another process has the host's CPU; that share of the time
        is subtracted.
        """
        started, waited = time.monotonic(), self._held.cpu_wait_seconds()
        self._held.send(TURN)
        try:
            answer = wait_for_answers({"": self._held}, TURN_SECONDS)[""]
        except GuestGone as error:
            raise LoadTimeout(str(error)) from None
        self.over = answer == "over"
        if self.over:
            raise LoadEnded
        try:
            turn = Turn.read(answer)
        except LoadEnded:
            raise FscaleError(f"a guest answered a turn with {answer!r}, not a result") from None
        waited = self._held.cpu_wait_seconds() - waited
        ran = max(0.0, 1 - waited / (self._cores * (time.monotonic() - started)))
        return replace(turn, seconds=ran * turn.seconds, cpu_seconds=ran * turn.cpu_seconds)


def measure(
    held: Mapping[str, PausedGuest],
    slicing: Slicing,
    seed: int,
    name: Callable[[CellKey], str],
    wanted: Callable[[CellKey], bool],
) -> Iterator[MeasuredTurns]:
    """Let both guests measure the wanted cells, and yield each cell when it has ended on both.

    `name` gives the name of a cell's point, which is the same on both sides.

    Raises GuestGone if a guest ends early or stops answering, and FscaleError if the two guests
    measure different cells or break the protocol.
    """
    limit = FIRST_SECONDS
    while True:
        lines = wait_for_answers(held, limit)
        limit = SETUP_SECONDS
        if all(line == "done" for line in lines.values()):
            return
        keys = {side: _key(lines[side]) for side in SIDES}
        if name(keys["A"]) != name(keys["B"]):
            raise FscaleError(
                "the guests do not measure the same cell: "
                f"side A has {keys['A'].point}, side B has {keys['B'].point}"
            )
        if not wanted(keys["A"]):
            _tell(held, SKIP)
            continue
        _tell(held, GO)
        lines = wait_for_answers(held, SETUP_SECONDS)
        sides = {side: _TurnTaker(held[side], keys[side].cores) for side in SIDES}
        slices: dict[str, list[Slice]] = {side: [] for side in SIDES}
        for side, one in sides.items():
            one.over = lines[side] == "over"
        if not any(one.over for one in sides.values()):
            coin = random.Random(f"{seed} {keys['A'].point} {keys['A'].repetition}")
            try:
                slices = alternate_turns(sides, slicing, coin)
            except LoadTimeout as error:
                raise GuestGone(str(error)) from None
        working = {side: held[side] for side in SIDES if not sides[side].over}
        _tell(working, END)
        for line in wait_for_answers(working, SETUP_SECONDS).values():
            if line != "over":
                raise FscaleError(f"a guest should have ended its cell, but answered {line!r}")
        yield MeasuredTurns(keys, slices)


def _tell(held: Mapping[str, PausedGuest], letter: str) -> None:
    for one in held.values():
        one.send(letter)


def _key(line: str) -> CellKey:
    word, _, text = line.partition(" ")
    try:
        if word == "cell":
            return CellKey.model_validate_json(text)
    except ValidationError:
        pass
    raise FscaleError(f"a guest should have named its next cell, but sent {line!r}")
