# SPDX-License-Identifier: GPL-2.0-only
"""Reads the logs of FxMark itself, so that old figures can be drawn beside new ones.

The format is what `bin/run-fxmark.py`, `bin/perfmon.py`, `bin/run-dbench.py` and `src/bench.c` of
https://github.com/sslab-gatech/fxmark write:

    ### SYSTEM         = Linux host 4.2.0-rc8 #1 SMP ... x86_64 GNU/Linux
    ### DURATION       = 30s
    ## mem:ext4:DWOL:80:bufferedio
    # ncpu secs works works/sec real.sec user.sec nice.sec sys.sec idle.sec ...
    80 30.00 43465318.0 1449104.5 30.16 0.48 0 14.02 0.29 ...

Older ones name no I/O mode, and those without a profiler end after works/sec. Other lines, such as
what a workload printed, mean nothing. Of tmpfs, FxMark makes `directio` buffered. What the log does
not hold (when a cell ran, what ran beside it, latencies, memory, settings) is empty or 0 in the
result; CPU times that cannot be are left out.
"""

import hashlib
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from analysis.curves import NO_MEDIUM
from analysis.paper.table2 import table2
from analysis.reader import first_error
from fscale import __version__
from fscale.model.bench import CpuTimes, Mode
from fscale.model.errors import FscaleError
from fscale.model.files import Folder, printable
from fscale.model.results import MOST_CORES, Cell, CellKey, Cpu, Machine, Run

_SETTING = re.compile(r"### (\w+)\s*=\s*(.*)")
_CELL = re.compile(r"## ([\w.-]+):([\w.-]+):([\w.-]+):(\d+)(?::(\w+))?")
_COLUMNS = "# ncpu secs works works/sec"
_FOLDER = re.compile(r"(\d{4}-\d\d-\d\d)-(\d\d)-(\d\d)-(\d\d)(?:\.\d+)?")
_UNAME = re.compile(r"Linux (\S+) (\S+) .* (\S+) GNU/Linux")

_MODES: dict[str | None, Mode] = {
    None: "buffered",
    "buffered": "buffered",
    "bufferedio": "buffered",
    "directio": "direct",
}
_FILESYSTEMS = {"ext4_no_jnl": "ext4_nj"}
# Both are a file on tmpfs behind a loop device.
_MEDIA = {"mem": "ram"}
_MEGABYTES = "dbench_"
_BACKGROUND = "_bg"

_NEEDED = (
    *("SYSTEM", "DISK_SIZE", "DURATION", "CORE_SEQ", "MODEL_NAME", "PHYSICAL_CHIPS"),
    *("CORE_PER_CHIP", "SMT_LEVEL"),
)
_OF_A_RUN = tuple(name for name in _NEEDED if name != "DURATION")
_TIMES = {
    "user": ("user.sec", "nice.sec"),
    "system": ("sys.sec",),
    "idle": ("idle.sec",),
    "iowait": ("iowait.sec",),
    "irq": ("irq.sec",),
    "softirq": ("softirq.sec",),
    "steal": ("steal.sec",),
}
# CPU times are of a little more than the window: of starting and stopping the profiler, too.
_SLACK = 1.5


@dataclass
class _Row:
    """A `##` line, and the figures below it by their columns."""

    medium: str
    filesystem: str
    workload: str
    cores: int
    mode: str | None
    figures: dict[str, float] = field(default_factory=dict)


@dataclass
class _Log:
    """What one file says."""

    settings: dict[str, str]
    rows: list[_Row]


@dataclass(frozen=True)
class Imported:
    """A run made from logs; `left_out`: what could not become a cell, a sentence each."""

    run: Run
    cells: tuple[Cell, ...]
    left_out: tuple[str, ...]


