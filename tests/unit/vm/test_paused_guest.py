# SPDX-License-Identifier: GPL-2.0-only
"""A guest that is stopped and continued, with a QEMU that is made up: two sockets and a thread."""

import json
import os
import socket
import threading
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import IO, Any, cast

import pytest
from rich.console import Console

from fscale.vm.guest import GuestError, GuestOutcome, Hold
from fscale.vm.paused_guest import GuestGone, PausedGuest, wait_for_answers
from fscale.vm.place import Job
from fscale.vm.qemu import LINE, QMP, Guest, Qemu
from fscale.vm.steps import Steps

Script = Callable[["FakeQemu"], None]
SCRIPTS: dict[str, tuple[tuple[Script, ...], str]] = {}


class FakeQemu:
    """What listens in the directory of who holds it, and what it was told to do."""

    def __init__(self, directory: Path, hold: Hold) -> None:
        self.hold = hold
        self.commands: list[str] = []
        self._listeners = []
        for name in (LINE, QMP):
            listener = socket.socket(socket.AF_UNIX)
            (directory / name).unlink(missing_ok=True)
            listener.bind(str(directory / name))
            listener.listen()
            listener.settimeout(10)
            self._listeners.append(listener)
        self._control = self._listeners[1].accept()[0]
        self._file = self._control.makefile("rwb")
        self._tell({"QMP": {}})
        self.obey("qmp_capabilities")
        self.obey("query-cpus-fast", value=[{"thread-id": os.getpid()}])
        self.line = self._listeners[0].accept()[0]

    def _tell(self, what: dict[str, Any]) -> None:
        self._file.write(json.dumps(what).encode() + b"\r\n")
        self._file.flush()

    def obey(self, expected: str, answer: str = "return", value: Any = None) -> None:
        """Take one command, which must be this one; an event comes before the answer."""
        self.commands.append(json.loads(self._file.readline())["execute"])
        assert self.commands[-1] == expected
        self._tell({"event": "STOP"})
        self._tell({answer: value or {}})

    def says(self, text: str) -> None:
        self.line.sendall(text.encode())

    def end(self) -> None:
        self._file.close()
        for one in (self.line, self._control, *self._listeners):
            one.close()


def outcome(end: str = "finished") -> GuestOutcome:
    return GuestOutcome(cast("Any", end), 0, 1.0, 1.0, None, None, Path("console.log"))


def guest_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *scripts: Script, ended: str = "finished"
) -> PausedGuest:
    """A guest whose boots follow these scripts, one after the other."""
    name = f"job-{len(SCRIPTS)}"
    SCRIPTS[name] = (scripts, ended)

    def run(
        _guest: Guest, _qemu: Qemu, job: Job, _steps: Steps, sink: IO[bytes], hold: Hold
    ) -> GuestOutcome:
        assert job.held
        sink.write(b"output of the job\n")
        own, how = SCRIPTS[job.argv[0]]
        for script in own:
            qemu = FakeQemu(job.held, hold)
            script(qemu)
            qemu.end()
        return outcome(how)

    monkeypatch.setattr("fscale.vm.guest.run", run)
    steps = Steps(Console(file=StringIO()))
    none = cast("Any", None)
    return PausedGuest(none, none, Job(argv=[name]), tmp_path / f"{name}.log", steps)


def test_it_is_stopped_as_soon_as_it_has_spoken_and_goes_on_when_it_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stopped = []

    def script(qemu: FakeQemu) -> None:
        qemu.says("first\nsec")
        qemu.obey("stop")
        assert qemu.line.recv(1) == b"t"
        qemu.obey("cont")
        stopped.append(qemu.hold.stopped)
        qemu.says("ond\n")
        qemu.obey("stop")
        qemu.obey("cont")

    with guest_of(monkeypatch, tmp_path, script) as guest:
        assert wait_for_answers({"A": guest}, 5) == {"A": "first"}
        guest.send("t")
        assert wait_for_answers({"A": guest}, 5) == {"A": "second"}
        assert guest.finish().end == "finished"
    assert stopped == [False]
    assert next(tmp_path.glob("*.log")).read_bytes() == b"output of the job\n"


def test_what_its_cpus_waited_for_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def script(qemu: FakeQemu) -> None:
        qemu.says("here\n")
        qemu.obey("stop")
        assert qemu.line.recv(1) == b""  # until it is let go

    with guest_of(monkeypatch, tmp_path, script) as guest:
        wait_for_answers({"A": guest}, 5)
        own = float(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9
        assert own <= guest.cpu_wait_seconds() < own + 5
        guest._disconnect()


def test_a_boot_that_is_repeated_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def good(qemu: FakeQemu) -> None:
        qemu.says("here\n")
        qemu.obey("stop")

    with guest_of(monkeypatch, tmp_path, lambda _: None, good) as guest:
        assert wait_for_answers({"A": guest}, 5) == {"A": "here"}


def test_a_guest_that_ends_early_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def script(qemu: FakeQemu) -> None:
        qemu.says("here\n")
        qemu.obey("stop")
        qemu.obey("cont")

    with guest_of(monkeypatch, tmp_path, script, ended="panic") as guest:
        wait_for_answers({"A": guest}, 5)
        with pytest.raises(GuestGone):
            wait_for_answers({"A": guest}, 5)
        with pytest.raises(GuestError, match="panicked"):
            guest.raise_cause()


def test_two_that_are_waited_for_are_stopped_one_by_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stopped = threading.Event()

    def quick(qemu: FakeQemu) -> None:
        qemu.says("ready\n")
        qemu.obey("stop")
        stopped.set()

    def slow(qemu: FakeQemu) -> None:
        assert stopped.wait(5)  # the quick one does not wait for this one
        qemu.says("ready\n")
        qemu.obey("stop")

    with (
        guest_of(monkeypatch, tmp_path, slow) as a,
        guest_of(monkeypatch, tmp_path, quick) as b,
    ):
        assert wait_for_answers({"A": a, "B": b}, 5) == {"A": "ready", "B": "ready"}


def test_a_command_that_qemu_refuses_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def script(qemu: FakeQemu) -> None:
        qemu.says("here\n")
        qemu.obey("stop", "error")

    with (
        guest_of(monkeypatch, tmp_path, script) as guest,
        pytest.raises(GuestGone, match="QEMU refuses to stop"),
    ):
        wait_for_answers({"A": guest}, 5)


def test_a_line_without_an_end_is_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def script(qemu: FakeQemu) -> None:
        with pytest.raises(OSError):
            while not qemu.hold.end:
                qemu.says("x" * 4096)

    with guest_of(monkeypatch, tmp_path, script) as guest:
        with pytest.raises(GuestGone, match="too long"):
            wait_for_answers({"A": guest}, 5)
        guest._disconnect()
