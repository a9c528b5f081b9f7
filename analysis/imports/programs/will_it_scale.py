# SPDX-License-Identifier: GPL-2.0-only
"""The CSV of will-it-scale (`runtest.py page_fault1 > page_fault1.csv`).

A file is of one test, which only the file's name tells. It has two curves: of processes and of
threads. The columns `*_idle` are shares of all CPUs, and `linear` follows from the first row.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from fscale.analysis.imports.reading import Reading, make_cell
from fscale.model.errors import FscaleError
from fscale.model.files import printable
from fscale.model.limits import MOST_CORES
from fscale.model.results import Cell

ABOUT = (
    "CSV of will-it-scale (runtest.py TEST > TEST.csv). Each file is a test, and has a curve of "
    "processes and one of threads."
)
EXAMPLE = "page_fault1.csv open1.csv"

_COLUMNS = ["tasks", "processes", "processes_idle", "threads", "threads_idle", "linear"]
_SECONDS = 5  # `duration` of runtest.py, which its output does not tell
_NO_AVERAGE = -1


def read(files: Mapping[Path, str]) -> Reading:
    """Read files of one machine.

    Raises:
        FscaleError: a file is not one of will-it-scale, or a row has another form.
    """
    cells = [cell for path, text in files.items() for cell in _cells(path, text)]
    untold = f"the windows are taken to be {_SECONDS} seconds, as in runtest.py"
    return Reading(cells, notes=[untold])


def _cells(path: Path, text: str) -> Iterator[Cell]:
    rows = [line.split(",") for line in text.splitlines()]
    if [name.strip() for name in rows[0]] != _COLUMNS:
        raise FscaleError(
            f"{path} is not a CSV of will-it-scale: line 1 is not {','.join(_COLUMNS)}"
        )
    seen: dict[int, int] = {}
    for number, row in enumerate(rows[1:], 2):
        if row == [""]:
            continue
        place = f"{path}, line {number}"
        values = _numbers(row, place)
        tasks = int(values["tasks"])
        if tasks in seen:
            raise FscaleError(
                f"{place}: {tasks} tasks are in line {seen[tasks]}, too; give each run of "
                "will-it-scale a file of its own"
            )
        seen[tasks] = number
        for kind in ("processes", "threads") if tasks else ():
            yield _cell(f"{path.stem}_{kind}", tasks, values[kind], values[f"{kind}_idle"])
    if not any(seen):
        raise FscaleError(f"{path} has no row with tasks: runtest.py was stopped before the first")


def _numbers(row: list[str], place: str) -> dict[str, float]:
    """The values of a row by column; FscaleError if it has others."""
    try:
        values = dict(zip(_COLUMNS, map(float, row), strict=True))
    except ValueError:
        raise FscaleError(
            f"{place} has not {len(_COLUMNS)} numbers: `{printable(','.join(row))[:80]}`"
        ) from None
    for name in _COLUMNS[:-1]:
        value, least = values[name], _NO_AVERAGE if name in ("processes", "threads") else 0
        if not least <= value < math.inf or (name == "tasks" and value % 1):
            raise FscaleError(f"{place}: {name} is {value:g}, which is impossible")
    if values["tasks"] > MOST_CORES:
        raise FscaleError(f"{place}: {values['tasks']:g} tasks are more than {MOST_CORES}")
    return values


def _cell(name: str, tasks: int, rate: float, idle: float) -> Cell:
    if rate == _NO_AVERAGE:
        reason = "the program printed no average (is it built?)"
        return make_cell(name, tasks, duration=_SECONDS, status="error", reason=reason)
    if not rate:
        reason = "will-it-scale counted nothing"
        return make_cell(name, tasks, duration=_SECONDS, status="invalid", reason=reason)
    return make_cell(
        name,
        tasks,
        duration=_SECONDS,
        ops=rate * _SECONDS,
        seconds=_SECONDS,
        ops_per_second=rate,
        extra={"idle_percent": idle},
    )
