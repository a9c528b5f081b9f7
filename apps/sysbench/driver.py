# SPDX-License-Identifier: GPL-2.0-only
"""sysbench fileio: writes of 4 KiB, by threads of one process or by a process for each core."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from fscale.apps.base import AppError, AppResult, Options, Site, Timing
from fscale.apps.packaged import Packaged
from fscale.apps.process import Processes
from fscale.model.bench import Descriptor, OptionHelp

_MB = 1 << 20

DESCRIPTOR = Descriptor(
    id="sysbench",
    title="sysbench fileio",
    operation="write 4 KiB (and fsync, with option fsync)",
    paper="SpanFS (ATC'15) Figure 6 (instances=each); FAST'18 Table 1",
    type="data",
    action="write",
    sharing="medium",
    contention="file locks and block allocation; the journal with fsync",
    setup="files written in full",
    consumes=False,
    background=False,
    min_cores=1,
    modes=["buffered"],
    options=[
        OptionHelp(
            name="files",
            default=128,
            least=1,
            help="files of a process (SpanFS: 128)",
        ),
        OptionHelp(
            name="total_mb", default=512, least=1, help="MiB of these files, less if space is short"
        ),
        OptionHelp(
            name="instances",
            default="one",
            choices=["one", "each"],
            help="each: a process of one thread for each core, in a directory of its own; one: a "
            "process, whose threads share the files",
        ),
        OptionHelp(
            name="pattern",
            default="rndwr",
            choices=["rndwr", "seqrewr"],
            help="rndwr: random writes; seqrewr: sequential",
        ),
        OptionHelp(
            name="fsync",
            default="off",
            choices=["off", "each"],
            help="each: fsync after each write; off: none",
        ),
    ],
)

_NUMBER = {
    "writes_per_second": re.compile(r"writes/s:\s+([\d.]+)"),
    "fsyncs_per_second": re.compile(r"fsyncs/s:\s+([\d.]+)"),
    "mib_per_second": re.compile(r"written, MiB/s:\s+([\d.]+)"),
    "seconds": re.compile(r"total time:\s+([\d.]+)s"),
    "latency_p95_ms": re.compile(r"95th percentile:\s+([\d.]+)"),
}


@dataclass(frozen=True)
class SysbenchReport:
    """The final output of `sysbench fileio run`."""

    writes_per_second: float
    fsyncs_per_second: float
    mib_per_second: float
    seconds: float
    latency_p95_ms: float


def parse(text: str) -> SysbenchReport:
    """Read the output; AppError if a figure is missing, there is an error, or nothing was done."""
    if trouble := re.search(r"^FATAL: .*$", text, re.MULTILINE):
        raise AppError(f"sysbench: {trouble[0]}")
    values = {}
    for name, pattern in _NUMBER.items():
        match = pattern.search(text)
        if match is None:
            raise AppError(f"sysbench printed no {name}: {text.strip()[-200:]}")
        values[name] = float(match[1])
    report = SysbenchReport(**values)
    if not report.writes_per_second or not report.seconds:
        raise AppError("sysbench wrote nothing in its timed window")
    return report


class Sysbench(Packaged):
    """Debian's sysbench."""

    descriptor = DESCRIPTOR
    unit = "ops"
    program = package = "sysbench"

    def run(
        self, site: Site, timing: Timing, options: Options, ready: Callable[[], None]
    ) -> AppResult:
        """Write the files (untimed), then run."""
        places = [site.dirs[0]]
        if options["instances"] == "each":
            places = [site.dirs[0] / f"instance{n}" for n in range(site.cores)]
            for place in places:
                place.mkdir()
        total = min(int(options["total_mb"]) * _MB, site.space // len(places) // _MB * _MB)
        common = [
            "sysbench",
            "fileio",
            f"--file-num={options['files']}",
            f"--file-total-size={total}",
            "--file-block-size=4096",
            f"--file-test-mode={options['pattern']}",
            "--file-io-mode=sync",
            "--file-fsync-freq=0",
            f"--file-fsync-all={'on' if options['fsync'] == 'each' else 'off'}",
            "--file-fsync-end=off",
            f"--threads={site.cores // len(places)}",
            # sysbench accepts 31 bits, but the runner's seeds have 32.
            f"--rand-seed={site.seed % 2**31}",
        ]
        run = [*common, f"--time={max(1, round(timing.duration))}", "--events=0"]
        with Processes(site) as processes:
            for place in places:
                processes.run([*common, "prepare"], timeout=5 * timing.margin, cwd=place)
            ready()
            texts, usage = processes.run_together([*run, "run"], timing, places)
        reports = [parse(text) for text in texts]
        return AppResult(
            amount=sum(report.writes_per_second * report.seconds for report in reports),
            unit=self.unit,
            seconds=max(report.seconds for report in reports),
            usage=usage,
            commands=processes.commands,
            extra={
                "label": f"{options['pattern']}, fsync {options['fsync']}",
                "mib_per_second": sum(report.mib_per_second for report in reports),
                "fsyncs_per_second": sum(report.fsyncs_per_second for report in reports),
                "latency_p95_ms": max(report.latency_p95_ms for report in reports),
                "output": "\n".join(texts),
            },
        )


APPS = [Sysbench()]
