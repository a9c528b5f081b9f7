# SPDX-License-Identifier: GPL-2.0-only
"""A load that is a fio job file."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from fscale.apps.base import AppError, AppResult, Options, Site, Timing
from fscale.apps.custom import jobs
from fscale.apps.custom.account import Account
from fscale.apps.custom.options import filled
from fscale.apps.packaged import Packaged
from fscale.apps.process import Processes
from fscale.model.fault import of_errno
from fscale.model.histogram import summarise
from fscale.model.loadfile import NamedLoad

_WAYS = ("read", "write", "trim")
_MIXED = "mixed"  # in their place, or beside them, with unified_rw_reporting
_LATE = 0.9  # fio ends early if it has nothing left to do: then it did not work for the window


@dataclass(frozen=True)
class FioReport:
    """The counts of fio over all jobs."""

    reads: int
    writes: int
    trims: int
    mixed: int  # of jobs that report them as one figure
    bytes: int
    seconds: float  # of the longest job
    jobs: dict[str, dict[str, float | None]]
    latency: dict[int, int]  # nanoseconds -> operations; empty if the jobs do not measure it

    @property
    def operations(self) -> int:
        """Reads, writes and discards, or their sum where fio reports nothing else."""
        return self.reads + self.writes + self.trims + self.mixed


def parse(text: str) -> FioReport:
    """Read fio's JSON; AppError if a job failed, nothing was done, or it has another form."""
    begin = text.find("{\n")  # warnings may precede it
    try:
        output: dict[str, Any] = json.loads(text[begin:])
    except ValueError:
        raise AppError(f"fio printed no JSON; its last output: {text.strip()[-200:]}") from None
    try:
        return _report(output["jobs"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AppError(
            "the JSON of fio has not the form that fscale reads "
            f"({type(error).__name__}: {error}); it expects jobs with read, write, trim or "
            "mixed, each with total_ios and runtime",
            fault="machine",
        ) from None


def _report(reported: list[dict[str, Any]]) -> FioReport:
    for job in reported:
        if job["error"]:
            _refuse(job, job["error"], "failed")
        if job.get("total_err"):
            _refuse(job, job.get("first_error", 0), f"had {job['total_err']} failed operations")
    done = {
        kind: sum(way["total_ios"] for job in reported for name, way in _ways(job) if name == kind)
        for kind in (*_WAYS, _MIXED)
    }
    seconds = max(way["runtime"] for job in reported for _, way in _ways(job)) / 1000
    if not any(done.values()) or not seconds:
        raise AppError("fio did no I/O in its timed window")
    bins: dict[int, int] = {}
    for job in reported:
        for _, way in _ways(job):
            for nanoseconds, count in way["clat_ns"].get("bins", {}).items():
                bins[int(nanoseconds)] = bins.get(int(nanoseconds), 0) + count
    return FioReport(
        reads=done["read"],
        writes=done["write"],
        trims=done["trim"],
        mixed=done[_MIXED],
        bytes=sum(way["io_bytes"] for job in reported for _, way in _ways(job)),
        seconds=seconds,
        jobs={
            job["jobname"]: {
                "iops": sum(way["iops"] for _, way in _ways(job)),
                "p99_ns": max(
                    (
                        percentiles["99.000000"]
                        for _, way in _ways(job)
                        if (percentiles := way["clat_ns"].get("percentile"))
                    ),
                    default=None,
                ),
            }
            for job in reported
        },
        latency=bins,
    )


def _ways(job: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The figures of a job by direction; their sum counts only where fio gives no directions."""
    directions = [(way, job[way]) for way in _WAYS if way in job]
    yield from directions or [(_MIXED, job[_MIXED])]


def _refuse(job: dict[str, Any], code: int, how: str) -> NoReturn:
    why = f"{os.strerror(code)}, errno {code}"
    raise AppError(f"fio: job {job['jobname']} {how} ({why})", fault=of_errno(code, "load"))


class Fio(Packaged):
    """A job file, which a TOML file names."""

    program = package = "fio"

    def __init__(self, load: NamedLoad) -> None:
        assert load.file.fio is not None
        self._load, self._fio = load, load.file.fio
        name = self._fio.job
        self._jobs = jobs.read(load.texts[name.rpartition("/")[2]], name)
        jobs.check_per_core(self._jobs, self._fio.per_core, str(load.path))
        self.oversubscribes = self._jobs.counted(self._fio.per_core)
        self.unit = load.file.unit
        self.user = load.file.user
        mode = load.file.mode or ("direct" if self._jobs.direct else "buffered")
        self.descriptor = load.descriptor([mode])

    def run(
        self, site: Site, timing: Timing, options: Options, ready: Callable[[], None]
    ) -> AppResult:
        """Write the files (untimed), then run the jobs."""
        decided = {
            "directory": ".",  # where it starts: in a path, fio takes : and $ for syntax
            "time_based": "1",
            "runtime": f"{max(1, round(timing.duration))}s",
            "randseed": str(site.seed),
            "group_reporting": "1",
        }
        job = self._jobs.filled(decided, self._fio.per_core, site.workers)
        environment = self._environment(site, options)
        account = Account(self._load.file.user)
        account.owns(site.dirs)
        # fio reads the job from its input, because the user may not enter the scratch directory.
        argv = ["fio", "--output-format=json+", "--eta=never", "-"]
        common: dict[str, Any] = {"env": environment, "user": account, "cwd": site.dirs[0]}
        path = site.scratch / "job.fio"
        path.write_text(job)
        with Processes(site) as processes:
            with path.open("rb") as text:
                lay_out = [argv[0], "--create_only=1", *argv[1:]]
                processes.run(lay_out, timeout=5 * timing.margin, stdin=text.fileno(), **common)
            ready()
            with path.open("rb") as text:
                output, usage = processes.run_timed(argv, timing, stdin=text.fileno(), **common)
        report = parse(output)
        wanted = max(1, round(timing.duration))
        if report.seconds < _LATE * wanted:
            raise AppError(
                f"fio worked for {report.seconds:.1f} of {wanted} seconds: its jobs ended early; "
                "remove what limits them, such as number_ios or io_size",
                fault="user",
            )
        counts = sorted(report.latency.items())
        return AppResult(
            amount=report.operations,
            unit=self.unit,
            seconds=report.seconds,
            usage=usage,
            commands=processes.commands,
            latency=summarise(counts) if counts else None,
            extra={
                "reads": report.reads,
                "writes": report.writes,
                "trims": report.trims,
                "mixed": report.mixed,
                "mb_per_second": report.bytes / 1e6 / report.seconds,
                "jobs": report.jobs,
                "configuration": job,
                "environment": environment,
                "user": account.name,
            },
        )

    def _environment(self, site: Site, options: Options) -> dict[str, str]:
        """The values of the job file's variables: $CORES, $SEED and each option in capitals."""
        values = filled(self._load.file.options, options, site)
        own = {name.upper(): str(value) for name, value in values.items()}
        return {"CORES": str(site.cores), "SEED": str(site.seed), **own}
