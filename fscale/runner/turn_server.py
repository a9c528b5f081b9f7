# SPDX-License-Identifier: GPL-2.0-only
"""Cells whose turns somebody outside asks for: what a guest does of a pair in slices.

Words go out in lines, and single letters come in:

    cell KEY        the next cell, as JSON; `g` measures it, `s` leaves it out
    ready           it is set up; each `t` is a turn, `e` ends it
    OPS SECONDS CPU SETTLED END     what it did in a turn
    over            it has ended and is stored, by itself or because it was asked to
    done            there are no more cells
"""

import os
import termios
import tty
from contextlib import suppress
from pathlib import Path

from fscale.model.errors import FscaleError, Interrupted
from fscale.model.results import Cell, CellKey
from fscale.runner.cell.turns import Ended, TooLong, cut, in_turns
from fscale.runner.session import Session, fill, new_cell

GO, SKIP, TURN, END = "gste"


class Line:
    """The line to who asks: a serial port, or anything that is read and written."""

    def __init__(self, path: Path) -> None:
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as error:
            raise FscaleError(f"{path} cannot be opened: {error.strerror}") from None
        if os.isatty(self._fd):
            tty.setraw(self._fd, termios.TCSANOW)
            mode = termios.tcgetattr(self._fd)
            # A port that is slower holds single letters back for longer.
            mode[4] = mode[5] = termios.B115200
            termios.tcsetattr(self._fd, termios.TCSANOW, mode)

    def say(self, text: str) -> None:
        """One line."""
        rest = f"{text}\n".encode()
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def hear(self) -> str:
        """The next letter. Raises Interrupted where nobody is there any more."""
        try:
            letter = os.read(self._fd, 1)
        except OSError:  # a terminal that was hung up
            letter = b""
        if not letter:
            raise Interrupted("who asked for the turns has gone")
        return letter.decode(errors="replace")

    def done(self) -> None:
        """There are no more cells."""
        self.say("done")

    def close(self) -> None:
        """Say nothing more."""
        os.close(self._fd)


def offer(session: Session, key: CellKey, line: Line, seconds: float) -> Cell | None:
    """Offer a cell, and measure it in turns of `seconds` if it is wanted; None if not.

    The key's duration is how long it works at most, in all its turns. Raises Interrupted and
    Stopped.
    """
    line.say(f"cell {key.model_dump_json()}")
    if line.hear() != GO:
        return None
    cell = _measure(session, key, line, seconds)
    line.say("over")
    return cell


def _measure(session: Session, key: CellKey, line: Line, seconds: float) -> Cell:
    cell, setup = new_cell(key), session.setup
    with session.recorded([cell]):
        if reason := session.lacking(key):
            raise FscaleError(reason)
        load = setup.loads[key.workload]
        if not load.sliced:
            raise FscaleError(f"{key.workload} does not take turns")
        settings = cut(setup.settings, seconds)
        with session.placed(cell) as (target, _):
            try:
                with in_turns(load, target, settings, setup.limits, session.do) as turns:
                    line.say("ready")
                    with suppress(Ended):
                        while line.hear() == TURN:
                            line.say(turns.take().written())
                    fill(cell, turns.end())
            except (Ended, TooLong) as error:
                raise FscaleError(str(error)) from None
    return cell
