# SPDX-License-Identifier: GPL-2.0-only
"""The text of sysbench (1.0, and 0.4 and 0.5).

The rate is events per second, whatever an event of the test is; the cores are its threads. The
output names the tests cpu, fileio and memory; others, such as scripts, are named after their file.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fscale.analysis.imports.reading import Reading, drop_counts, make_cell
from fscale.model.errors import FscaleError
from fscale.model.files import printable
from fscale.model.limits import MOST_CORES
from fscale.model.results import Cell

ABOUT = (
    "Text of sysbench (`sysbench ... run > FILE`). Threads are cores, and the rate is events per "
    "second."
)
EXAMPLE = "fileio-1.txt fileio-2.txt"

_BEGIN = re.compile(r"^sysbench \d\S*", re.MULTILINE)
_TESTS = {
    "cpu": r"^(CPU speed:|Maximum prime number|Prime numbers limit)",
    "fileio": r"^(File operations:|Operations performed:|\d+ files, )",
    "memory": r"^(Running memory speed test|Doing memory operations)",
}
_NUMBER = r"([-+\w.]+)"
# Lines that do not define the load.
_NO_LOAD = re.compile(
    r"(Number of threads|Report intermediate|Initializing|Random number|Threads started|Running the"
    r"|Running memory|Target transaction|Debug mode|Additional request|Done\.|\[).*"
)


def read(files: Mapping[Path, str]) -> Reading:
    """Read files of one machine.

    Raises:
        FscaleError: a file is not the output of sysbench, or one lacks a figure.
    """
    runs = [run for path, text in files.items() for run in _runs(path, text)]
    names = drop_counts((run.name, run.threads) for run in runs)
    return Reading(
        [run.cell(names[run.name]) for run in runs],
        notes=["the rate is events per second, and the test decides what an event is"],
        versions={"sysbench": ", ".join(dict.fromkeys(run.version for run in runs))},
    )


def _runs(path: Path, text: str) -> Iterator["_Run"]:
    begins = [match.start() for match in _BEGIN.finditer(text)]
    if not begins:
        raise FscaleError(f"{path} is not the output of sysbench: no line begins `sysbench 1.0`")
    for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
        line = text.count("\n", 0, begin) + 1
        yield _Run(path, line, text[begin:end])


class _Run:
    """The output of one run, which begins at a line of its file."""

    def __init__(self, path: Path, line: int, text: str) -> None:
        self._place, self._text = f"{path}, the run from line {line}", text
        self.version = text.split()[1].rstrip(":")
        self.threads = int(self._number("Number of threads", whole=True))
        if not 1 <= self.threads <= MOST_CORES:
            raise FscaleError(f"{self._place}: {self.threads} threads are impossible")
        self.name = next(
            (name for name, lines in _TESTS.items() if re.search(lines, text, re.MULTILINE)),
            path.stem,
        )

    def cell(self, name: str) -> Cell:
        """The cell of the run."""
        events = self._number("total number of events", whole=True)
        seconds = self._number("total time")
        return make_cell(
            name,
            self.threads,
            unit="events",
            options=self._load,
            **self._figures(events, seconds),
        )

    def _figures(self, events: float, seconds: float) -> dict[str, Any]:
        if not events or not seconds:
            return {"status": "invalid", "reason": "sysbench counted nothing"}
        return {
            "ops": events,
            "seconds": seconds,
            "ops_per_second": events / seconds,
            "latency": self._latency(events),
        }

    def _latency(self, events: float) -> dict[str, Any]:
        """The maximum, and a percentile, which is the 95th unless --percentile names another."""
        quantiles = {"100": 1e6 * self._number("max")}
        if match := re.search(r"([\d.]+)((?:st|nd|rd|th)? percentile):", self._text):
            quantiles[match[1]] = 1e6 * self._number(match[1] + match[2])
        return {"unit": "ns", "count": int(events), "quantiles": quantiles}

    @property
    def _load(self) -> dict[str, str]:
        """The lines before the test began, which describe its load."""
        head = re.split("^Threads started", self._text, maxsplit=1, flags=re.MULTILINE)[0]
        lines = [printable(line.strip()) for line in head.splitlines()[1:]]
        load = [line for line in lines if line and not _NO_LOAD.fullmatch(line)]
        return {"load": "; ".join(load)} if load else {}

    def _number(self, label: str, *, whole: bool = False) -> float:
        """The number behind a label; FscaleError if there is none, or it is negative."""
        pattern = rf"^\s*(?:approx\.\s+)?{re.escape(label)}:\s*{_NUMBER}"
        found = re.findall(pattern, self._text, re.MULTILINE)
        if not found:
            raise FscaleError(f"{self._place} has no `{label}`: it failed, or is truncated")
        form = r"\d{1,15}" if whole else r"\d{1,15}(\.\d+)?(ms|s)?"
        if not re.fullmatch(form, found[-1]):
            raise FscaleError(f"{self._place}: `{label}` is {printable(found[-1][:40])}")
        return float(re.sub("[ms]+$", "", found[-1]))
