# SPDX-License-Identifier: GPL-2.0-only
"""Turns the first SIGINT, SIGTERM or SIGHUP into an exception, except during an undo."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

from fscale.model.errors import Interrupted

_CAUGHT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """Raises Interrupted once, in the main thread; later signals have no effect."""

    def __init__(self) -> None:
        self._depth = 0
        self._pending: str | None = None
        self._raised = False

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self._raised:
            return
        self._pending = signal.Signals(number).name
        self._raise_pending()

    def _raise_pending(self) -> None:
        if self._pending and not self._raised and not self._depth:
            self._raised = True
            raise Interrupted(f"stopped by {self._pending}")

    @contextlib.contextmanager
    def installed(self) -> Iterator["Signals"]:
        """Catch the signals inside the `with` block."""
        before = {number: signal.signal(number, self._handle) for number in _CAUGHT}
        try:
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
