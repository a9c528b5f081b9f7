# SPDX-License-Identifier: GPL-2.0-only
"""Serves the cells of a guest, and their turns, to a remote controller on a serial port.

The host compares two guests in slices: it is the controller and gives turns to each. The server
writes lines, and the controller answers with single letters:

    cell KEY        the next cell, as JSON; `g` measures it, `s` skips it
    ready           the cell is set up; each `t` is a turn, `e` ends the cell
    OPS SECONDS CPU SETTLED END     the result of a turn
    over            the cell has ended, by itself or on request, and is stored
    done            there are no more cells
"""

import os
import termios
import tty
from contextlib import suppress
from pathlib import Path

from fscale.model.errors import FscaleError, Interrupted
from fscale.model.results import Cell, CellKey
from fscale.runner.cell.turns import LoadEnded, LoadTimeout, in_turns, turn_settings
from fscale.runner.session import Session, copy_outcome, new_cell

GO, SKIP, TURN, END = "gste"


class ControllerLine:
    """The connection to the controller: a serial port, or any file to read from and write to."""

    def __init__(self, path: Path) -> None:
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as error:
            raise FscaleError(
                f"{path} cannot be opened: {error.strerror}; give the port of the remote controller"
            ) from None
        if os.isatty(self._fd):
            tty.setraw(self._fd, termios.TCSANOW)
            mode = termios.tcgetattr(self._fd)
            # A slower port delays single letters for longer.
            mode[4] = mode[5] = termios.B115200
            termios.tcsetattr(self._fd, termios.TCSANOW, mode)

    def send(self, text: str) -> None:
        """Write one line."""
        rest = f"{text}\n".encode()
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def receive(self) -> str:
        """Read the next letter.

        Raises:
            Interrupted: the controller has closed the connection.
        """
        try:
            letter = os.read(self._fd, 1)
        except OSError:  # the terminal was hung up
            letter = b""
        if not letter:
            raise Interrupted("the remote controller has closed the connection")
        return letter.decode(errors="replace")

    def done(self) -> None:
        """Report that there are no more cells."""
        self.send("done")

    def close(self) -> None:
        """Close the connection."""
        os.close(self._fd)


def offer_cell(session: Session, key: CellKey, line: ControllerLine, seconds: float) -> Cell | None:
    """Offer a cell to the controller, and measure it in turns of `seconds`; None if skipped.

    The key's duration bounds the working time of the cell over all its turns.

    Raises:
        Interrupted: the controller has closed the connection, or the user stopped the run.
        Stopped: the machine could not be restored.
    """
    line.send(f"cell {key.model_dump_json()}")
    if line.receive() != GO:
        return None
    cell = _measure(session, key, line, seconds)
    line.send("over")
    return cell


def _measure(session: Session, key: CellKey, line: ControllerLine, seconds: float) -> Cell:
    cell, setup = new_cell(key), session.setup
    with session.recorded([cell]):
        if reason := session.lacking(key):
            raise FscaleError(reason)
        load = setup.loads[key.workload]
        if not load.sliced:
            raise FscaleError(
                f"{key.workload} cannot be measured in slices; measure it in whole repetitions"
            )
        settings = turn_settings(setup.settings, seconds)
        with session.placed(cell) as (target, _):
            try:
                with in_turns(load, target, settings, setup.limits, session.do) as turns:
                    line.send("ready")
                    with suppress(LoadEnded):
                        while line.receive() == TURN:
                            line.send(turns.take().format_answer())
                    copy_outcome(cell, turns.end())
            except (LoadEnded, LoadTimeout) as error:
                raise FscaleError(str(error), fault=error.fault) from None
    return cell
