# SPDX-License-Identifier: GPL-2.0-only
"""Turns the first SIGINT, SIGTERM or SIGHUP into an exception, except during an undo."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from types import FrameType

from fscale.model.errors import Interrupted

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STOPPED = (
    b"\nfscale: stopped; the machine stays as this run set it (CPUs offline, file systems "
    b"mounted): `fg` continues, `fg` and Ctrl-C restores it\n"
)


class Signals:
    """Raises Interrupted once, in the main thread; later signals have no effect.

    A signal that the caller ignores, as nohup and a background job of a script do, stays ignored.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._pending: str | None = None
        self._raised = False
        self.stops = 0
        """how often this process was stopped (Ctrl-Z) and continued"""

    def _end(self, number: int, _frame: FrameType | None) -> None:
        if self._raised:
            return
        self._pending = signal.Signals(number).name
        self._raise_pending()

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(OSError):
            os.write(2, _STOPPED)  # not print, which may be interrupted here
        os.kill(os.getpid(), signal.SIGSTOP)

    def _continue(self, _number: int, _frame: FrameType | None) -> None:
        self.stops += 1

    def _raise_pending(self) -> None:
        if self._pending and not self._raised and not self._depth:
            self._raised = True
            raise Interrupted(f"stopped by {self._pending}")

    @contextlib.contextmanager
    def installed(self) -> Iterator["Signals"]:
        """Catch the signals inside the `with` block.

        A background job may write to its terminal meanwhile: SIGTTOU would stop it halfway.
        """
        handlers: dict[signal.Signals, Callable[..., None] | signal.Handlers] = {
            **dict.fromkeys(_ENDING, self._end),
            signal.SIGTSTP: self._stop,
            signal.SIGCONT: self._continue,
            signal.SIGTTOU: signal.SIG_IGN,
        }
        before = {n: signal.getsignal(n) for n in handlers if signal.getsignal(n) != signal.SIG_IGN}
        try:
            for number in before:
                signal.signal(number, handlers[number])
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """Defer signals that arrive inside the `with` block to its end."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
        self._raise_pending()
