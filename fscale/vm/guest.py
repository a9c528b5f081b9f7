# SPDX-License-Identifier: GPL-2.0-only
"""One boot of a guest: starts it, relays its output, ends it, and reports the outcome."""

import contextlib
import json
import os
import platform
import selectors
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Literal

from fscale.model.errors import Exit, FscaleError, Interrupted
from fscale.model.files import strip_escapes
from fscale.vm import console, memory, qemu, replace_dir, untrusted
from fscale.vm.cache import cache_root
from fscale.vm.hang import Watch
from fscale.vm.kernel import Kernel
from fscale.vm.place import Job, JobFiles, place
from fscale.vm.request import GuestRequest
from fscale.vm.steps import Steps

End = Literal["finished", "panic", "oom", "still", "hang", "timeout", "died", "ended"]

# A guest boots and reports within this time, even on a busy machine.
BOOT_SECONDS = 180.0
# An emulated guest that stalls before its init runs is booted again: see docs/design/guests.md.
BOOTS = 3
# A guest sends a heartbeat every 5 s.
SILENT_SECONDS = 90.0
DUMP_SECONDS = 7.0


@dataclass
class Hold:
    """State that the controller of a paused guest sets from another thread."""

    alive: float = 0
    """when (`time.monotonic`) it last did what the controller requested"""
    stopped: bool = False
    """its clocks are stopped, so silence does not mean a hang"""
    end: bool = False
    """its result is no longer needed"""


@dataclass(frozen=True)
class GuestOutcome:
    """How a boot ended. `returncode` is the job's; None if the job did not end."""

    end: End
    returncode: int | None
    seconds: float
    boot_seconds: float | None
    summary: str | None
    report: str | None
    console: Path
    stood_still: int = 0
    """earlier boots that stalled before the job began"""


class GuestError(FscaleError):
    """A guest did not end by itself: panic, out of memory, hang, or time limit."""

    code = Exit.FAILED

    def __init__(self, outcome: GuestOutcome) -> None:
        what = {
            "panic": "the guest's kernel panicked",
            "oom": "the guest ran out of memory (give it more with --memory)",
            "still": f"the guest stalled during its boot ({outcome.stood_still + 1} times)",
            "hang": f"the guest hung: it sent no heartbeat for {SILENT_SECONDS:.0f} s",
            "timeout": f"the time limit ended the guest after {outcome.seconds:.0f} s (--timeout)",
            "died": "QEMU ended early",
            "finished": "the guest finished",
            "ended": "the guest was ended",
        }[outcome.end]
        summary = f": {outcome.summary}" if outcome.summary else ""
        report = f"\n{outcome.report}" if outcome.report else ""
        super().__init__(f"{what}{summary}{report}\nconsole log: {outcome.console}")
        self.outcome = outcome


