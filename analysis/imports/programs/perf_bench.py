# SPDX-License-Identifier: GPL-2.0-only
"""The text of `perf bench` (the default format).

The figure of a benchmark is its operations or gigabytes per second; where it prints a total time
only, it is runs per second. The cores are the threads or processes that it prints, otherwise one.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fscale.analysis.imports.reading import Reading, make_cell
from fscale.model.errors import FscaleError
from fscale.model.files import printable
from fscale.model.limits import MOST_CORES
from fscale.model.results import Cell

ABOUT = "Text of `perf bench`, one benchmark or several in a file."
EXAMPLE = "pipe.txt messaging.txt"

_BEGIN = re.compile(r"^# Running '?([\w-]+/[\w-]+)'? benchmark(?::|\.\.\.)", re.MULTILINE)
_FUNCTION = re.compile(r"^# function '([^']+)'.*", re.MULTILINE)
_NUMBER = r"([-+\w.,]+)"
_WORKERS = re.compile(r"(?:==|:|\bon) ([-+\d.,]+) (?:processes|threads)\b")
_SIZE = re.compile(r"^# \w+ ([\d.]+)([KMGT]?B) bytes", re.MULTILINE)
_OPERATIONS = re.compile(rf"^\s*{_NUMBER} ops/sec$", re.MULTILINE)
_AVERAGED = re.compile(rf"^Averaged {_NUMBER} operations/sec.*total secs = {_NUMBER}", re.MULTILINE)
_PER_SECOND = re.compile(rf"^\s*{_NUMBER} ([KMGT]?B)/sec$", re.MULTILINE)
_EACH = re.compile(rf"^\s*{_NUMBER} usecs/op$", re.MULTILINE)
_TIME = re.compile(rf"^\s*Total time: {_NUMBER} \[sec\]", re.MULTILINE)
_POWERS = {"B": 0, "KB": 1, "MB": 2, "GB": 3, "TB": 4}  # of 1024, as perf counts


def read(files: Mapping[Path, str]) -> Reading:
    """Read files of one machine.

    Raises:
        FscaleError: a file is not the output of perf bench, or has an impossible figure.
    """
    cells: list[Cell] = []
    left_out: list[str] = []
    for path, text in files.items():
        for place, name, block in _blocks(path, text):
            cell = _cell(place, name, block)
            if cell:
                cells.append(cell)
            else:
                left_out.append(f"{place}: {name} prints no rate and no total time")
    return Reading(cells, left_out)


def _blocks(path: Path, text: str) -> Iterator[tuple[str, str, str]]:
    """Place, name and text of each benchmark; benchmarks of memory have several functions."""
    begins = list(_BEGIN.finditer(text))
    if not begins:
        raise FscaleError(
            f"{path} is not the output of perf bench: no line begins `# Running 'sched/pipe' "
            "benchmark` (--format=simple prints none)"
        )
    ends = [*(begin.start() for begin in begins[1:]), len(text)]
    for begin, end in zip(begins, ends, strict=True):
        place = f"{path}, line {text.count(chr(10), 0, begin.start()) + 1}"
        block = text[begin.start() : end]
        starts = [match.start() for match in _FUNCTION.finditer(block)] or [0]
        for start, stop in zip(starts, [*starts[1:], len(block)], strict=True):
            yield place, begin[1], block[start:stop]


def _cell(place: str, name: str, block: str) -> Cell | None:
    """The cell of a benchmark; None if it has no figure that is a rate."""
    options = {}
    if function := _FUNCTION.search(block):
        options["function"] = printable(function[1])
    if size := _SIZE.search(block):
        options["size"] = size[1] + size[2]
    workers = 1
    if match := _WORKERS.search(block):
        workers = int(_number(match[1], place))
        if workers > MOST_CORES:
            raise FscaleError(f"{place}: {workers} workers are more than {MOST_CORES}")
    for read_figures in (_averaged, _bandwidth, _timed):
        if figures := read_figures(block, workers, place):
            return make_cell(name, workers, options=options, **figures)
    return None


def _averaged(block: str, workers: int, place: str) -> dict[str, Any] | None:
    """The fields of a cell from the mean rate of the threads."""
    if not (averaged := _AVERAGED.search(block)):
        return None
    seconds = _number(averaged[2], place)
    return _rate(workers * _number(averaged[1], place), seconds) | {"duration": seconds}


def _bandwidth(block: str, _: int, place: str) -> dict[str, Any] | None:
    """The same from a bandwidth; perf does not tell the time, which is that of one pass."""
    bandwidth, size = _PER_SECOND.search(block), _SIZE.search(block)
    if not bandwidth or not size:
        return None
    rate, unit = _number(bandwidth[1], place), bandwidth[2]
    amount = _number(size[1], place) * 1024.0 ** (_POWERS[size[2]] - _POWERS[unit])
    return _rate(rate, amount / rate) | {"unit": unit}


def _timed(block: str, _: int, place: str) -> dict[str, Any] | None:
    """The same from a total time, with the operations in it or as one run."""
    time = _TIME.search(block)
    if not time:
        return None
    if re.fullmatch(r"0\.?0*", time[1]):
        return {"status": "invalid", "reason": "it took less time than perf prints"}
    seconds = _number(time[1], place)
    if operations := _OPERATIONS.search(block):
        return _rate(_number(operations[1], place), seconds)
    if each := _EACH.search(block):
        return _rate(1e6 / _number(each[1], place), seconds)
    return _rate(1 / seconds, seconds) | {"unit": "runs"}


def _rate(rate: float, seconds: float) -> dict[str, Any]:
    return {"ops": rate * seconds, "seconds": seconds, "ops_per_second": rate}


def _number(text: str, place: str) -> float:
    """A positive number; FscaleError if it is none."""
    digits = text.replace(",", "")
    if not re.fullmatch(r"\d{1,15}(\.\d+)?", digits) or not float(digits):
        raise FscaleError(f"{place}: {printable(text[:40])} is not a positive number")
    return float(digits)
