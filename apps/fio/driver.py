# SPDX-License-Identifier: GPL-2.0-only
"""fio with the job files in this directory: random writes, synced log writes, a database mix."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.base import AppError, Measured, Options, Site, Timing
from apps.meter import Meter, between
from apps.process import Processes, ask
from fscale.model.bench import Descriptor, OptionHelp
from fscale.system.executor import which

_MB = 1 << 20


def _descriptor(
    name: str, title: str, operation: str, paper: str, options: list[OptionHelp], sharing: str
) -> Descriptor:
    return Descriptor.model_validate(
        {
            "id": f"fio_{name}",
            "title": title,
            "operation": operation,
            "paper": paper,
            "type": "data",
            "action": "write",
            "sharing": sharing,
            "contention": "block allocation, the journal; with shared files their locks",
            "setup": "files written in full",
            "consumes": False,
            "background": False,
            "min_cores": 1,
            "modes": ["buffered"],
            "options": options,
        }
    )


@dataclass(frozen=True)
class Report:
    """The counts of fio over all jobs."""

    reads: int
    writes: int
    bytes: int
    seconds: float  # of the longest job
    jobs: dict[str, dict[str, float | None]]


def parse(text: str) -> Report:
    """Read fio's JSON; AppError if a job failed or nothing was done."""
    begin = text.find("{\n")  # warnings may precede it
    try:
        said: dict[str, Any] = json.loads(text[begin:])
    except ValueError:
        raise AppError(f"fio printed no JSON; its last output: {text.strip()[-200:]}") from None
    jobs = said["jobs"]
    for job in jobs:
        if job["error"]:
            raise AppError(f"fio: job {job['jobname']} failed with errno {job['error']}")
    reads = sum(job["read"]["total_ios"] for job in jobs)
    writes = sum(job["write"]["total_ios"] for job in jobs)
    seconds = max(job[way]["runtime"] for job in jobs for way in ("read", "write")) / 1000
    if not reads + writes or not seconds:
        raise AppError("fio did no I/O in its timed window")
    return Report(
        reads=reads,
        writes=writes,
        bytes=sum(job[way]["io_bytes"] for job in jobs for way in ("read", "write")),
        seconds=seconds,
        jobs={
            job["jobname"]: {
                "iops": job["read"]["iops"] + job["write"]["iops"],
                "p99_ns": max(
                    (
                        percentiles["99.000000"]
                        for way in ("read", "write")
                        if (percentiles := job[way]["clat_ns"].get("percentile"))
                    ),
                    default=None,
                ),
            }
            for job in jobs
        },
    )


class Fio:
    """One of the job files."""

    unit = "ops"
    sliced = False

    def __init__(self, job: str, descriptor: Descriptor) -> None:
        self.descriptor = descriptor
        self.job = Path(__file__).with_name(f"{job}.fio")

    def missing(self) -> str | None:
        """The package, unless fio is installed."""
        return None if which("fio") else "fio"

    def version(self) -> str:
        """The version in the output of `fio --version`."""
        return ask("fio", "--version")

    def run(
        self, site: Site, timing: Timing, options: Options, ready: Callable[[], None]
    ) -> Measured:
        """Write the files (untimed), then run the job."""
        environment = self._environment(site, timing, options)
        argv = ["fio", "--output-format=json", "--eta=never", str(self.job)]
        meter = Meter(site.cpus, site.cgroup)
        with Processes(site) as processes:
            lay_out = [argv[0], "--create_only=1", *argv[1:]]
            processes.run(lay_out, timeout=5 * timing.margin, env=environment)
            ready()
            start = meter.open()
            timeout = timing.duration + timing.margin
            text = processes.run(argv, timeout=timeout, env=environment)
            end = meter.close()
        report = parse(text)
        return Measured(
            amount=report.reads + report.writes,
            unit=self.unit,
            seconds=report.seconds,
            usage=between(start, end),
            commands=processes.commands,
            extra={
                "reads": report.reads,
                "writes": report.writes,
                "mb_per_second": report.bytes / 1e6 / report.seconds,
                "jobs": report.jobs,
                "configuration": self.job.read_text(),
                "environment": environment,
            },
        )

    def _environment(self, site: Site, timing: Timing, options: Options) -> dict[str, str]:
        """The values of the job file's variables."""
        environment = {
            "DIRECTORY": str(site.dirs[0]),
            "RUNTIME": f"{max(1, round(timing.duration))}s",
            "SEED": str(site.seed),
            "CORES": str(site.cores),
        }
        files = 28 if "log_mb" in options else site.cores
        log = int(options.get("log_mb", 0)) * _MB
        size = min(int(options["file_mb"]) * _MB, (site.space - log) // files) // _MB * _MB
        if size < _MB:
            raise AppError(
                f"{site.space} bytes of space are too few for {files} files; use a larger medium "
                "or fewer files"
            )
        environment["SIZE"] = str(size)
        if log:
            environment["TOTAL"] = str(size * files)
            environment["LOGSIZE"] = str(log)
            environment["READERS"] = str(site.cores)
            environment["WRITERS"] = str(max(1, round(site.cores * 3 / 16)))
        return environment


_FILE = OptionHelp(name="file_mb", default=128, help="MiB per file, less if space is short")
APPS = [
    Fio(
        "randwrite",
        _descriptor(
            "randwrite",
            "fio: random 4 KiB writes",
            "overwrite 4 KiB at a random offset of a private file",
            "FAST'18 Table 1 (its sysbench random write)",
            [_FILE],
            "low",
        ),
    ),
    Fio(
        "logwrite",
        _descriptor(
            "logwrite",
            "fio: synced 4 KiB writes",
            "overwrite the next 4 KiB of a private file and fsync",
            "none: the log of a database, as in DWSL",
            [_FILE],
            "low",
        ),
    ),
    Fio(
        "oltp",
        _descriptor(
            "oltp",
            "fio: a database's mix, after Filebench's oltp",
            "read or write 2 KiB of a shared data file, or 256 KiB of the log",
            "ScaleLFS (FAST'25) Table 2, at a smaller size",
            [
                OptionHelp(name="file_mb", default=32, help="MiB of each of the 28 data files"),
                OptionHelp(name="log_mb", default=64, help="MiB of the log"),
            ],
            "medium",
        ),
    ),
]
