# SPDX-License-Identifier: GPL-2.0-only
"""Logs of FxMark itself, to compare old figures with new ones.

FxMark runs `directio` on tmpfs as buffered. Facts that the log does not contain (when a cell ran,
what ran beside it, latencies, memory, settings) are empty or 0 in the result. Impossible values are
left out and reported.
"""

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from fscale.analysis.imports.fxmarklog import MODES, Log, LogRow, parse
from fscale.analysis.imports.reading import Reading, unknown_machine
from fscale.analysis.paper.table2 import table2
from fscale.model.bench import CpuTimes
from fscale.model.errors import FscaleError
from fscale.model.files import printable
from fscale.model.limits import MOST_CORES
from fscale.model.perfstat import cpu_list
from fscale.model.results import NO_MEDIUM, UNKNOWN, Cell, CellKey, Cpu

_FOLDER = re.compile(r"(\d{4}-\d\d-\d\d)-(\d\d)-(\d\d)-(\d\d)(?:\.\d+)?")
_UNAME = re.compile(r"Linux (\S+) (\S+)(?: .*)?")
# The output of `uname -m`; words after it name the processor and the platform, if known.
_ARCHITECTURE = re.compile(
    r"x86_64|amd64|i[3-6]86|aarch64(_be)?|arm(v\d\w*|64|eb)?|riscv(32|64)|ppc(64)?(le)?|s390x?"
    r"|loongarch(32|64)|mips\w*|sparc(64)?|ia64|alpha|parisc(64)?|m68k|sh\d\w*"
)

# ext4 without a journal, as forks of FxMark spell it; other names are kept.
_NO_JOURNAL = re.compile(r"ext4[_-]?(nj|no[_-]?(jnl|journal(ing)?))", re.IGNORECASE)
# Both are a file on tmpfs behind a loop device.
_MEDIA = {"mem": "ram"}
_MEGABYTES = "dbench_"
_BACKGROUND = "_bg"

_HEADER = (
    *("SYSTEM", "DISK_SIZE", "DURATION", "CORE_SEQ", "MODEL_NAME", "PHYSICAL_CHIPS"),
    *("CORE_PER_CHIP", "SMT_LEVEL"),
)
_OF_A_RUN = tuple(name for name in _HEADER if name != "DURATION")
_RATE = "works/sec"
_FIO = ("read_iops", "write_iops")
_TIMES = {
    "user": ("user.sec", "nice.sec"),
    "system": ("sys.sec",),
    "idle": ("idle.sec",),
    "iowait": ("iowait.sec",),
    "irq": ("irq.sec",),
    "softirq": ("softirq.sec",),
    "steal": ("steal.sec",),
}
# CPU times cover a little more than the window, because they include starting and stopping the
# profiler.
_SLACK = 1.5
# FxMark's seconds are a mean over the workers, but its rate is not computed from that mean.
_RATES_DIFFER = 0.1


ABOUT = (
    "Logs of FxMark itself (bin/run-fxmark.py), all of one machine and kernel. Values that they "
    "lack stay absent."
)
EXAMPLE = "logs/2016-01-30-11-02-14.755097/fxmark.log"


def read(files: Mapping[Path, str]) -> Reading:
    """Read logs of one machine; see `fscale.analysis.imports.fxmarklog` for their form.

    Raises:
        FscaleError: a file is not a log of FxMark, or comes from another machine or kernel.
    """
    parsed = [log for path, text in files.items() for log in parse(path, text)]
    first = next(iter(files))
    left_out = [reason for log in parsed for reason in log.left_out]
    left_out += [f"{log.place}: a run without a cell" for log in parsed if not log.rows]
    parsed = [log for log in parsed if log.rows]
    if not parsed:
        raise FscaleError(f"{first} contains no cell (no `##` line with figures below it)")
    _same_machine(parsed)
    left_out += _lacking(parsed)
    cells: list[Cell] = []
    seen: set[tuple[object, ...]] = set()
    copies = 0
    for log in parsed:
        duration = _duration(log)
        for row in log.rows:
            if reason := _unfit(row):
                left_out.append(reason)
                continue
            figures = (row.title, duration, *row.figures.items())
            if row.figures and figures in seen and math.isfinite(row.figures.get(_RATE, 1.0)):
                left_out.append(
                    f"{row.title}: the same figures again, so this is a copy and not a repetition"
                )
                copies += 1
                continue
            seen.add(figures)
            cell, notes = _cell(log, row, duration)
            cells.append(cell)
            left_out += notes
    return _reading(parsed, cells, left_out, _when(first), copies)


def _lacking(parsed: list[Log]) -> Iterator[str]:
    """The settings that are missing in the headers, and therefore in the run."""
    for log in parsed:
        if lacking := [name for name in _HEADER if name not in log.settings]:
            yield f"{log.place}: the log has no {', '.join(lacking)}"


