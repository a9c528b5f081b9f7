# SPDX-License-Identifier: GPL-2.0-only
"""One boot of a simulated guest: starts it, reads its output, reports how it ended."""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fscale.model.errors import Exit, FscaleError
from fscale.model.fault import Fault
from fscale.model.files import strip_escapes
from fscale.sim import rules
from fscale.sim.emulator import BootFiles
from fscale.sim.output import (
    Code,
    Conflicts,
    Ended,
    ModeEnd,
    Parameters,
    PluginWindow,
    Record,
    Sign,
    Stream,
    Trouble,
)
from fscale.sim.plan import GuestPoint
from fscale.sim.symbols import Symbols
from fscale.vm import console, untrusted
from fscale.vm.cache import cache_root
from fscale.vm.qemu import protected

# Heartbeats come every 5 s while clocks are kept; there are none while the guest boots, makes file
# systems and takes CPUs offline.
STUCK_SECONDS = 60.0
SILENT_SECONDS = 600.0
MOST_STACKS = 16
# /proc/kallsyms has some 10 MB.
LARGEST = 64 << 20
LOG_BYTES = 1 << 20
MONITOR_PROMPT = b"(qemu) "
# The offset of each CPU's copy of a per-CPU object from the address of its symbol.
PER_CPU_OFFSETS = "__per_cpu_offset"


class BootError(FscaleError):
    """A guest ended before its plan was done, or hung; `point` is the one that it simulated."""

    code = Exit.FAILED

    def __init__(self, text: str, point: int | None, fault: Fault = "machine") -> None:
        super().__init__(text, fault=fault)
        self.point = point


@dataclass
class PointResult:
    """The result of a point: the windows and the bench's output, or why there are none."""

    point: GuestPoint
    windows: list[PluginWindow] = field(default_factory=list)
    code: list[tuple[str, int]] = field(default_factory=list)
    """instructions by the address of a block, of all windows"""
    conflicts: list[Conflicts] = field(default_factory=list)
    """of pairs of calls, in the order of their execution"""
    bench: str | None = None
    """what the program printed"""
    status: int = 0
    failed: str | None = None
    stderr: str = ""
    host_seconds: float = 0.0
    """seconds since the previous point, or since the guest was up"""
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    """CPU seconds of QEMU since the previous point's windows, by the plugin's mode"""


