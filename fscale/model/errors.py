# SPDX-License-Identifier: GPL-2.0-only
"""Exit codes and the errors that end a command with one of them."""

from enum import IntEnum

from fscale.model.fault import Fault


class Exit(IntEnum):
    """The exit codes of every command."""

    GOOD = 0
    FAILED = 1
    USAGE = 2
    INTERRUPTED = 3
    SKIPPED = 77


class FscaleError(Exception):
    """An error whose text tells the user what is wrong and what to do about it."""

    code = Exit.USAGE
    fault: Fault = "machine"
    """whose fault it is if this error ends a cell"""

    def __init__(self, text: str = "", *, fault: Fault | None = None) -> None:
        super().__init__(text)
        if fault:
            self.fault = fault


class Interrupted(BaseException):
    """The user stopped the command; its state was saved and the machine was restored.

    Like KeyboardInterrupt it is no Exception: who goes on after an error, as with another attempt,
    must not go on after this.
    """

    code = Exit.INTERRUPTED


class MissingTool(FscaleError):  # noqa: N818 - it says what is the matter
    """The machine lacks something that the command needs."""

    code = Exit.SKIPPED