def _unfit(row: LogRow) -> str | None:
    """Why a row cannot become a cell."""
    if row.workload.endswith(_BACKGROUND):
        return (
            f"{row.workload} on {row.filesystem}: the log has no figure for the writer beside the "
            "readers"
        )
    if row.mode not in MODES:
        return f"{row.title}: unknown I/O mode {row.mode}"
    return None


def _when(path: Path) -> str | None:
    """The time in the folder's name: local time of the machine, in an unknown zone."""
    match = _FOLDER.fullmatch(path.absolute().parent.name)
    return f"{match[1]}T{match[2]}:{match[3]}:{match[4]}" if match else None


def _same_machine(parsed: list[Log]) -> None:
    first = parsed[0]
    for log in parsed[1:]:
        for name in _OF_A_RUN:
            if log.settings.get(name) != first.settings.get(name):
                raise FscaleError(
                    f"{log.place} comes from another machine or kernel than {first.place} ({name} "
                    "differs); import them into separate directories, and split a file of several "
                    "runs at that line"
                )


def _duration(log: Log) -> float:
    """The requested seconds; if the log does not have them, those of the longest cell."""
    if "DURATION" in log.settings:
        return _seconds(log.settings["DURATION"])
    longest = max(
        (s for row in log.rows if math.isfinite(s := row.figures.get("secs", 0))), default=0
    )
    if longest <= 0:
        raise FscaleError(
            f"{log.place}: the duration is unknown, because there is neither a line "
            "`### DURATION = ...` nor a successful cell"
        )
    return float(round(longest)) if longest >= 1 else longest


def _cell(log: Log, row: LogRow, duration: float) -> tuple[Cell, list[str]]:
    """The cell of a row, and notes on the parts of the row that are left out."""
    filesystem = "ext4_nj" if _NO_JOURNAL.fullmatch(row.filesystem) else row.filesystem
    in_memory = filesystem == "tmpfs"
    key = CellKey(
        workload=row.workload,
        filesystem=filesystem,
        medium=NO_MEDIUM if in_memory else _MEDIA.get(row.medium, row.medium),
        mode="buffered" if in_memory else MODES[row.mode],
        cores=_number(str(row.cores), "the cores of a cell"),
        repetition=1,
        duration=duration,
    )
    cell = Cell(id=key.id, key=key, status="error", started="", cpu_control="hotplug")
    if "CORE_SEQ" in log.settings:
        cell.cpus = _cpus(log.settings["CORE_SEQ"])[: key.cores]
    if row.workload.startswith(_MEGABYTES):
        cell.unit = "MB"
    notes = _enter_figures(cell, row, duration)
    return cell, notes


def _enter_figures(cell: Cell, row: LogRow, duration: float) -> list[str]:
    """Enter the figures of a row, or why it has none; return notes on what is left out."""
    if not row.figures:
        cell.reason = "the log has no result for it"
        if row.unread is None:
            return []
        cell.reason += f" that fscale can read: {printable(row.unread[:80])}"
        return [f"{row.title}: {cell.reason}"]
    if row.others:
        cell.status = "invalid"
        cell.reason = (
            f"{row.others + 1} results follow it, and it is not known which is its own (did two "
            "programs write to the log?)"
        )
        return [f"{row.title}: {cell.reason}"]
    rate = _rate(row.figures)
    if rate is None:
        columns = " ".join(row.columns)[:200]
        cell.reason = f"fscale cannot read the columns of its result: {printable(columns)}"
        return [f"{row.title}: {cell.reason}"]
    seconds = row.figures.get("secs", duration)
    works = row.figures.get("works", 0.0)
    if reason := _impossible(row, rate, seconds, works):
        cell.status, cell.reason = "invalid", reason
        return []
    cell.status, cell.ops_per_second, cell.seconds = "ok", rate, seconds
    # DBENCH reports a rate per second, and no total.
    cell.ops = works or rate * seconds
    cell.cpu, notes = _cpu(row, seconds)
    others = [c for c in row.columns if not _is_read(c)]
    if others:
        notes.append(f"columns that are not imported: {printable(' '.join(others)[:200])}")
    return notes


def _rate(figures: Mapping[str, float]) -> float | None:
    """Operations per second; for fio, reads and writes together."""
    if _RATE in figures:
        return figures[_RATE]
    return sum(figures[name] for name in _FIO) if all(name in figures for name in _FIO) else None


def _impossible(row: LogRow, rate: float, seconds: float, works: float) -> str | None:
    """Why the figures of a row are impossible; None if they are possible."""
    if not rate or math.isnan(rate) or not seconds:
        return "FxMark counted nothing"
    if not all(math.isfinite(v) and v > 0 for v in (rate, seconds)) or not 0 <= works < math.inf:
        return f"its figures are impossible: {rate:g} per second, {works:g} in {seconds:g} s"
    if works and abs(works / seconds / rate - 1) > _RATES_DIFFER:
        return f"its figures contradict: {works:g} in {seconds:g} s are not {rate:g} per second"
    ncpu = row.figures.get("ncpu", row.cores)
    return f"its figures are for {ncpu:g} cores, not {row.cores}" if ncpu != row.cores else None


