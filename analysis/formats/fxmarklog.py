# SPDX-License-Identifier: GPL-2.0-only
"""What logs of FxMark say, run by run.

The format is what `bin/run-fxmark.py`, `bin/perfmon.py`, `bin/run-dbench.py` and `src/bench.c` of
https://github.com/sslab-gatech/fxmark write:

    ### SYSTEM         = Linux host 4.2.0-rc8 #1 SMP ... x86_64 GNU/Linux
    ### DURATION       = 30s
    ## mem:ext4:DWOL:80:bufferedio
    # ncpu secs works works/sec real.sec user.sec nice.sec sys.sec idle.sec ...
    80 30.00 43465318.0 1449104.5 30.16 0.48 0 14.02 0.29 ...
    ### NUM_TEST_CONF  = 1

Older ones name no I/O mode, and those without a profiler end after works/sec. Harnesses keep the
standard output alone, which has no header. Logs are appended to one another, packed, and cut off.
Other lines, such as what a workload printed, mean nothing.
"""

import codecs
import re
from dataclasses import dataclass, field
from pathlib import Path

from fscale.model.bench import Mode
from fscale.model.errors import FscaleError
from fscale.model.files import Folder, printable, unpack

_SETTING = re.compile(r"###\s*(\w+)\s*=\s*(.*)")
_CELL = re.compile(r"##\s+([\w.+@-]+):([\w.+@-]+):([\w.+@-]+):(\d+)(?::([\w-]+))?")
# A sentence of somebody's own: neither a setting nor parts joined by colons.
_NOTE = re.compile(r"##(?!.*(=|\w:\S)).*")
_NAMES = {"ncpu", "secs", "works", "works/sec", "read_iops", "write_iops"}
_FEWEST_NAMES = 2
_FEWEST = 4  # figures of a line that is a result
_LAST = "NUM_TEST_CONF"
_GZIP = b"\x1f\x8b"

MODES: dict[str | None, Mode] = {
    None: "buffered",
    "buffered": "buffered",
    "bufferedio": "buffered",
    "direct": "direct",
    "directio": "direct",
    "odirect": "direct",
}


@dataclass
class Row:
    """A `##` line, and the figures below it by their columns; NaN where a word is no number.

    `others`: further lines of figures for the same columns. `unread`: what stands below the columns
    where no figures were found. `table`: the columns of the result that comes next.
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
        """Take a line below the cell: the columns of a `table`, of which it may have several, a
        result, or what a program printed.
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
        """The cell as the log has it."""
        return ":".join(
            filter(None, [self.medium, self.filesystem, self.workload, str(self.cores), self.mode])
        )


@dataclass
class Log:
    """What one run of FxMark wrote. `place`: its file, and the line where it begins."""

    place: str
    settings: dict[str, str] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def read_text(path: Path) -> str:
    """The text of a log, also of a packed one; FscaleError where it cannot be read."""
    try:
        content = Folder(path.parent).read(path.name)
        if content.startswith(_GZIP):
            content = unpack(content)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise FscaleError(f"cannot read {path}: {reason}; give FxMark's fxmark.log") from None
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", errors="replace")
    return content.decode("utf-8-sig", errors="replace")


def parse(path: Path, text: str) -> list[Log]:
    """The runs of a text, in their order.

    Raises:
        FscaleError: a line is no cell of FxMark, or two headers follow each other, so that the
            cells below might be of either.
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
    """Enter a `##` line; FscaleError where it may be meant as a cell and is none."""
    if match := _CELL.fullmatch(line):
        log.rows.append(Row(match[1], match[2], match[3], int(match[4]), match[5]))
    elif cut_off:
        log.left_out.append(f"{place}: the log is cut off in `{printable(line[:80])}`")
    elif _NOTE.fullmatch(line):
        log.left_out.append(f"{place}: no cell: {printable(line[:80])}")
    else:
        raise FscaleError(
            f"{place}: `{printable(line[:80])}` is no cell of FxMark "
            "(## MEDIUM:FILE_SYSTEM:WORKLOAD:CORES[:bufferedio|directio])"
        )


def _columns(line: str) -> tuple[str, ...]:
    """The names of columns in a comment, by what FxMark calls them; none of another line."""
    if not line.startswith("#"):
        return ()
    names = tuple(_words(line.lstrip("#").lower()))
    few = names[:1] != ("ncpu",) and len(_NAMES.intersection(names)) < _FEWEST_NAMES
    return () if few else names


def _words(line: str) -> list[str]:
    """Words between spaces, or in a table of commas between these."""
    spaced = line.split()
    return [word.strip() for word in line.split(",")] if len(spaced) == 1 else spaced


def _begins_another(log: Log, name: str, value: str, place: str) -> bool:
    """Whether a setting is of another run than the log; FscaleError where that cannot be told."""
    if _LAST in log.settings or (log.rows and name != _LAST):
        return True
    if log.settings.get(name, value) != value:
        raise FscaleError(
            f"{place}: a second header (`### {name}` was `{log.settings[name][:80]}`) before any "
            "cell of the first: it cannot be told whose the cells below are; take the runs apart"
        )
    return False


def _figures(columns: tuple[str, ...], line: str, *, further: bool) -> dict[str, float] | None:
    """None of a line that is no result: it begins with a number, and has at least a few words.

    A `further` one below a result has a number for each column, as what a workload printed has not.
    """
    words = _words(line)
    values = {
        column: float("nan") if (value := _float(word)) is None else value
        for column, word in zip(columns, words, strict=False)
    }
    if further:
        numbers = [_float(word) for word in words]
        return values if len(words) == len(columns) and None not in numbers else None
    few = len(words) < min(_FEWEST, len(columns))
    return None if few or _float(words[0]) is None else values


def _float(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None