def read(logs: list[Path], started: str | None = None) -> Imported:
    """The run that logs of one machine hold; the same point again is its next repetition.

    `started`: ISO 8601, where the folder of the first log does not say it as FxMark names folders.

    Raises:
        FscaleError: a file cannot be read, is no log of FxMark, or is of another machine or kernel.
    """
    texts = [_text(path) for path in logs]
    parsed = [_parse(path, text) for path, text in zip(logs, texts, strict=True)]
    _same_machine(logs, parsed)
    cells: dict[str, Cell] = {}
    left_out: list[str] = []
    for log in parsed:
        for row in log.rows:
            if row.workload.endswith(_BACKGROUND):
                left_out.append(
                    f"{row.workload} on {row.filesystem}: of the writer beside the readers the log "
                    "holds no figure"
                )
                continue
            cell = _cell(log, row, cells)
            cells[cell.id] = cell
    if not cells:
        raise FscaleError(f"{logs[0]} holds no cell (no `##` line with figures below it)")
    source = "; ".join(_source(path, text) for path, text in zip(logs, texts, strict=True))
    run = _run(parsed, list(cells.values()), source, started or _when(logs[0]))
    return Imported(run, tuple(cells.values()), tuple(dict.fromkeys(left_out)))


def _text(path: Path) -> str:
    try:
        return Folder(path.parent).read(path.name).decode("utf-8", errors="replace")
    except OSError as error:
        raise FscaleError(
            f"cannot read {path}: {error.strerror}; give FxMark's fxmark.log"
        ) from None


def _source(path: Path, text: str) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return printable(f"FxMark's log {path} (sha256 {digest})")


def _when(path: Path) -> str:
    """Local time of the machine, in a zone that is not known."""
    match = _FOLDER.fullmatch(path.absolute().parent.name)
    if match is None:
        raise FscaleError(
            f"{path} does not say when it was measured, and its folder is not named by the time as "
            "FxMark's are; add --started, such as --started 2016-05-01"
        )
    return f"{match[1]}T{match[2]}:{match[3]}:{match[4]}"