class QemuProcess:
    """A QEMU process; a context manager that always ends it."""

    def __init__(self, argv: list[str], environment: dict[str, str], where: JobFiles) -> None:
        self.where = where
        self._errors = where.errors.open("wb")
        self.process = subprocess.Popen(
            qemu.protected(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
            # Only this process gets Ctrl-C; it then ends the guest in order.
            start_new_session=True,
        )

    def __enter__(self) -> "QemuProcess":
        return self

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._errors.close()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def autopsy(self, booted: bool) -> int:
        """Make a stuck guest print its state; returns the console's length before that.

        A live one that has booted shows its blocked tasks; then an NMI makes the kernel panic with
        the stacks of all CPUs.
        """
        log = self.where.console
        before = log.stat().st_size if log.exists() else 0
        if booted:
            (self.where.control / "dump").touch()
            time.sleep(DUMP_SECONDS)
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as line:
            line.settimeout(5)
            line.connect(str(self.where.monitor))
            line.sendall(b"nmi\n")
            line.recv(4096)
            # The reports go over the slow serial line.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(15)
        return before


def describe(guest: qemu.Guest, emulator: qemu.Qemu, stood_still: int = 0) -> dict[str, str | int]:
    """The description of the guest for its results: `machine.guest` in run.json."""
    return {
        "kernel": guest.kernel.name,
        "release": guest.kernel.release,
        "accelerator": guest.accelerator,
        "host": platform.node(),
        "qemu": emulator.version,
        "smp": guest.smp,
        "memory": guest.memory,
        "label": guest.label(),
        "stood_still": stood_still,
    }


def plan(guest: qemu.Guest, emulator: qemu.Qemu, job: Job, where: JobFiles) -> list[str]:
    """The QEMU command line of a job."""
    images = dict(guest.images)
    if guest.kernel.modules is not None:
        images["modules"] = guest.kernel.modules
    return qemu.command(
        emulator,
        guest,
        images=images,
        shares=where.shares(job),
        console=where.console,
        monitor=where.monitor,
        held=job.held,
    )


def run(
    guest: qemu.Guest,
    emulator: qemu.Qemu,
    job: Job,
    steps: Steps,
    output: IO[bytes] | None = None,
    hold: Hold | None = None,
) -> GuestOutcome:
    """Boot `guest`, run `job` in it, and say how it ended; no guest process survives the call.

    The job's output goes to `output` (default: standard output) as it comes. The console log, the
    QEMU command and the outcome stay in `guest/` of the results, without results in the cache. An
    emulated guest that stalls before the job begins is booted again, up to BOOTS times.
    """
    most = 1 if guest.accelerator == "kvm" else BOOTS
    silenced: list[bytes] = []
    while True:
        with place(job, describe(guest, emulator, len(silenced))) as where:
            argv = plan(guest, emulator, job, where)
            steps.note(f"booting {guest.kernel.name} ({guest.kernel.release}), {guest.accelerator}")
            # The last attempt gets the whole limit: the guest may be slow for another reason.
            patient = len(silenced) + 1 == most
            sink = output or sys.stdout.buffer
            outcome = _boot(argv, emulator, job, where, patient, steps, sink, hold or Hold())
            if outcome.end != "still" or patient:
                return _keep(where, job, argv, outcome, silenced)
            silenced.append(_bytes(where.console))
        steps.note(
            f"the guest stalled during its boot; booting it again ({len(silenced) + 1} of {most})"
        )


def _boot(
    argv: list[str],
    emulator: qemu.Qemu,
    job: Job,
    where: JobFiles,
    patient: bool,
    steps: Steps,
    sink: IO[bytes],
    hold: Hold,
) -> GuestOutcome:
    """One boot. A `patient` one does not count as stalled before BOOT_SECONDS."""
    started = time.monotonic()
    try:
        with QemuProcess(argv, emulator.environment(), where) as machine:
            watch = None if patient else Watch(machine.process.pid, where.console)
            end, booted = _follow(machine, job.timeout, started, watch, steps, sink, hold)
            stuck = end not in ("finished", "ended")
            own_words = machine.autopsy(booted is not None) if stuck else None
    except KeyboardInterrupt:
        raise Interrupted(
            "the guest was stopped; what it finished is kept, and the same command with the "
            "same --output resumes from there"
        ) from None
    return _judge(where, end, booted, time.monotonic() - started, own_words)


def _follow(
    machine: QemuProcess,
    timeout: float,
    started: float,
    watch: Watch | None,
    steps: Steps,
    sink: IO[bytes],
    hold: Hold,
) -> tuple[End, float | None]:
    """Relay the job's output until the guest ends or is ended."""
    stdout = machine.process.stdout
    assert stdout is not None
    heartbeat = machine.where.state / "heartbeat"
    booted: float | None = None
    alive, beat = started, None
    with selectors.DefaultSelector() as selector:
        selector.register(stdout, selectors.EVENT_READ)
        while True:
            if selector.select(timeout=0.5):
                chunk = os.read(stdout.fileno(), 65536)
                if not chunk:
                    machine.process.wait()
                    return "finished", booted
                sink.write(chunk)
                sink.flush()
            if hold.end:
                return "ended", booted
            now = time.monotonic()
            alive = max(alive, now if hold.stopped else hold.alive)
            with contextlib.suppress(FileNotFoundError):
                stamp = heartbeat.lstat().st_mtime_ns
                if stamp != beat:  # not its age: the clock may have been set
                    beat, alive = stamp, now
                if booted is None:
                    booted = now - started
                    steps.note(f"the guest is up after {booted:.1f} s")
            if booted is None and (now - started > BOOT_SECONDS or (watch and watch.still())):
                return "still", None
            if booted is not None and now - alive > SILENT_SECONDS:
                return "hang", booted
            if now - started > timeout:
                return "timeout", booted


def _judge(
    where: JobFiles, end: End, booted: float | None, seconds: float, own_words: int | None
) -> GuestOutcome:
    """The outcome from the exit status, the console and the way in which the guest ended.

    `own_words`: length of the console before this process made the guest panic; what follows is a
    report, but not a problem of the kernel.
    """
    raw = _bytes(where.console)
    text = raw.decode(errors="replace")
    verdict = console.judge(raw[:own_words].decode(errors="replace"))
    report = verdict.report
    if own_words is not None:
        after = strip_escapes(raw[own_words:].decode(errors="replace"))
        report = "\n".join(after.splitlines()[: console.LONGEST])
    returncode = _returncode(where.state / "status")
    summary = verdict.summary
    if end == "finished" and returncode is None:
        end = verdict.trouble or "died"
    elif end == "finished" and returncode != 0 and verdict.trouble == "oom":
        end = "oom"
    if end == "died":
        errors = _bytes(where.errors).decode(errors="replace").strip()
        tail = "\n".join(strip_escapes(text).splitlines()[-5:])
        summary = errors or tail or "QEMU ended without output"
    return GuestOutcome(end, returncode, seconds, booted, summary, report, where.console)


def _returncode(status: Path) -> int | None:
    """The job's exit status; None if the guest wrote none."""
    try:
        text = untrusted.read(status, 16).strip()
    except (FileNotFoundError, FscaleError):
        return None
    return int(text) if text.isdigit() else None


def _bytes(log: Path) -> bytes:
    """A log of the host's own; QEMU makes it when it gets that far."""
    return log.read_bytes() if log.exists() else b""


def _keep(
    where: JobFiles, job: Job, argv: list[str], outcome: GuestOutcome, silenced: list[bytes]
) -> GuestOutcome:
    """Save the logs that explain the outcome in the results, or in the cache if there are none.

    A results directory without a run must stay empty, because the runner refuses to start in a
    directory with other files. `silenced` are the consoles of the stalled boots.
    """
    kept = cache_root() / "last-guest"
    if job.output is not None and (job.output / "run.json").exists():
        kept = job.output / "guest"
    logs = {"console.log": _bytes(where.console), "qemu.log": _bytes(where.errors)}
    logs |= {f"stood-still-{n}.log": log for n, log in enumerate(silenced, start=1)}
    outcome = replace(outcome, console=kept / "console.log", stood_still=len(silenced))
    texts = {
        "command": shlex.join(argv),
        "outcome.json": json.dumps(asdict(outcome), indent=1, default=str),
    }
    if outcome.report:
        texts["report.txt"] = outcome.report
    files = logs | {name: f"{text}\n".encode() for name, text in texts.items()}
    replace_dir.replace(kept, files)
    return outcome


def prepare(
    kernel: Kernel, options: GuestRequest, images: Mapping[str, Path], steps: Steps
) -> tuple[qemu.Guest, qemu.Qemu]:
    """Choose QEMU and the accelerator for a kernel; `images` are those of `rootfs.images`.

    Raises FscaleError, also if a control group leaves less memory than the guest needs.
    """
    memory.check(options.memory)
    emulator = qemu.find(steps)
    how = qemu.accelerator(options.accel, options.deterministic, emulator, kernel, steps)
    guest = qemu.Guest(kernel, options.smp, options.memory, how, options.append, images)
    return guest, emulator
