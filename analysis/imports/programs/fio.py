# SPDX-License-Identifier: GPL-2.0-only
"""The JSON of fio (`--output-format=json` or `json+`), of fio 2 and later.

A job is a point: its processes (numjobs) are the cores, and reads, writes and discards together are
its operations. The same job with several values of numjobs, in one file or in several, is a curve.
Jobs of one name whose options differ are several points. The last report of `--status-interval`
counts; the objects of several runs in one file are repetitions.
"""

import itertools
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fscale.analysis.imports.reading import Reading, drop_counts, make_cell
from fscale.model import fiojson
from fscale.model.errors import FscaleError
from fscale.model.fault import of_errno
from fscale.model.files import printable
from fscale.model.histogram import summarise
from fscale.model.limits import MOST_CORES
from fscale.model.results import Cell

ABOUT = "JSON of fio (--output-format=json or json+). A job's processes (numjobs) are its cores."
EXAMPLE = "jobs-1.json jobs-2.json jobs-4.json"

# Options that say where files are, how often or how long the job runs, and what is logged, and
# those that have a field of their own. A device is no file: its name stays.
_NO_LOAD = re.compile(
    "(name|numjobs|runtime|time_based|directory|filename_format|stonewall|new_group|direct|"
    "group_reporting|write_(bw|lat|iops|hist)_log|log_.*)=.*|filename=(?!/dev/).*"
)
_UNITS = {"us": 1e-6, "ms": 1e-3, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PERCENTILES = {"50": "50.000000", "99": "99.000000", "99.9": "99.900000"}
_NOT_PINNED = "the cores are fio's jobs, which fio pins to CPUs only with cpus_allowed"


@dataclass(frozen=True)
class _Point:
    """The processes of one job in one run of fio, or their sum."""

    output: fiojson.Output
    jobs: Sequence[fiojson.Job]

    @property
    def name(self) -> str:
        return self.jobs[0].name

    @property
    def options(self) -> dict[str, str]:
        return {**self.output.options, **self.jobs[0].options}

    @property
    def cores(self) -> int:
        """The processes; of fio 2 with group_reporting one, because it does not tell numjobs."""
        asked = self.options.get("numjobs", "1")
        return max(len(self.jobs), int(asked) if re.fullmatch(r"\d{1,9}", asked) else 1)

    @property
    def ended(self) -> int:
        """How many processes ended, by the sum of their times."""
        times = [job.job_runtime for job in self.jobs if job.job_runtime is not None]
        longest = max(job.milliseconds for job in self.jobs)
        return round(sum(times) / longest) if longest else 0


def read(files: Mapping[Path, str]) -> Reading:
    """Read files of one machine and file system.

    Raises:
        FscaleError: a file has no JSON of fio, or not a whole object.
    """
    points: list[_Point] = []
    left_out: list[str] = []
    for path, text in files.items():
        try:
            outputs = fiojson.parse(text)
            if not outputs:
                raise ValueError("it has no JSON object; fio prints one with --output-format=json")
            last = [not _continues(*pair) for pair in itertools.pairwise(outputs)] + [True]
        except ValueError as error:
            raise FscaleError(f"{path}: {printable(str(error))}") from None
        left_out += [f"{path}: a report of --status-interval before the last one"] * last.count(
            False
        )
        for output in itertools.compress(outputs, last):
            points += _points(output)
    names = drop_counts((point.name, point.cores) for point in points)
    cells: list[Cell] = []
    for point in points:
        if point.ended > point.cores:
            left_out.append(
                f"{printable(point.name)}: group_reporting summed {point.ended} processes of "
                f"several jobs under the name of one with {point.cores}"
            )
            continue
        cells.append(_cell(point, names[point.name]))
        if cells[-1].status == "ok" and not cells[-1].latency:
            left_out.append(
                "latencies of a point that has none, or has percentiles of several directions or "
                "processes, which cannot be joined (json+ has what can)"
            )
    times = [point.output.printed for point in points if point.output.printed]
    return Reading(
        cells,
        left_out,
        notes=[_NOT_PINNED, *_untold(points), *_beside(points)],
        started=datetime.fromtimestamp(min(times), UTC).isoformat(timespec="seconds")
        if times
        else None,
        versions={"fio": ", ".join(dict.fromkeys(point.output.version for point in points))},
    )


def _continues(output: fiojson.Output, later: fiojson.Output) -> bool:
    """Whether `later` is of the same run of fio, so that its counts contain those of `output`.

    Another run began after `output` was printed. Its seconds are rounded up.

    Raises:
        ValueError: an object does not tell its time.
    """
    times = (output.printed, output.elapsed, later.printed, later.elapsed)
    printed, elapsed, printed_later, elapsed_later = times
    if printed is None or elapsed is None or printed_later is None or elapsed_later is None:
        raise ValueError(
            "it has several objects without times, which may be of one run or of several; give "
            "the last object of each run a file of its own"
        )
    return (printed_later - elapsed_later) - (printed - elapsed) < max(1, elapsed / 2)


def _points(output: fiojson.Output) -> Iterator[_Point]:
    jobs: dict[tuple[int, str], list[fiojson.Job]] = defaultdict(list)
    for job in output.jobs:
        jobs[job.group, job.name].append(job)
    for same in jobs.values():
        yield _Point(output, same)


def _untold(points: Sequence[_Point]) -> Iterator[str]:
    """Versions that do not print the options of a job, numjobs among them."""
    versions = {point.output.version for point in points if not point.options}
    for version in sorted(versions):
        yield (
            f"{printable(version)} does not print numjobs: the cores are the processes that it "
            "lists, one with group_reporting"
        )


def _beside(points: Sequence[_Point]) -> Iterator[str]:
    """Jobs of which each ran beside others, as all of a group do."""
    names: dict[tuple[int, int], dict[str, None]] = defaultdict(dict)
    for point in points:
        names[id(point.output), point.jobs[0].group][printable(point.name)] = None
    for together in dict.fromkeys(tuple(group) for group in names.values() if len(group) > 1):
        yield f"{', '.join(together)} ran at the same time: the figure of each is beside the others"


def _cell(point: _Point, name: str) -> Cell:
    if point.cores > MOST_CORES:
        raise FscaleError(
            f"job {printable(point.name)} has {point.cores} processes, which are more than "
            f"{MOST_CORES}"
        )
    options = point.options
    return make_cell(
        name,
        point.cores,
        duration=_seconds(options.get("runtime", "")),
        mode="direct" if options.get("direct", "0") not in ("0", "false") else "buffered",
        options={
            printable(name): printable(value)
            for name, value in options.items()
            if not _NO_LOAD.fullmatch(f"{name}={value}")
        },
        **_figures(point.jobs),
    )


def _seconds(text: str) -> float:
    """The seconds of the option `runtime`; 1 if it has none."""
    match = re.fullmatch(r"(\d{1,9})([a-z]{0,2})", text.strip().lower())
    return (int(match[1]) * _UNITS.get(match[2], 0.0) if match else 0.0) or 1.0


def _figures(jobs: Sequence[fiojson.Job]) -> dict[str, Any]:
    """The fields of a cell: the figures of its processes together, or why there are none."""
    for job in jobs:
        if code := job.error or (job.total_err and job.first_error):
            reason = f"fio: {os.strerror(code)} (errno {code})"
            return {"status": "error", "reason": reason, "fault": of_errno(code, "load")}
    directions = [way for job in jobs for way in job.directions.values() if way.operations]
    rate = sum(way.iops for way in directions)
    if not rate:
        reason = "it took less than a millisecond" if directions else "fio did no I/O"
        return {"status": "invalid", "reason": reason}
    return {
        "ops": sum(way.operations for way in directions),
        "seconds": max(way.runtime for way in directions) / 1000,
        "ops_per_second": rate,
        "own_cpu_seconds": _cpu_seconds(jobs),
        "latency": _latency(directions),
        "extra": {"mb_per_second": sum(way.bw for way in directions) * 1024 / 1e6},
    }


def _cpu_seconds(jobs: Sequence[fiojson.Job]) -> float | None:
    seconds = 0.0
    for job in jobs:
        if job.usr_cpu is None or job.sys_cpu is None or job.job_runtime is None:
            return None
        seconds += (job.usr_cpu + job.sys_cpu) / 100 * job.job_runtime / 1000
    return seconds


def _latency(directions: Sequence[fiojson.Direction]) -> dict[str, Any] | None:
    """Completion latencies: of all operations by their bins, else those of a single direction."""
    known = [(*way.latency, way.operations) for way in directions if way.latency]
    if len(known) < len(directions):
        return None
    if all(latency.bins for latency, _, _ in known):
        bins: dict[int, int] = defaultdict(int)
        for latency, unit, _ in known:
            for value, count in latency.bins.items():
                bins[value * unit] += count
        return summarise(sorted(bins.items()))
    if len(known) > 1:
        return None
    ((latency, unit, count),) = known
    quantiles = {
        name: unit * latency.percentile[theirs]
        for name, theirs in _PERCENTILES.items()
        if theirs in latency.percentile
    }
    return {"unit": "ns", "count": count, "quantiles": {**quantiles, "100": unit * latency.max}}
