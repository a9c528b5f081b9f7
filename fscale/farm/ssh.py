# SPDX-License-Identifier: GPL-2.0-only
"""The engine `ssh:HOST`: tasks run on a machine that ssh reaches, one after another."""

import contextlib
import re
from collections import deque
from collections.abc import Iterator, Sequence

from fscale.farm.answer import MOST_TEXT, MOST_WHOLE, Answer, Header, Refused, check, unpack
from fscale.farm.bootable import Bootable, Broken
from fscale.farm.connection import ANSWER_SECONDS, ENDED, Lost
from fscale.farm.controls import Controls
from fscale.farm.engine import Say
from fscale.farm.keeper import TASK_SECONDS
from fscale.farm.objects import Objects
from fscale.farm.pipes import Head, Tail
from fscale.farm.remote import Remote
from fscale.farm.task import Task
from fscale.farm.visit import Visit
from fscale.model.errors import Exit, FscaleError
from fscale.system.executor import summarise_failure

ATTEMPTS = 2
HANG_SECONDS = 3600.0
"""how long a task may take under a kernel under test, besides the timed seconds of its cells"""
HOST = r"[A-Za-z0-9_][\w.@:%+-]{0,250}"
_ON = re.compile(rf"ssh:(?P<host>{HOST})")


@contextlib.contextmanager
def open_engine(on: str, say: Say) -> Iterator["Ssh"]:
    """Open the engine for a `--on` of the form ssh:HOST; see fscale.farm.engine.

    Raises:
        FscaleError: the option has another form, or see `visiting`.
    """
    named = _ON.fullmatch(on)
    if named is None:
        raise FscaleError(
            f"--on {on}: not of the form ssh:HOST, with HOST as in `ssh HOST`; a port is set in "
            "~/.ssh/config"
        )
    with Ssh(named["host"], say) as engine:
        yield engine


class Hung(Lost):
    """A machine does not end a task."""


class Ssh:
    """See fscale.farm.engine.NodeEngine."""

    slots = 1
    shares_files = False

    def __init__(self, host: str, say: Say) -> None:
        self._say = say
        self._remote = Remote(host, say)
        self._waiting: deque[Task] = deque()
        self._objects = Objects()
        self._running: _Errand | None = None

    def __enter__(self) -> "Ssh":
        self._remote.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.cancel()
        self._remote.__exit__(*exc)

    @property
    def undone(self) -> list[str]:
        """See BootingEngine."""
        return self._remote.undone

    def use(self, controls: Controls) -> None:
        """See BootingEngine."""
        self._remote.controls = controls

    def boot(self, kernel: Bootable) -> None:
        """See BootingEngine and Remote."""
        self._remote.boot(kernel)

    def evidence(self) -> str:
        """See BootingEngine."""
        return self._remote.evidence()

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
        self._say(f"cancelling the task on {self._remote.host}")
        self._running.stop()
        try:
            return [self._finish(TASK_SECONDS)]
        except Lost:
            return []

    def _attempt(self, task: Task) -> Answer:
        reasons: list[str] = []
        while len(reasons) < ATTEMPTS:
            try:
                self._start(task)
                timed = HANG_SECONDS + 2 * sum(key.duration for key in task.keys)
                return self._finish(timed if self._remote.under_test else None)
            except Lost as error:
                tested = self._remote.under_test
                if self._remote.recover() or isinstance(error, Hung):
                    raise Broken(
                        f"the kernel panicked or hung while it measured: {error}"
                    ) from None
                if tested:
                    raise
                self._say(f"warning: {error}")
                reasons.append(str(error))
        return _failed(task, self._remote.host, Exit.FAILED, "; ".join(reasons))

    def _start(self, task: Task) -> None:
        visit = self._remote.visit
        visit.store(self._objects, list(task.files.values()))
        self._running = _Errand(task, visit)

    def _finish(self, seconds: float | None) -> Answer:
        """Wait for the answer of the running task; it still runs if the wait is interrupted.

        Raises:
            Lost: the connection ended.
            Hung: the machine does not end the task within `seconds`.
        """
        assert self._running
        try:
            answer = self._running.output.content(seconds)
        except TimeoutError:
            errand, self._running = self._running, None
            errand.kill()
            raise Hung(f"{self._remote.host} did not end a task within {seconds:.0f} s") from None
        errand, self._running = self._running, None
        code, text = errand.end()
        if code == ENDED:
            raise errand.connection.lost(text)
        if code and len(answer) <= MOST_WHOLE:  # else it was killed for that
            return _failed(errand.task, self._remote.host, code, text)
        try:
            header, files = unpack(answer)
            told = header.text if header.code == Exit.GOOD else text or header.text
            return check(errand.task, header.model_copy(update={"text": told}), files)
        except Refused as error:
            return _failed(errand.task, self._remote.host, Exit.FAILED, str(error))


class _Errand:
    """A task that runs on the machine until its standard input ends."""

    def __init__(self, task: Task, visit: Visit) -> None:
        process = visit.errand()
        assert process.stdin and process.stdout and process.stderr
        self.task = task
        self.connection = visit.connection
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

    def kill(self) -> None:
        """End the connection's part of it."""
        self._process.kill()

    def end(self) -> tuple[int, str]:
        """Wait until it has ended: the exit code, and the summary of its messages."""
        with self.connection.limited(ANSWER_SECONDS):
            self.stop()
            if len(self.output.content()) > MOST_WHOLE:
                self.kill()
            return self._process.wait(), summarise_failure(self._messages.text())[-MOST_TEXT:]


def _failed(task: Task, host: str, code: int, text: str) -> Answer:
    """The answer of a task without files."""
    return check(task, Header(task=task.id, host=host, code=code, text=text), {})
