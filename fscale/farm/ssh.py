# SPDX-License-Identifier: GPL-2.0-only
"""The engine `ssh:HOST`: tasks run on a machine that ssh reaches, one after another."""

import contextlib
import re
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from fscale.farm.answer import MOST_TEXT, MOST_WHOLE, Answer, Header, Refused, check, unpack
from fscale.farm.bootable import Bootable
from fscale.farm.connection import ENDED, Lost, connected
from fscale.farm.engine import Say
from fscale.farm.objects import Objects
from fscale.farm.pipes import Head, Tail
from fscale.farm.task import Task
from fscale.farm.visit import Visit, ask, visiting
from fscale.model.errors import Exit, FscaleError
from fscale.system.executor import summarise_failure

ATTEMPTS = 2
PATIENCE_SECONDS = 120.0
"""how long a machine may be unreachable whose connection broke"""
RETRY_SECONDS = 5.0
BOOT_SECONDS = 600.0
"""how long a boot may take, and how long the machine stays held for it"""
_ON = re.compile(r"ssh:(?P<host>[A-Za-z0-9_][\w.@:%+-]{0,250})")


class NotBack(FscaleError):  # noqa: N818 - it says what happened
    """The machine was lost, or does not come back after a boot."""

    code = Exit.FAILED


@contextlib.contextmanager
def open_engine(on: str, say: Say) -> Iterator["Ssh"]:
    """Open the engine for a `--on` of the form ssh:HOST; see fscale.farm.engine.

    Raises:
        FscaleError: the option has another form, or see `visiting`.
    """
    named = _ON.fullmatch(on)
    if named is None:
        raise FscaleError(f"--on {on}: not of the form ssh:HOST, with HOST as in `ssh HOST`")
    with Ssh(named["host"], say) as engine:
        yield engine


class Ssh:
    """See fscale.farm.engine.NodeEngine."""

    slots = 1
    shares_files = False

    def __init__(self, host: str, say: Say) -> None:
        self._host = host
        self._say = say
        self._waiting: deque[Task] = deque()
        self._objects = Objects()
        self._stack = contextlib.ExitStack()
        self._visit: Visit | None = None
        self._running: _Errand | None = None
        self._left: str | None = None
        """the directory there, once another kernel was booted"""
        self._home = ""
        """what the machine ran before, as in `About.running`"""

    def __enter__(self) -> "Ssh":
        self._visit = self._stack.enter_context(visiting(self._host, self._say))
        return self

    def __exit__(self, *exc: object) -> None:
        self.cancel()
        self._stack.close()
        if self._left:
            self._say(f"waiting until {self._host} runs its own kernel again")
            self._await(self._return_home)

    def boot(self, kernel: Bootable) -> None:
        """Boot a kernel, and wait until the machine is back.

        Raises:
            NotBack: it does not come back in time.
            FscaleError: it cannot boot that kernel.
        """
        assert self._visit
        visit, files = self._visit, []
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

    def _return(self, booted_before: str) -> None:
        """Visit the machine again after a boot."""
        stack = contextlib.ExitStack()
        with stack:
            visit = stack.enter_context(visiting(self._host, self._say, self._left))
            if visit.boot_id != booted_before:
                self._visit, self._stack = visit, stack.pop_all()
                return
            visit.let_go(BOOT_SECONDS)
        raise FscaleError(f"{self._host} has not begun to boot")

    def _return_home(self) -> None:
        """Check that the visit has been ended there."""
        with connected(self._host) as connection:
            running = ask(connection, self._say).running
            if connection.run(["sh", "-c", 'test ! -d "$1" || echo left', "sh", self._left or ""]):
                with visiting(self._host, self._say, self._left):
                    pass
            elif running == self._home:
                self._left = None
                self._say(f"{self._host} runs its own kernel again: {running.splitlines()[0]}")
                return
        raise FscaleError(f"{self._host} still runs another kernel")

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
                        f"{self._host} did not come back within {BOOT_SECONDS:.0f} s of a boot "
                        f"({error}); reset it: a reset boots its own kernel"
                    ) from None
            time.sleep(RETRY_SECONDS)

    def submit(self, tasks: Sequence[Task], objects: Objects) -> None:
        """See Engine."""
        self._waiting.extend(tasks)
        self._objects = objects

    def collect(self) -> Iterator[Answer]:
        """See Engine; a task whose connection broke is run once more."""
        while self._waiting:
            task = self._waiting.popleft()
            yield self._attempt(task)

    def cancel(self) -> list[Answer]:
        """See NodeEngine."""
        self._waiting.clear()
        if self._running is None:
            return []
        self._say(f"cancelling the task on {self._host}")
        self._running.stop()
        try:
            return [self._finish()]
        except Lost:
            return []

    def _attempt(self, task: Task) -> Answer:
        reasons: list[str] = []
        while len(reasons) < ATTEMPTS:
            try:
                self._start(task)
                return self._finish()
            except Lost as error:
                if self._left:
                    raise NotBack(
                        f"{error}; a kernel under test may have panicked or hung"
                    ) from None
                self._say(f"warning: {error}")
                reasons.append(str(error))
                self._reconnect()
        return _failed(task, self._host, Exit.FAILED, "; ".join(reasons))

    def _start(self, task: Task) -> None:
        assert self._visit
        self._visit.store(self._objects, list(task.files.values()))
        self._running = _Errand(task, self._visit.errand())

    def _finish(self) -> Answer:
        """Wait for the answer of the running task; it still runs if the wait is interrupted.

        Raises:
            Lost: the connection ended.
        """
        assert self._running
        answer = self._running.output.content()
        errand, self._running = self._running, None
        code, text = errand.end()
        if code == ENDED:
            raise Lost(f"the connection to {self._host} ended: {text or 'no reason given'}")
        if code and len(answer) <= MOST_WHOLE:  # else it was killed for that
            return _failed(errand.task, self._host, code, text)
        try:
            header, files = unpack(answer)
            told = header.text if header.code == Exit.GOOD else text or header.text
            return check(errand.task, header.model_copy(update={"text": told}), files)
        except Refused as error:
            return _failed(errand.task, self._host, Exit.FAILED, str(error))

    def _reconnect(self) -> None:
        """Visit the machine again. Its keeper may notice later that the connection has ended."""
        self._stack.close()
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self._visit = self._stack.enter_context(visiting(self._host, self._say))
                return
            except FscaleError:
                if time.monotonic() > end:
                    raise
            time.sleep(RETRY_SECONDS)


class _Errand:
    """A task that runs on the machine until its standard input ends."""

    def __init__(self, task: Task, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin and process.stdout and process.stderr
        self.task = task
        self.output = Head(process.stdout, MOST_WHOLE)
        self._process = process
        self._input = process.stdin
        self._messages = Tail(process.stderr)
        with contextlib.suppress(BrokenPipeError):  # ssh says why
            self._input.write(task.model_dump_json().encode() + b"\n")
            self._input.flush()

    def stop(self) -> None:
        """Terminate the task; its answer follows."""
        with contextlib.suppress(BrokenPipeError):
            self._input.close()

    def end(self) -> tuple[int, str]:
        """Wait until it has ended: the exit code, and the summary of its messages."""
        self.stop()
        if len(self.output.content()) > MOST_WHOLE:
            self._process.kill()
        return self._process.wait(), summarise_failure(self._messages.text())[-MOST_TEXT:]


def _failed(task: Task, host: str, code: int, text: str) -> Answer:
    """The answer of a task without files."""
    return check(task, Header(task=task.id, host=host, code=code, text=text), {})
