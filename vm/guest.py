# SPDX-License-Identifier: GPL-2.0-only
"""One boot of a guest: starts it, relays its output, ends it, says how it went."""

import contextlib
import json
import os
import platform
import selectors
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Literal

from fscale.model.errors import Exit, FscaleError, Interrupted
from fscale.model.revision import revision
from vm import console, qemu
from vm.cache import cache_root
from vm.kernel import Kernel
from vm.options import GuestOptions
from vm.steps import Steps

End = Literal["finished", "panic", "oom", "hang", "timeout", "died"]

INIT = Path(__file__).parent / "init" / "guest.sh"
# What nothing else loads; a kernel may lack it or have it built in. A file system's module comes
# with its first mount: all of them would take an emulated guest seconds.
MODULES = ("loop", "configfs")
# A guest that boots says so well within this, even on a busy machine.
BOOT_SECONDS = 180.0
# It says every 5 s that it lives.
SILENT_SECONDS = 90.0
DUMP_SECONDS = 7.0


@dataclass(frozen=True)
class Job:
    """What a guest is to do."""

    argv: Sequence[str]
    output: Path | None = None
    """host directory that the guest sees as /results"""
    modules: Sequence[Path] = ()
    """modules under test, loaded in this order"""
    files: Mapping[str, Path] = field(default_factory=dict)
    """host files by the name they get in the guest's /control"""
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 3600.0


@dataclass(frozen=True)
class Outcome:
    """How a boot ended. `returncode` is the job's; None when it never got that far."""

    end: End
    returncode: int | None
    seconds: float
    boot_seconds: float | None
    summary: str | None
    report: str | None
    console: Path


class GuestError(FscaleError):
    """A guest that did not end by itself: panic, out of memory, hang, time limit."""

    code = Exit.FAILED

    def __init__(self, outcome: Outcome) -> None:
        what = {
            "panic": "the guest's kernel panicked",
            "oom": "the guest ran out of memory (give it more with --memory)",
            "hang": f"the guest hung: no sign of life for {SILENT_SECONDS:.0f} s",
            "timeout": f"the time limit ended the guest after {outcome.seconds:.0f} s (--timeout)",
            "died": "QEMU ended early",
            "finished": "the guest finished",
        }[outcome.end]
        summary = f": {outcome.summary}" if outcome.summary else ""
        report = f"\n{outcome.report}" if outcome.report else ""
        super().__init__(f"{what}{summary}{report}\nconsole log: {outcome.console}")
        self.outcome = outcome


