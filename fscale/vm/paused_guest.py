# SPDX-License-Identifier: GPL-2.0-only
"""A guest that runs only on request: it is paused and continued through QMP, with its clocks.

QEMU's virtual clock stops while a guest is paused, and so do the guest's timers and its time stamp
counter. So no timer has expired when the guest continues, and no work has accumulated.
"""

import contextlib
import json
import select
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from fscale.model.errors import FscaleError
from fscale.vm import guest as guests
from fscale.vm.guest import GuestError, GuestOutcome, Hold
from fscale.vm.hang import scheduled_seconds
from fscale.vm.place import Job
from fscale.vm.qemu import LINE, QMP, Guest, Qemu
from fscale.vm.steps import Steps

QMP_SECONDS = 60.0
LONGEST_LINE = 1 << 16
# The interval of attempts to reach a guest that does not answer yet, or no longer.
LOOK_SECONDS = 0.1


class GuestGone(FscaleError):  # noqa: N818
    """The guest has ended, or no longer answers."""


class Qmp:
    """QEMU's machine protocol: one command at a time."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(QMP_SECONDS)
        try:
            self._socket.connect(str(path))
            self._file = self._socket.makefile("rwb")
            self._file.readline(LONGEST_LINE)  # the greeting
            self.execute("qmp_capabilities")
        except BaseException:
            self._socket.close()
            raise

    def execute(self, command: str) -> Any:
        """The result of a command without arguments; GuestGone if QEMU does not confirm it."""
        try:
            self._file.write(json.dumps({"execute": command}).encode() + b"\n")
            self._file.flush()
            while line := self._file.readline(LONGEST_LINE):
                answer = json.loads(line)
                if "return" in answer:
                    return answer["return"]
                if "error" in answer:
                    raise GuestGone(f"QEMU refuses to {command}: {answer['error']}")
        except (OSError, ValueError) as error:
            raise GuestGone(f"QEMU did not answer the command {command}: {error}") from None
        raise GuestGone(f"QEMU ended during the command {command}")

    def cpu_threads(self) -> list[Path]:
        """The threads of the guest's CPUs; several CPUs may share one."""
        ids = {int(cpu["thread-id"]) for cpu in self.execute("query-cpus-fast")}
        return [Path(f"/proc/{number}/task/{number}") for number in sorted(ids)]

    def close(self) -> None:
        """Close the connection to QEMU."""
        self._socket.close()