def _is_read(column: str) -> bool:
    """Whether a cell stores the column, or it follows from the stored ones."""
    known = ("ncpu", "secs", "works", _RATE, *_FIO, "real.sec", "guest.sec")
    return column in known or column.endswith(".util") or any(column in c for c in _TIMES.values())


def _cpu(row: LogRow, seconds: float) -> tuple[CpuTimes | None, list[str]]:
    """The CPU times, or None if the log has none or impossible ones; and notes on these.

    They are differences of counters, which a hypervisor may set back, and may cover more CPUs than
    those that worked.
    """
    if not all(column in row.figures for columns in _TIMES.values() for column in columns):
        return None, []
    times = {
        name: sum(row.figures[column] for column in columns) for name, columns in _TIMES.items()
    }
    if not all(value >= 0 for value in times.values()):
        return None, ["CPU times that are negative"]
    if not sum(times.values()) <= _SLACK * row.cores * seconds:
        return None, ["CPU times that exceed those of the cores in use (other CPUs were online)"]
    return CpuTimes(**times), []


def _number(text: str, what: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_CORES:
        raise FscaleError(
            f"`{text[:80]}` in the log is not valid as {what}: it must be a number from 1 to "
            f"{MOST_CORES}"
        )
    return int(text)


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d{1,6}(?:\.\d+)?)s?", text)
    if match is None or float(match[1]) <= 0:
        raise FscaleError(f"`{text[:80]}` in the log is not a duration in seconds, such as 30s")
    return float(match[1])


def _cpus(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(re.fullmatch(r"\d{1,5}(-\d{1,5})?", word) for word in words):
        raise FscaleError(
            f"`{text[:80]}` in the log is not a valid CORE_SEQ, the CPUs in their order, such as "
            "0,2,1,3 or 0-3"
        )
    try:
        return [cpu for word in words for cpu in cpu_list(word)]
    except ValueError as error:
        raise FscaleError(f"CORE_SEQ `{text[:80]}` of the log is not valid: {error}") from None


def _topology(settings: dict[str, str]) -> Iterator[Cpu]:
    """FxMark lists the cores of the first chip, of the next, ... and then their other threads."""
    needed = ("CORE_SEQ", "PHYSICAL_CHIPS", "CORE_PER_CHIP")
    if any(name not in settings for name in needed):
        return
    chips, each = (_number(settings[name], name) for name in needed[1:])
    for place, cpu in enumerate(_cpus(settings["CORE_SEQ"])):
        core = place % (chips * each)
        yield Cpu(cpu=cpu, core=core, socket=core // each, node=None)


def _system(text: str | None) -> tuple[str, str, str]:
    """Host, kernel and architecture from the output of `uname -a`."""
    if text is None:
        return UNKNOWN, UNKNOWN, UNKNOWN
    uname = _UNAME.fullmatch(text)
    if uname is None:
        raise FscaleError(f"`{text[:80]}` in the log is not the output of `uname -a` on Linux")
    architectures = (word for word in text.split()[3:] if _ARCHITECTURE.fullmatch(word))
    return uname[1], uname[2], next(architectures, UNKNOWN)


def _reading(
    parsed: list[Log], cells: list[Cell], left_out: list[str], started: str | None, copies: int
) -> Reading:
    settings = parsed[0].settings
    hostname, kernel, architecture = _system(settings.get("SYSTEM"))
    planned = [log.settings.get("NUM_TEST_CONF", "") for log in parsed]
    whole = all(text.isdecimal() for text in planned)
    workloads = {cell.key.workload for cell in cells}
    size = {"size": settings["DISK_SIZE"]} if "DISK_SIZE" in settings else {}
    return Reading(
        cells=cells,
        left_out=left_out,
        started=started,
        machine=unknown_machine().model_copy(
            update={
                "hostname": hostname,
                "kernel": kernel,
                "architecture": architecture,
                "cpu_model": settings.get("MODEL_NAME", UNKNOWN),
                "topology": list(_topology(settings)),
                "cpu_order": _cpus(settings["CORE_SEQ"]) if "CORE_SEQ" in settings else [],
            }
        ),
        workloads=[about for name, about in table2().items() if name in workloads],
        settings={name.lower(): value for name, value in settings.items()},
        media={cell.key.medium: size for cell in cells},
        versions={"uname -a": settings["SYSTEM"]} if "SYSTEM" in settings else {},
        planned=sum(map(int, planned)) - copies if whole else None,
        complete=whole,
    )
