# SPDX-License-Identifier: GPL-2.0-only
"""A load that is a fio job file."""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from fscale.apps.base import AppError, AppResult, Options, Site, Timing
from fscale.apps.custom import jobs
from fscale.apps.custom.account import Account
from fscale.apps.custom.options import filled
from fscale.apps.packaged import Packaged
from fscale.apps.process import Processes
from fscale.model import fiojson
from fscale.model.fault import of_errno
from fscale.model.histogram import summarise
from fscale.model.loadfile import NamedLoad

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
    latency: Counter[int]  # nanoseconds -> operations; empty if the jobs do not measure it

    @property
    def operations(self) -> int:
        """Reads, writes and discards, or their sum where fio reports nothing else."""
        return self.reads + self.writes + self.trims + self.mixed


def parse(text: str) -> FioReport:
    """Read fio's JSON; AppError if a job failed, nothing was done, or it has another form."""
    try:
        outputs = fiojson.parse(text)
    except ValueError as error:
        raise AppError(f"the JSON of fio cannot be read: {error}", fault="machine") from None
    if not outputs:
        raise AppError(f"fio printed no JSON; its last output: {text.strip()[-200:]}")
    return _report(outputs[-1].jobs)


def _report(jobs: list[fiojson.Job]) -> FioReport:
    for job in jobs:
        if job.error:
            _refuse(job, job.error, "failed")
        if job.total_err:
            _refuse(job, job.first_error, f"had {job.total_err} failed operations")
    done: Counter[str] = Counter()
    bins: Counter[int] = Counter()
    for job in jobs:
        for name, direction in job.directions.items():
            done[name] += direction.operations
            bins.update(direction.clat_ns.bins if direction.clat_ns else {})
    seconds = max(job.milliseconds for job in jobs) / 1000
    if not any(done.values()) or not seconds:
        raise AppError("fio did no I/O in its timed window")
    return FioReport(
        reads=done["read"],
        writes=done["write"],
        trims=done["trim"],
        mixed=done["mixed"],
        bytes=sum(way.io_bytes for job in jobs for way in job.directions.values()),
        seconds=seconds,
        jobs={job.name: {"iops": _iops(job), "p99_ns": _p99(job)} for job in jobs},
        latency=bins,
    )


def _iops(job: fiojson.Job) -> float:
    return sum(way.iops for way in job.directions.values())


def _p99(job: fiojson.Job) -> float | None:
    """The larger of the directions' percentiles, in nanoseconds; None if fio has none."""
    known = [way.clat_ns.percentile for way in job.directions.values() if way.clat_ns]
    return max((one["99.000000"] for one in known if "99.000000" in one), default=None)


def _refuse(job: fiojson.Job, code: int, how: str) -> NoReturn:
    why = f"{os.strerror(code)}, errno {code}"
    raise AppError(f"fio: job {job.name} {how} ({why})", fault=of_errno(code, "load"))


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