class Machine:
    """A QEMU process and its control directory; a context manager that leaves no process behind."""

    def __init__(self, argv: list[str], environment: dict[str, str], control: Path) -> None:
        self.control = control
        self._monitor = control / "monitor"
        self._errors = (control / "qemu.log").open("wb")
        self.process = subprocess.Popen(
            qemu.protected(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
            # Ctrl-C is for this process, which then ends the guest in its own order.
            start_new_session=True,
        )

    def __enter__(self) -> "Machine":
        return self

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._errors.close()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._monitor.unlink(missing_ok=True)

    def autopsy(self) -> int:
        """Get out of a stuck guest what it can still say; the console's length before that.

        A live one shows its blocked tasks; then an NMI makes the kernel panic with the stacks of
        all CPUs.
        """
        log = self.control / "console.log"
        before = log.stat().st_size if log.exists() else 0
        (self.control / "dump").touch()
        time.sleep(DUMP_SECONDS)
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as line:
            line.settimeout(5)
            line.connect(str(self._monitor))
            line.sendall(b"nmi\n")
            line.recv(4096)
            # The reports go over the slow serial line.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(15)
        return before


def describe(guest: qemu.Guest, emulator: qemu.Qemu) -> dict[str, str | int]:
    """What results from this guest must carry: `machine.guest` in run.json."""
    return {
        "kernel": guest.kernel.name,
        "release": guest.kernel.release,
        "accelerator": guest.accelerator,
        "host": platform.node(),
        "qemu": emulator.version,
        "smp": guest.smp,
        "memory": guest.memory,
        "label": guest.label(),
    }


def write_control(control: Path, job: Job, about: Mapping[str, str | int]) -> None:
    """Fill the directory that the guest's init reads."""
    modules = control / "modules"
    modules.mkdir()
    shutil.copy(INIT, control / "init")
    (modules / "wanted").write_text("".join(f"{name}\n" for name in MODULES))
    names = []
    for path in job.modules:
        if not path.is_file():
            raise FscaleError(f"the module {path} does not exist")
        shutil.copy(path, modules / path.name)
        names.append(f"{path.name}\n")
    (modules / "order").write_text("".join(names))
    for name, path in job.files.items():
        if not path.is_file():
            raise FscaleError(f"{path} does not exist")
        (control / name).parent.mkdir(exist_ok=True)
        shutil.copy(path, control / name)
    variables = {
        "PYTHONPATH": "/fscale:/python",
        "FSCALE_GUEST": json.dumps(about),
        "FSCALE_REVISION": revision() or "",
        # pydantic looks for plugins among all installed packages.
        "PYDANTIC_DISABLE_PLUGINS": "__all__",
        **job.environment,
    }
    exports = "".join(f"export {name}={shlex.quote(text)}\n" for name, text in variables.items())
    (control / "job").write_text(
        f"{exports}cd /fscale\n{shlex.join(job.argv)}\necho $? >/run/job-status\n"
    )


def plan(guest: qemu.Guest, emulator: qemu.Qemu, job: Job, control: Path) -> list[str]:
    """The QEMU command line of a job."""
    images = dict(guest.images)
    if guest.kernel.modules is not None:
        images["modules"] = guest.kernel.modules
    shares = {"control": control, "results": job.output or control / "results"}
    return qemu.command(
        emulator,
        guest,
        images=images,
        shares=shares,
        console=control / "console.log",
        monitor=control / "monitor",
    )


@contextlib.contextmanager
def control_directory() -> Iterator[Path]:
    """A fresh control directory; those whose process was killed are removed."""
    base = cache_root() / "run"
    base.mkdir(parents=True, exist_ok=True)
    for stale in base.iterdir():
        pid = stale.name.split("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            shutil.rmtree(stale, ignore_errors=True)
    directory = Path(tempfile.mkdtemp(dir=base, prefix=f"{os.getpid()}-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def run(
    guest: qemu.Guest,
    emulator: qemu.Qemu,
    job: Job,
    steps: Steps,
    output: IO[bytes] | None = None,
) -> Outcome:
    """Boot `guest`, run `job` in it, and say how it ended; no guest process survives the call.

    The job's output goes to `output` (default: standard output) as it comes. The console log, the
    QEMU command and the outcome stay in `guest/` of the results, without results in the cache.
    """
    with control_directory() as control:
        (control / "results").mkdir()
        if job.output is not None:
            job.output.mkdir(parents=True, exist_ok=True)
        write_control(control, job, describe(guest, emulator))
        argv = plan(guest, emulator, job, control)
        steps.note(f"booting {guest.kernel.name} ({guest.kernel.release}), {guest.accelerator}")
        started = time.monotonic()
        sink = output or sys.stdout.buffer
        try:
            with Machine(argv, emulator.environment(), control) as machine:
                end, booted = _follow(machine, job.timeout, started, steps, sink)
                own_words = machine.autopsy() if end != "finished" else None
        except KeyboardInterrupt:
            raise Interrupted(
                "the guest was stopped; what it finished is kept, and the same command with the "
                "same --output goes on from there"
            ) from None
        outcome = _judge(control, end, booted, time.monotonic() - started, own_words)
        return _keep(control, job, argv, outcome)


def _follow(
    machine: Machine, timeout: float, started: float, steps: Steps, sink: IO[bytes]
) -> tuple[End, float | None]:
    """Relay the job's output until the guest ends or is ended."""
    stdout = machine.process.stdout
    assert stdout is not None
    heartbeat = machine.control / "heartbeat"
    booted: float | None = None
    alive = started
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
            now = time.monotonic()
            with contextlib.suppress(FileNotFoundError):
                age = time.time() - heartbeat.stat().st_mtime
                alive = max(alive, now - max(age, 0.0))
                if booted is None:
                    booted = now - started
                    steps.note(f"up after {booted:.1f} s")
            limit = BOOT_SECONDS if booted is None else SILENT_SECONDS
            if now - alive > limit:
                return "hang", booted
            if now - started > timeout:
                return "timeout", booted


def _judge(
    control: Path, end: End, booted: float | None, seconds: float, own_words: int | None
) -> Outcome:
    """Put together the exit status, the console and the way it ended.

    `own_words`: length of the console before we made the guest panic; what follows is a report but
    no complaint.
    """
    log = control / "console.log"
    raw = log.read_bytes() if log.exists() else b""
    text = raw.decode(errors="replace")
    verdict = console.judge(raw[:own_words].decode(errors="replace"))
    report = verdict.report
    if own_words is not None:
        after = console.plain(raw[own_words:].decode(errors="replace"))
        report = "\n".join(after.splitlines()[: console.LONGEST])
    status = control / "status"
    returncode = int(status.read_text()) if status.exists() and status.read_text().strip() else None
    summary = verdict.summary
    if end == "finished" and returncode is None:
        end = verdict.trouble or "died"
    elif end == "finished" and returncode != 0 and verdict.trouble == "oom":
        end = "oom"
    if end == "died":
        said = (control / "qemu.log").read_text(errors="replace").strip()
        tail = "\n".join(console.plain(text).splitlines()[-5:])
        summary = said or tail or "QEMU ended without a word"
    return Outcome(end, returncode, seconds, booted, summary, report, log)


def _keep(control: Path, job: Job, argv: list[str], outcome: Outcome) -> Outcome:
    """Copy what explains the outcome into the results; into the cache when there are none.

    A results directory without a run must stay empty: the runner refuses to start in another's.
    """
    kept = cache_root() / "last-guest"
    if job.output is not None and (job.output / "run.json").exists():
        kept = job.output / "guest"
    kept.mkdir(exist_ok=True)
    for name in ("console.log", "qemu.log"):
        if (control / name).exists():
            shutil.copy(control / name, kept / name)
    outcome = Outcome(**{**asdict(outcome), "console": kept / "console.log"})
    (kept / "command").write_text(shlex.join(argv) + "\n")
    (kept / "outcome.json").write_text(json.dumps(asdict(outcome), indent=1, default=str) + "\n")
    if outcome.report:
        (kept / "report.txt").write_text(outcome.report + "\n")
    return outcome


def prepare(
    kernel: Kernel, options: GuestOptions, images: Mapping[str, Path], steps: Steps
) -> tuple[qemu.Guest, qemu.Qemu]:
    """Choose QEMU and the accelerator for a kernel; `images` are those of `rootfs.images`."""
    emulator = qemu.find(steps)
    how = qemu.accelerator(options.accel, options.deterministic, emulator, kernel, steps)
    guest = qemu.Guest(kernel, options.smp, options.memory, how, options.append, images)
    return guest, emulator
