# SPDX-License-Identifier: GPL-2.0-only
"""Parses logs of FxMark, run by run.

`bin/run-fxmark.py`, `bin/perfmon.py`, `bin/run-dbench.py` and `src/bench.c` of
https://github.com/sslab-gatech/fxmark write this format:

    ### SYSTEM         = Linux host 4.2.0-rc8 #1 SMP ... x86_64 GNU/Linux
    ### DURATION       = 30s
    ## mem:ext4:DWOL:80:bufferedio
    # ncpu secs works works/sec real.sec user.sec nice.sec sys.sec idle.sec ...
    80 30.00 43465318.0 1449104.5 30.16 0.48 0 14.02 0.29 ...
    ### NUM_TEST_CONF  = 1

Older logs have no I/O mode, and logs without a profiler end after works/sec. Some harnesses store
only the standard output, which has no header. Logs may be concatenated, compressed and truncated.
Other lines, such as the output of a workload, are ignored.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from fscale.model.bench import Mode
from fscale.model.errors import FscaleError
from fscale.model.files import printable

_SETTING = re.compile(r"###\s*(\w+)\s*=\s*(.*)")
_CELL = re.compile(r"##\s+([\w.+@-]+):([\w.+@-]+):([\w.+@-]+):(\d+)(?::([\w-]+))?")
# A free comment: neither a setting nor parts joined by colons.
_NOTE = re.compile(r"##(?!.*(=|\w:\S)).*")
_NAMES = {"ncpu", "secs", "works", "works/sec", "read_iops", "write_iops"}
_MIN_NAMES = 2
_MIN_FIGURES = 4  # in a line that is a result
_LAST = "NUM_TEST_CONF"

MODES: dict[str | None, Mode] = {
    None: "buffered",
    "buffered": "buffered",
    "bufferedio": "buffered",
    "direct": "direct",
    "directio": "direct",
    "odirect": "direct",
}


@dataclass
class LogRow:
    """A `##` line, and the figures below it by column; NaN for a word that is not a number.

    `others`: number of further lines of figures for the same columns. `unread`: the line below the
    columns if it has no figures. `table`: the columns of the next result.
    """

    medium: str
    filesystem: str
    workload: str
    cores: int
    mode: str | None
    columns: tuple[str, ...] = ()
    figures: dict[str, float] = field(default_factory=dict)
    others: int = 0
    unread: str | None = None

    table: tuple[str, ...] = ()

    def read(self, line: str, *, cut_off: bool) -> None:
        """Read a line below the cell: the columns of a `table` (there may be several), a result, or
        output of a program.
        """
        if names := _columns(line):
            self.table = names
            self.columns += tuple(name for name in names if name not in self.columns)
            return
        if not self.table or not line or line.startswith("#"):
            return
        figures = _figures(self.table, line, further=bool(self.figures))
        if figures is None:
            self.unread = self.unread or line
            return
        if cut_off:
            figures.popitem()  # its last digits may be missing
        if figures.keys() & self.figures.keys() - {"ncpu"}:
            self.others += 1
        else:
            self.figures |= figures

    @property
    def title(self) -> str:
        """The cell as written in the log."""
        return ":".join(
            filter(None, [self.medium, self.filesystem, self.workload, str(self.cores), self.mode])
        )


@dataclass
class Log:
    """The log of one run of FxMark. `place`: its file, and the line where it begins."""

    place: str
    settings: dict[str, str] = field(default_factory=dict)
    rows: list[LogRow] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def parse(path: Path, text: str) -> list[Log]:
    """The runs of a text, in their order.

    Raises:
        FscaleError: a line is not a cell of FxMark, or two headers follow each other, so that the
            cells below might belong to either.
    """
    lines = text.splitlines()
    cut_off = bool(lines) and not text.endswith(("\n", "\r"))
    logs = [Log(str(path))]
    for number, line in enumerate(map(str.strip, lines), 1):
        begins = f"{path}, line {number}"
        last = cut_off and number == len(lines)
        if match := _SETTING.fullmatch(line):
            name, value = match[1], printable(match[2].strip())
            if _begins_another(logs[-1], name, value, begins):
                logs.append(Log(begins))
            logs[-1].settings[name] = value
        elif re.match(r"##(\s|$)", line):
            if _LAST in logs[-1].settings:
                logs.append(Log(begins))
            _begin_cell(logs[-1], line, begins, cut_off=last)
        elif logs[-1].rows:
            logs[-1].rows[-1].read(line, cut_off=last)
    return logs


def _begin_cell(log: Log, line: str, place: str, *, cut_off: bool) -> None:
    """Read a `##` line; FscaleError if it looks like a cell but is not a valid one."""
    if match := _CELL.fullmatch(line):
        log.rows.append(LogRow(match[1], match[2], match[3], int(match[4]), match[5]))
    elif cut_off:
        log.left_out.append(f"{place}: the log is truncated in `{printable(line[:80])}`")
    elif _NOTE.fullmatch(line):
        log.left_out.append(f"{place}: not a cell: {printable(line[:80])}")
    else:
        raise FscaleError(
            f"{place}: `{printable(line[:80])}` is not a cell of FxMark "
            "(## MEDIUM:FILE_SYSTEM:WORKLOAD:CORES[:bufferedio|directio])"
        )


def _columns(line: str) -> tuple[str, ...]:
    """The names of columns in a comment line; empty if the names are not those of FxMark."""
    if not line.startswith("#"):
        return ()
    names = tuple(_words(line.lstrip("#").lower()))
    few = names[:1] != ("ncpu",) and len(_NAMES.intersection(names)) < _MIN_NAMES
    return () if few else names


def _words(line: str) -> list[str]:
    """The words of a line, separated by spaces, or by commas if there are no spaces."""
    spaced = line.split()
    return [word.strip() for word in line.split(",")] if len(spaced) == 1 else spaced


def _begins_another(log: Log, name: str, value: str, place: str) -> bool:
    """Whether a setting belongs to another run than the log; FscaleError if that is not clear."""
    if _LAST in log.settings or (log.rows and name != _LAST):
        return True
    if log.settings.get(name, value) != value:
        raise FscaleError(
            f"{place}: a second header (`### {name}` was `{log.settings[name][:80]}`) comes before "
            "any cell of the first, so it is not clear to which one the cells below belong; split "
            "the log into one file per run"
        )
    return False


def _figures(columns: tuple[str, ...], line: str, *, further: bool) -> dict[str, float] | None:
    """The figures of a result line, which begins with a number and has enough words; else None.

    A `further` line below a result must have a number for each column, unlike output of a workload.
    """
    words = _words(line)
    values = {
        column: float("nan") if (value := _float(word)) is None else value
        for column, word in zip(columns, words, strict=False)
    }
    if further:
        numbers = [_float(word) for word in words]
        return values if len(words) == len(columns) and None not in numbers else None
    few = len(words) < min(_MIN_FIGURES, len(columns))
    return None if few or _float(words[0]) is None else values


def _float(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None
