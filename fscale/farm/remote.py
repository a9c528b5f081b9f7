# SPDX-License-Identifier: GPL-2.0-only
"""A machine that ssh reaches, visited before and after each of its boots."""

import contextlib
import time
from collections.abc import Callable

from fscale.farm.bootable import Bootable
from fscale.farm.connection import Lost, connected
from fscale.farm.engine import Say
from fscale.farm.objects import Objects
from fscale.farm.visit import Visit, ask, visiting
from fscale.model.errors import Exit, FscaleError

PATIENCE_SECONDS = 120.0
"""how long a machine may be unreachable whose connection broke"""
RETRY_SECONDS = 5.0
BOOT_SECONDS = 600.0
"""how long a boot may take, and how long the machine stays held for it"""


class NotBack(FscaleError):  # noqa: N818 - it says what happened
    """The machine was lost, or does not come back after a boot."""

    code = Exit.FAILED


class Remote:
    """A context manager, at whose end the machine runs its own kernel."""

    def __init__(self, host: str, say: Say) -> None:
        self.host = host
        self._say = say
        self._stack = contextlib.ExitStack()
        self._visit: Visit | None = None
        self._left: str | None = None
        """the directory there, once another kernel was booted"""
        self._home = ""
        """what the machine ran before, as in `About.running`"""

    def __enter__(self) -> "Remote":
        self._visit = self._stack.enter_context(visiting(self.host, self._say))
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()
        if self._left:
            self._say(f"waiting until {self.host} runs its own kernel again")
            self._await(self._return_home)

    @property
    def visit(self) -> Visit:
        """The present visit."""
        assert self._visit
        return self._visit

    @property
    def under_test(self) -> bool:
        """Whether it runs another kernel than its own."""
        return self._left is not None

    def boot(self, kernel: Bootable) -> None:
        """Boot a kernel, and wait until the machine is back.

        Raises:
            NotBack: it does not come back in time.
            FscaleError: it cannot boot that kernel.
        """
        visit, files = self.visit, []
        if kernel.image and kernel.modules:
            objects = Objects()
            files = [objects.add(kernel.image), objects.add(kernel.modules)]
            visit.store(objects, files)
        visit.kexec("load", kernel.release, *files)
        if not self._left:
            self._left, self._home = visit.directory, visit.running
        visit.let_go(BOOT_SECONDS)
        with contextlib.suppress(Lost):
            visit.kexec("go")
        self._visit = None
        self._stack.close()
        self._await(lambda: self._return(visit.boot_id))

    def reconnect(self) -> None:
        """Visit the machine again. Its keeper may notice later that the connection has ended."""
        self._stack.close()
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self._visit = self._stack.enter_context(visiting(self.host, self._say))
                return
            except FscaleError:
                if time.monotonic() > end:
                    raise
            time.sleep(RETRY_SECONDS)

    def _return(self, booted_before: str) -> None:
        """Visit the machine again after a boot."""
        stack = contextlib.ExitStack()
        with stack:
            visit = stack.enter_context(visiting(self.host, self._say, self._left))
            if visit.boot_id != booted_before:
                self._visit, self._stack = visit, stack.pop_all()
                return
            visit.let_go(BOOT_SECONDS)
        raise FscaleError(f"{self.host} has not begun to boot")

    def _return_home(self) -> None:
        """Check that the visit has been ended there."""
        with connected(self.host) as connection:
            running = ask(connection, self._say).running
            if connection.run(["sh", "-c", 'test ! -d "$1" || echo left', "sh", self._left or ""]):
                with visiting(self.host, self._say, self._left):
                    pass
            elif running == self._home:
                self._left = None
                self._say(f"{self.host} runs its own kernel again: {running.splitlines()[0]}")
                return
        raise FscaleError(f"{self.host} still runs another kernel")

    def _await(self, attempt: Callable[[], None]) -> None:
        """Try until a machine that boots can be visited.

        Raises:
            NotBack: it could not be in BOOT_SECONDS.
        """
        end = time.monotonic() + BOOT_SECONDS
        while True:
            try:
                return attempt()
            except FscaleError as error:
                if time.monotonic() > end:
                    raise NotBack(
                        f"{self.host} did not come back within {BOOT_SECONDS:.0f} s of a boot "
                        f"({error}); reset it: a reset boots its own kernel"
                    ) from None
            time.sleep(RETRY_SECONDS)