def _parse(path: Path, text: str) -> _Log:
    log = _Log({}, [])
    columns: list[str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if match := _SETTING.fullmatch(line.strip()):
            log.settings[match[1]] = printable(match[2].strip())
        elif line.startswith("## "):
            match = _CELL.fullmatch(line.strip())
            if match is None or match[5] not in _MODES:
                raise FscaleError(
                    f"{path}, line {number}: `{printable(line[:80])}` is no cell of FxMark "
                    "(## MEDIUM:FILE_SYSTEM:WORKLOAD:CORES[:buffered|directio])"
                )
            log.rows.append(_Row(match[1], match[2], match[3], int(match[4]), match[5]))
            columns = None
        elif line.startswith(_COLUMNS):
            columns = line.split()[1:]
        elif columns and log.rows and (figures := _figures(columns, line)):
            log.rows[-1].figures = figures
            columns = None
    if lacking := [name for name in _NEEDED if name not in log.settings]:
        raise FscaleError(f"{path} is no log of FxMark: it has no line `### {lacking[0]} = ...`")
    return log


def _figures(columns: list[str], line: str) -> dict[str, float] | None:
    """None of a line that has not at least the figures of the workload."""
    try:
        values = [float(word) for word in line.split()]
    except ValueError:
        return None
    if len(values) < len(_COLUMNS.split()) - 1:
        return None
    return dict(zip(columns, values, strict=False))


def _same_machine(logs: list[Path], parsed: list[_Log]) -> None:
    for path, log in zip(logs[1:], parsed[1:], strict=True):
        for name in _OF_A_RUN:
            if log.settings[name] != parsed[0].settings[name]:
                raise FscaleError(
                    f"{path} is not of the same machine and kernel as {logs[0]} ({name} differs); "
                    "import them into directories of their own"
                )


def _cell(log: _Log, row: _Row, there: Iterable[str]) -> Cell:
    filesystem = _FILESYSTEMS.get(row.filesystem, row.filesystem)
    in_memory = filesystem == "tmpfs"
    first = CellKey(
        workload=row.workload,
        filesystem=filesystem,
        medium=NO_MEDIUM if in_memory else _MEDIA.get(row.medium, row.medium),
        mode="buffered" if in_memory else _MODES[row.mode],
        cores=_number(str(row.cores), "the cores of a cell"),
        repetition=1,
        duration=_seconds(log.settings["DURATION"]),
    )
    known = set(there)
    key = first
    while key.id in known:
        key = key.model_copy(update={"repetition": key.repetition + 1})
    cell = Cell(id=key.id, key=key, status="error", started="", cpu_control="hotplug")
    cell.cpus = _cpus(log.settings["CORE_SEQ"])[: key.cores]
    rate, seconds = row.figures.get("works/sec", 0.0), row.figures.get("secs", 0.0)
    if not row.figures:
        cell.reason = "the log has no result of it"
    elif not all(math.isfinite(v) and v > 0 for v in (rate, seconds)):
        cell.status, cell.reason = "invalid", "FxMark counted nothing"
    else:
        cell.status, cell.ops_per_second, cell.seconds = "ok", rate, seconds
        # DBENCH says how much a second, and no sum.
        cell.ops = row.figures.get("works") or rate * seconds
        cell.cpu = _cpu(row, seconds)
    if row.workload.startswith(_MEGABYTES):
        cell.unit = "MB"
    return cell


def _cpu(row: _Row, seconds: float) -> CpuTimes | None:
    """None where the log has none, or such that no machine has: it is a difference of counters that
    a hypervisor may set back.
    """
    if not all(column in row.figures for columns in _TIMES.values() for column in columns):
        return None
    times = {
        name: sum(row.figures[column] for column in columns) for name, columns in _TIMES.items()
    }
    possible = all(value >= 0 for value in times.values())
    if not possible or not sum(times.values()) <= _SLACK * row.cores * seconds:
        return None
    return CpuTimes(**times)


def _number(text: str, what: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_CORES:
        raise FscaleError(f"`{text[:80]}` in the log cannot be {what}")
    return int(text)


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d{1,6}(?:\.\d+)?)s?", text)
    if match is None or float(match[1]) <= 0:
        raise FscaleError(f"`{text[:80]}` in the log cannot be a duration in seconds")
    return float(match[1])


def _cpus(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() for word in words):
        raise FscaleError(f"`{text[:80]}` in the log cannot be CORE_SEQ, the CPUs in their order")
    return [int(word) for word in words]


def _topology(settings: dict[str, str]) -> Iterator[Cpu]:
    """FxMark lists the cores of the first chip, of the next, ... and then their other threads."""
    chips, each = (_number(settings[name], name) for name in ("PHYSICAL_CHIPS", "CORE_PER_CHIP"))
    for place, cpu in enumerate(_cpus(settings["CORE_SEQ"])):
        core = place % (chips * each)
        yield Cpu(cpu=cpu, core=core, socket=core // each, node=None)


def _run(parsed: list[_Log], cells: list[Cell], source: str, started: str) -> Run:
    settings = parsed[0].settings
    uname = _UNAME.fullmatch(settings["SYSTEM"])
    if uname is None:
        raise FscaleError(
            f"`{settings['SYSTEM'][:80]}` in the log is not what `uname -a` says on Linux"
        )
    try:
        datetime.fromisoformat(started)
    except ValueError:
        raise FscaleError(
            f"--started {printable(started)}: give a time in ISO 8601, such as 2016-05-01"
        ) from None
    planned = [log.settings.get("NUM_TEST_CONF", "") for log in parsed]
    whole = all(text.isdecimal() for text in planned)
    topology = list(_topology(settings))
    workloads = {cell.key.workload for cell in cells}
    size = settings["DISK_SIZE"]
    try:
        return Run(
            id="fxmark",
            started=started,
            finished=None,
            state="complete" if whole else "interrupted",
            fscale_version=__version__,
            revision=None,
            command=[],
            seed=0,
            suite={"name": "fxmark", **{name.lower(): value for name, value in settings.items()}},
            filesystems={
                name: {"title": name} for name in dict.fromkeys(c.key.filesystem for c in cells)
            },
            media={
                name: {"title": name, "size": size}
                for name in dict.fromkeys(c.key.medium for c in cells)
            },
            machine=Machine(
                hostname=uname[1],
                kernel=uname[2],
                kernel_cmdline="",
                architecture=uname[3],
                cpu_model=settings["MODEL_NAME"],
                memory_bytes=0,
                topology=topology,
                cpu_order=[cpu.cpu for cpu in topology],
                governor=None,
                mitigations={},
                virtualization=None,
            ),
            versions={"uname -a": settings["SYSTEM"]},
            workloads=[about.model_dump() for name, about in table2().items() if name in workloads],
            planned_cells=sum(map(int, planned)) if whole else len(cells),
            imported=source,
        )
    except ValidationError as error:
        raise FscaleError(f"what the log says cannot be: {first_error(error)}") from None