class PausedGuest:
    """A guest that runs beside this process during the `with` block.

    It is running when the block begins; the output of its job goes to the file `log`.
    """

    def __init__(self, guest: Guest, emulator: Qemu, job: Job, log: Path, steps: Steps) -> None:
        self._boot = (guest, emulator, job, log, steps)
        self._hold = Hold()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._sockets = Path()
        self._machine: Qmp | None = None
        self._line: socket.socket | None = None
        self._cpus: list[Path] = []
        self._heard = b""
        self._spoke = False
        self._outcome: GuestOutcome | None = None
        self._error: BaseException | None = None

    def __enter__(self) -> Self:
        # In a directory of its own: the path of a socket has at most 107 characters.
        self._sockets = Path(tempfile.mkdtemp(prefix="fscale-held-"))
        self._hold.alive = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._hold.end = True
        self._thread.join()
        self._disconnect()
        shutil.rmtree(self._sockets, ignore_errors=True)

    def _run(self) -> None:
        guest, emulator, job, log, steps = self._boot
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("wb") as sink:
                job = replace(job, held=self._sockets)
                self._outcome = guests.run(guest, emulator, job, steps, sink, self._hold)
        except BaseException as error:
            self._error = error

    def _connect(self) -> None:
        """Connect to the guest's QEMU if there is one; a repeated boot has a new one."""
        if self._line:
            return
        try:
            # Connect here first: QEMU creates the line before it answers.
            machine = Qmp(self._sockets / QMP)
            self._cpus = machine.cpu_threads()
        except (OSError, GuestGone):
            return
        line = socket.socket(socket.AF_UNIX)
        try:
            line.connect(str(self._sockets / LINE))
        except OSError:
            line.close()
            machine.close()
            return
        line.setblocking(False)
        self._machine, self._line, self._heard = machine, line, b""

    def _disconnect(self) -> None:
        if self._line:
            self._line.close()
        if self._machine:
            self._machine.close()
        self._line = self._machine = None

    def receive(self) -> str | None:
        """The next line of the job, without its end, if there is one. Raises GuestGone."""
        self._connect()
        if self._line:
            self._receive(self._line)
        line, end, rest = self._heard.partition(b"\n")
        if end:
            self._heard, self._spoke = rest, True
            self._hold.alive = time.monotonic()
            return line.decode(errors="replace")
        if len(self._heard) > LONGEST_LINE:
            raise GuestGone("the guest sent a line that is too long")
        if not self._thread.is_alive():
            raise GuestGone("the guest has ended")
        return None

    def _receive(self, line: socket.socket) -> None:
        try:
            part = line.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        if part:
            self._heard += part
            return
        self._disconnect()
        if self._spoke:
            self._thread.join()
            raise GuestGone("the guest has ended")
        self._heard = b""  # it is booted again

    def wait(self, seconds: float) -> None:
        """Sleep until the job may have sent something, or until the timeout."""
        if self._line:
            select.select([self._line], [], [], seconds)
        else:
            time.sleep(min(seconds, LOOK_SECONDS))

    def send(self, letter: str) -> None:
        """Send the job a letter. Raises GuestGone."""
        try:
            assert self._line
            self._line.sendall(letter.encode())
        except OSError as error:
            raise GuestGone(f"cannot reach the guest: {error}") from None

    def stop(self) -> None:
        """Pause the guest and its clocks. Raises GuestGone."""
        assert self._machine
        self._machine.execute("stop")
        self._hold.stopped = True

    def resume(self) -> None:
        """Continue the guest if it is paused. Raises GuestGone."""
        if not self._machine or not self._hold.stopped:
            return
        self._hold.alive = time.monotonic()
        self._hold.stopped = False
        self._machine.execute("cont")

    def cpu_wait_seconds(self) -> float:
        """Seconds that its CPU threads have waited for a host CPU so far. Raises GuestGone."""
        try:
            return sum(scheduled_seconds(thread)[1] for thread in self._cpus)
        except OSError as error:
            raise GuestGone(f"cannot read the times of the guest's CPUs: {error}") from None

    def raise_cause(self) -> None:
        """Raise the error that ended the guest, if there was one."""
        if not self._thread.is_alive():
            self.finish()

    def finish(self) -> GuestOutcome:
        """Let the guest run to its end, and return the outcome.

        Raises GuestError if it did not end by itself, and the exceptions of its boot.
        """
        with contextlib.suppress(GuestGone):
            self.resume()
        self._thread.join()
        if self._error:
            raise self._error
        assert self._outcome
        if self._outcome.end != "finished":
            raise GuestError(self._outcome)
        return self._outcome


def wait_for_answers(held: Mapping[str, PausedGuest], seconds: float) -> dict[str, str]:
    """Let these guests run until each has sent a line; each is paused as soon as it has.

    Raises GuestGone if one has sent nothing within `seconds`, or has ended.
    """
    answers: dict[str, str] = {}
    deadline = time.monotonic() + seconds
    while silent := held.keys() - answers.keys():
        for name in silent:
            if (line := held[name].receive()) is not None:
                held[name].stop()
                answers[name] = line
            else:
                held[name].resume()
        left = deadline - time.monotonic()
        if left < 0 and held.keys() - answers.keys():
            raise GuestGone(f"a guest did not answer for {seconds:g} s")
        for name in held.keys() - answers.keys():
            held[name].wait(min(left, LOOK_SECONDS) if len(held) > 1 else left)
    return answers
