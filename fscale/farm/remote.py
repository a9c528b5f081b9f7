# SPDX-License-Identifier: GPL-2.0-only
"""A machine that ssh reaches, visited before and after each of its boots."""

import contextlib
import functools
import time
from collections.abc import Callable

from fscale.farm.bootable import Bootable, Broken
from fscale.farm.connection import Lost, connected
from fscale.farm.controls import Console, Controls, reset
from fscale.farm.engine import Say
from fscale.farm.objects import Objects
from fscale.farm.visit import Visit, ask, is_there, visiting
from fscale.model.errors import FscaleError

PATIENCE_SECONDS = 120.0
"""how long a machine may be unreachable whose connection broke"""
RETRY_SECONDS = 5.0
_BY_HAND = "reset it, which boots its own kernel, and give `fscale restore --on`"


class NotBack(FscaleError):  # noqa: N818 - it says what happened
    """The machine does not come back after a boot."""


class Remote:
    """A context manager, at whose end the machine runs its own kernel."""

    def __init__(self, host: str, say: Say) -> None:
        self.host = host
        self.controls = Controls()
        self.undone: list[str] = []
        """what a killed command left, and this one restored"""
        self._say = say
        self._stack = contextlib.ExitStack()
        self._visit: Visit | None = None
        self._console: Console | None = None
        self._left: str | None = None
        """the directory there, once another kernel was booted"""
        self._home = ""
        """what the machine ran before, as in `About.running`"""

    def __enter__(self) -> "Remote":
        self._enter_first()
        self.undone += self.visit.adopted
        home = self.visit.home()
        if home and _is_tested(self.visit.running, home):
            self._say(f"a killed command left {self.host} with another kernel; it boots its own")
            self._left, self._home = self.visit.directory, home
            self._stack.close()
            self._await(self._return_home)
            self.undone.append("its own kernel")
            self._enter(None)
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        self._stack.close()
        self._end_console()
        if self._left and kind is not NotBack:
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
        return self._left is not None and _is_tested(self.visit.running, self._home)

    def boot(self, kernel: Bootable) -> None:
        """Boot a kernel, and wait until the machine is back and has nothing more to do.

        Raises:
            Broken: it did not come up; the machine runs its own kernel.
            Lost: the connection broke; the machine runs its own kernel.
            NotBack: the machine did not come back.
            FscaleError: the machine cannot boot that kernel.
        """
        visit = self.visit
        try:
            self._load(kernel)
        except Lost:
            self.recover()
            raise
        self._end_console()
        if self.controls.console:
            self._console = Console(self.controls.console)
        self._go()
        if why := self._await(lambda: self._return(visit.boot_id)):
            raise Broken(
                f"{self.host} did not come back within {self.controls.boot_seconds:.0f} s of the "
                f"boot, and was reset ({why})"
            )
        if self._left is None:
            raise Lost(f"the connection to {self.host} ended before the boot")
        if not self.under_test:
            raise Broken(
                f"{self.host} came back with its own kernel: the one under test panicked while it "
                "booted, or did not start"
            )
        try:
            self.visit.kexec("settle")
        except Lost as error:
            if self.recover():
                raise Broken(f"the kernel panicked or hung after its boot: {error}") from None
            raise

    def _load(self, kernel: Bootable) -> None:
        visit, files = self.visit, []
        if kernel.image and kernel.modules:
            objects = Objects()
            files = [objects.add(kernel.image), objects.add(kernel.modules)]
            visit.store(objects, files)
        visit.kexec("load", kernel.release, *files)
        if not self._left:
            self._left, self._home = visit.directory, visit.running

    def _go(self) -> None:
        """Let the machine boot what is loaded."""
        try:
            with contextlib.suppress(Lost):
                self.visit.let_go(2 * self.controls.boot_seconds)
                self.visit.kexec("go")
        finally:
            self._stack.close()

    def recover(self) -> bool:
        """Visit the machine again after its connection broke.

        If a kernel under test ran, wait for the machine's own one. Return whether it crashed: then
        nothing there has ended the visit.

        Raises:
            NotBack: the machine did not come back.
            FscaleError: it ran its own kernel, and cannot be reached.
        """
        tested, again = self.under_test, functools.partial(self._enter_again, at_home=True)
        self._stack.close()
        if tested:
            return bool(self._await(again)) or self._left is not None
        if failed := _try(again, PATIENCE_SECONDS):
            raise failed
        return False

    def evidence(self) -> str:
        """What the console and the pstore of the machine say about the kernel that was Broken."""
        texts = {"console": self._end_console()}
        with contextlib.suppress(FscaleError):
            texts["pstore"] = self.visit.kexec("pstore")
        return "\n".join(f"{name}:\n{text}" for name, text in texts.items() if text.strip())

    def _end_console(self) -> str:
        console, self._console = self._console, None
        return console.end() if console else ""

    def _enter_first(self) -> None:
        """Visit the machine, which may just now leave the kernel that a killed command booted."""
        try:
            self._enter(None)
        except Lost as error:
            self._say(f"{error}; waiting until {self.host} is back")
            if failed := _try(lambda: self._enter(None), self.controls.boot_seconds):
                raise failed from None

    def _enter(self, directory: str | None) -> None:
        stack = contextlib.ExitStack()
        with stack:
            self._visit = stack.enter_context(visiting(self.host, self._say, directory))
            self._stack = stack.pop_all()

    def _return(self, booted_before: str) -> None:
        """Visit the machine again after a boot."""
        self._enter_again(at_home=False)
        if self._left and self.visit.boot_id == booted_before:
            # The connection may have ended before the machine was told to boot.
            self._go()
            raise FscaleError(f"{self.host} has not begun to boot")

    def _enter_again(self, *, at_home: bool) -> None:
        """Visit the machine in the directory of the last visit, or in a new one if that has ended.

        `at_home`: only once it runs its own kernel, which it boots when a visit has ended.
        """
        if self._left:
            with connected(self.host) as connection:
                ended = not is_there(connection, self._left)
                running = ask(connection, self._say).running
            if (ended or at_home) and _is_tested(running, self._home):
                raise FscaleError(f"{self.host} still runs another kernel")
            if ended:
                self._left = None
        self._enter(self._left)

    def _return_home(self) -> None:
        """Check that the visit has been ended there."""
        assert self._left
        with connected(self.host) as connection:
            running = ask(connection, self._say).running
            if is_there(connection, self._left):
                with visiting(self.host, self._say, self._left):
                    pass
            if not _is_tested(running, self._home) and not is_there(connection, self._left):
                self._left = None
                now, before = (text.partition("\n")[0] for text in (running, self._home))
                other = "" if now == before else f", which its boot loader starts, not {before}"
                self._say(f"{self.host} runs its own kernel again: {now}{other}")
                return
        raise FscaleError(f"{self.host} still runs another kernel")

    def _await(self, attempt: Callable[[], None]) -> str:
        """Try until a machine that boots can be visited; reset it if that takes too long.

        Return why it was reset; empty: it was not.

        Raises:
            NotBack: it did not come back after the reset either.
        """
        why = ""
        while failed := _try(attempt, self.controls.boot_seconds):
            if why:
                raise NotBack(f"{self.host} did not come back after a reset ({failed}); {_BY_HAND}")
            why = str(failed)
            self._reset(why)
        return why

    def _reset(self, why: str) -> None:
        seconds = f"{self.controls.boot_seconds:.0f} s"
        late = f"{self.host} did not come back within {seconds} ({why})"
        if self.controls.reset is None:
            self._say(f"{late}; reset it within {seconds}: a reset boots its own kernel")
            return
        self._say(f"{late}; resetting it")
        try:
            reset(self.controls.reset)
        except FscaleError as error:
            raise NotBack(f"{late}; {error}; {_BY_HAND}") from None


def _is_tested(running: str, home: str) -> bool:
    """Whether a kernel is not the machine's own one, of which it may have got a newer one.

    Both as in `About.running`. A kernel under test has arguments that fscale.farm.kexec.sh adds.
    """
    return running != home and "oops=panic" in running.split()


def _try(attempt: Callable[[], None], seconds: float) -> FscaleError | None:
    """Try for so long; return the last error, or None."""
    end = time.monotonic() + seconds
    while True:
        try:
            attempt()
        except FscaleError as error:
            if time.monotonic() > end:
                return error
        else:
            return None
        time.sleep(RETRY_SECONDS)