class Boot:
    """A QEMU process with a plan; a context manager that always ends it."""

    def __init__(self, points: Sequence[GuestPoint], plan: str, free: Sequence[str]) -> None:
        """`free`: rules of objects that cost nothing, GROUP:RULE, as in sim/rules.py."""
        base = cache_root() / "run"
        base.mkdir(parents=True, exist_ok=True)
        self.place = BootFiles(Path(tempfile.mkdtemp(dir=base, prefix=f"{os.getpid()}-simulated-")))
        (self.place.shared / "points").mkdir(parents=True)
        (self.place.shared / "plan").write_text(plan)
        self._free = free
        self.points = {point.number: point for point in points}
        self.up: float | None = None
        self._windows: dict[int, list[PluginWindow]] = {}
        self._code: dict[int, list[tuple[str, int]]] = {}
        self._conflicts: list[Conflicts] = []
        self._cpu: dict[int, dict[str, float]] = {}
        self._cpu_now: dict[str, float] = {}
        self._stream = Stream(self.place.output)
        self._done: set[int] = set()
        self._sign: Sign | None = None
        self._trouble: str | None = None
        self._symbols: Symbols | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, argv: list[str], environment: dict[str, str]) -> None:
        """Start QEMU."""
        self._started = self._alive = self._signed = self._last = time.monotonic()
        with self.place.errors.open("wb") as errors:
            self._process = subprocess.Popen(
                protected(argv),
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env=environment,
                # Only this process gets Ctrl-C; it then ends the guest.
                start_new_session=True,
            )

    def __enter__(self) -> "Boot":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End QEMU if it runs, and remove the files of the boot."""
        if self._process is not None:
            if self._process.poll() is None:
                self._process.kill()
            self._process.wait()
        shutil.rmtree(self.place.base, ignore_errors=True)

    @property
    def unfinished(self) -> list[GuestPoint]:
        """The points that are not done."""
        return [point for number, point in self.points.items() if number not in self._done]

    @property
    def current(self) -> int | None:
        """The number of the point that is being simulated; None if all are done."""
        return next((number for number in self.points if number not in self._done), None)

    @property
    def executed(self) -> int:
        """How many pairs of calls the current point has executed."""
        return len(self._conflicts)

    @property
    def ended(self) -> bool:
        """Whether every point is done."""
        return self.current is None

    def poll(self) -> list[PointResult]:
        """The points that ended since the last call.

        BootError if the guest has ended or hangs, or if the plugin gave up.
        """
        assert self._process is not None
        gone = self._process.poll() is not None
        if self.up is None and (self.place.shared / "kallsyms").exists():
            self._last = time.monotonic()
            self.up = self._last - self._started
            self._tell_rules()
        # Read this before the windows: if it shows a point's end, all windows of it are written.
        numbers = self._newly_done()
        for record in self._stream.read():
            self._keep(record)
        results = [self._measured(number) for number in numbers]
        if results:
            return results  # errors of the guest are raised after these are stored
        if self._trouble is not None:
            raise BootError(f"the simulator gave up: {self._trouble}", self.current)
        if gone and not self.ended:
            raise self._gone()
        if not self.ended and (hung := self._hung()):
            raise BootError(f"{hung}. {self.stacks()}", self.current, "filesystem")
        return []

    def logs(self) -> dict[str, bytes]:
        """Logs that explain how it ended, by name: the last output of guest, QEMU and plugin."""
        files = (self.place.console, self.place.errors, self.place.output)
        return {path.name: path.read_bytes()[-LOG_BYTES:] for path in files if path.exists()}

    def symbols(self) -> Symbols:
        """The guest's symbols; FileNotFoundError before it has written them."""
        if self._symbols is not None:
            return self._symbols
        lines = self.kallsyms().splitlines()
        plain = Symbols(lines)
        places: list[int] = []
        if (known := plain.extent(PER_CPU_OFFSETS)) is not None:
            cpus = max((point.key.cores for point in self.points.values()), default=1)
            places = self._words(known[0].start, cpus)
        if not places:
            return plain
        self._symbols = Symbols(lines, places)
        return self._symbols

    def kallsyms(self) -> str:
        """The guest's /proc/kallsyms."""
        return _text(self.place.shared / "kallsyms")

    @property
    def done(self) -> bool:
        """Whether the guest reached the end of its plan."""
        return (self.place.shared / "done").exists()

    def _tell_rules(self) -> None:
        """Tell the plugin which objects are free, and let the guest continue."""
        told = []
        for group, _, words in (rule.partition(":") for rule in self._free):
            try:
                told.append(f"{group}:{rules.placed(words, self.symbols())}\n")
            except KeyError as error:
                raise BootError(
                    f"the guest has no {error}, which should cost nothing (--free)", None
                ) from None
        self.place.rules.write_text("".join(told))
        (self.place.shared / "go").touch()

    def _keep(self, record: Record) -> None:
        match record:
            case PluginWindow():
                self._windows.setdefault(record.point, []).append(record)
                self._alive = time.monotonic()
            case Conflicts():
                self._conflicts.append(record)
            case Code():
                self._code[record.point] = record.code
            case ModeEnd():
                self._add_cpu(record)
            case Sign():
                self._take(record)
            case Trouble():
                self._trouble = record.text
            case Parameters() | Ended():
                pass

    def _take(self, sign: Sign) -> None:
        self._signed = time.monotonic()
        if self._sign is None or sign.instructions != self._sign.instructions:
            self._alive = self._signed
        self._sign = sign

    def _add_cpu(self, end: ModeEnd) -> None:
        if end.mode == "fast":  # a point begins with it
            self._cpu_now = {}
        self._cpu_now[end.mode] = self._cpu_now.get(end.mode, 0) + end.cpu_seconds
        if end.mode == "detailed":
            self._cpu[end.point] = self._cpu_now

    def _newly_done(self) -> list[int]:
        return [
            number
            for number in self.points
            if number not in self._done
            and any(self._left(number, end).exists() for end in (".failed", ".json"))
        ]

    def _left(self, number: int, suffix: str) -> Path:
        """A file of a point that the guest writes."""
        return self.place.shared / "points" / f"{number}{suffix}"

    def _measured(self, number: int) -> PointResult:
        measured = PointResult(
            self.points[number],
            self._windows.pop(number, []),
            self._code.pop(number, []),
            self._conflicts,
            cpu_seconds=self._cpu.pop(number, {}),
        )
        self._conflicts = []
        now = time.monotonic()
        measured.host_seconds, self._last = now - self._last, now
        if self._left(number, ".failed").exists():
            measured.failed = _text(self._left(number, ".failed")).strip()
        else:
            measured.bench = _text(self._left(number, ".json"))
            measured.stderr = _text(self._left(number, ".stderr")).strip()
            status = _text(self._left(number, ".status")).strip()
            measured.status = int(status) if status.isdecimal() else 1
        self._done.add(number)
        self._alive = now
        return measured

    def _gone(self) -> BootError:
        """The error of a guest that ended early: its kernel's, or QEMU's, as when it is killed."""
        log = self.place.console
        text = log.read_text(errors="replace") if log.exists() else ""
        verdict = console.judge(text)
        reported = re.findall(r"^fscale-sim: (.*)$", strip_escapes(text), re.M)
        errors = self.place.errors.read_text(errors="replace").strip()
        words = reported[-1:] or [verdict.summary or "", *errors.splitlines()[-3:]]
        why = "; ".join(filter(None, words)) or "it printed nothing"
        blamed: Fault = "filesystem" if reported or verdict.summary else "machine"
        return BootError(f"the guest ended early: {why}", self.current, blamed)

    def _hung(self) -> str | None:
        now = time.monotonic()
        if now - max(self._alive, self._signed) > SILENT_SECONDS:
            return f"the guest sent no heartbeat for {SILENT_SECONDS:.0f} s"
        # There are heartbeats, but all with the same progress.
        if self._signed - self._alive > STUCK_SECONDS and self._sign is not None:
            return (
                f"no instruction was simulated for {STUCK_SECONDS:.0f} s "
                f"(CPU {self._sign.vcpu} is to run next)"
            )
        return None

    def stacks(self) -> str:
        """The functions in which the CPUs are that are not idle."""
        with contextlib.suppress(OSError, FscaleError):
            return _where(self._ask("info registers -a"), self.symbols())
        return "QEMU does not report the state of its CPUs."

    def _words(self, address: int, count: int) -> list[int]:
        """Words of the guest's memory; none if QEMU does not return them."""
        with contextlib.suppress(OSError):
            words = _words(self._ask(f"x/{count}gx {address:#x}"))
            return words if len(words) == count else []
        return []

    def _ask(self, command: str) -> str:
        """The answer of QEMU's monitor; OSError if there is none."""
        answer = b""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(5)
            line.connect(str(self.place.monitor))
            line.sendall(f"{command}\n".encode())
            # The monitor sends a prompt at the start, and one after the answer.
            with contextlib.suppress(TimeoutError):
                while answer.count(MONITOR_PROMPT) < 2 and (chunk := line.recv(65536)):
                    answer += chunk
        return answer.decode(errors="replace")


def _where(registers: str, symbols: Symbols) -> str:
    """Summarise `info registers -a`: the CPUs in each function."""
    places: dict[str, list[str]] = {}
    for cpu, pc, halted in re.findall(r"CPU#(\d+).*?RIP=([0-9a-f]+).*?HLT=(\d)", registers, re.S):
        if halted == "0":
            places.setdefault(symbols.function(int(pc, 16)), []).append(cpu)
    shown = [f"{name} (CPU {', '.join(cpus[:4])})" for name, cpus in places.items()]
    return f"CPUs that are not idle: {', '.join(shown[:MOST_STACKS]) or 'none'}"


def _words(dump: str) -> list[int]:
    """The words in the output of `x/gx`."""
    rows = re.findall(r"^[0-9a-f]{16}:((?: 0x[0-9a-f]{16})+)", dump, re.M)
    return [int(word, 16) for row in rows for word in row.split()]


def _text(path: Path) -> str:
    """A file that the guest wrote."""
    return untrusted.read(path, LARGEST).decode(errors="replace")
