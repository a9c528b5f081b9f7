# SPDX-License-Identifier: GPL-2.0-only
"""DBENCH: MB and operations per second of N clients that replay its client.txt."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fscale.apps.base import AppError, AppResult, Options, Site, Timing
from fscale.apps.meter import Edge, Meter, Usage, between
from fscale.apps.packaged import Packaged
from fscale.apps.process import Processes, command_output
from fscale.model.bench import Descriptor, OptionHelp

LOAD = Path("/usr/share/dbench/client.txt")

DESCRIPTOR = Descriptor(
    id="dbench",
    title="DBENCH file server",
    operation="1 MB read or written, with the opens, renames, deletes, ... in between",
    paper="FxMark, Figure 12(c)",
    type="metadata",
    action="write",
    sharing="medium",
    contention="as MWCM and MWUM: files made and removed in a shared directory",
    setup="an empty directory; dbench warms up for a fifth of the time",
    consumes=False,
    background=False,
    min_cores=1,
    least_seconds=5,  # dbench warms up for a fifth of its time, in whole seconds
    modes=["buffered"],
    options=[
        OptionHelp(name="clients", default=0, least=0, help="client processes; 0: one per core"),
        OptionHelp(name="load", default=str(LOAD), help="load file to replay"),
    ],
)

_THROUGHPUT = re.compile(r"^Throughput ([\d.]+) MB/sec .*?(\d+) clients", re.MULTILINE)
_EXECUTE = re.compile(r"([\d.]+) MB/sec\s+execute\s+(\d+) sec")
_CLEANUP = re.compile(r"cleanup\s+(\d+) sec")
_OPERATION = re.compile(r"^\s(\w+)\s+(\d+)\s+([\d.]+)\s+([\d.]+)\s*$", re.MULTILINE)
_TROUBLE = re.compile(r"^.*(?:failed for|No space|ERROR|Child failed|failed \().*$", re.MULTILINE)


@dataclass(frozen=True)
class DbenchReport:
    """The final output of dbench, which covers the time after the warm-up."""

    mb_per_second: float
    mb_seconds: int  # period of mb_per_second, as of dbench's last report
    clients: int
    operations: dict[str, int]
    seconds: int  # period in which the operations were counted


def parse(text: str) -> DbenchReport:
    """Read the output; AppError if a client failed or nothing was done."""
    if trouble := _TROUBLE.search(text):
        raise AppError(f"dbench: a client failed: {trouble[0].strip()}")
    throughput = _THROUGHPUT.search(text)
    execute = _EXECUTE.findall(text)
    cleanup = _CLEANUP.search(text)
    operations = {name: int(count) for name, count, *_ in _OPERATION.findall(text)}
    if not (throughput and execute and cleanup):
        raise AppError(f"dbench did not finish; its last output: {text.strip()[-200:]}")
    if not float(throughput[1]) or not sum(operations.values()):
        raise AppError("dbench did nothing in its timed window")
    return DbenchReport(
        mb_per_second=float(throughput[1]),
        mb_seconds=int(execute[-1][1]),
        clients=int(throughput[2]),
        operations=operations,
        seconds=int(cleanup[1]),
    )


class Dbench(Packaged):
    """Debian's dbench 4."""

    descriptor = DESCRIPTOR
    unit = "MB"
    program = package = "dbench"

    def version(self) -> str:
        """The first line that it prints."""
        return command_output("dbench", "--help").splitlines()[0].split(" - ")[0]

    def run(
        self, site: Site, timing: Timing, options: Options, ready: Callable[[], None]
    ) -> AppResult:
        """Replay the load file; dbench warms up by itself and leaves that out of its figures."""
        if timing.duration < DESCRIPTOR.least_seconds:
            raise AppError(
                f"dbench needs at least {DESCRIPTOR.least_seconds:g} s for a warm-up; give a "
                "longer duration",
                fault="user",
            )
        load = Path(str(options["load"]))
        if not load.is_file():
            raise AppError(f"dbench: the load file {load} does not exist", fault="user")
        seconds = round(timing.duration)
        clients = int(options["clients"]) or site.cores
        argv = ["dbench", "-t", str(seconds), "-c", str(load), "-D", str(site.dirs[0])]
        argv.append(str(clients))
        window = _Window(Meter(site.cpus, site.cgroup))
        with Processes(site) as processes:
            ready()
            timeout = seconds * 1.2 + timing.margin
            text = processes.run(argv, timeout=timeout, watch=window.watch, tick=window.tick)
        report = parse(text)
        return AppResult(
            amount=report.mb_per_second * report.seconds,
            unit=self.unit,
            seconds=report.seconds,
            usage=window.usage(),
            commands=processes.commands,
            extra={
                "label": f"{report.clients} clients",
                "operations": report.operations,
                "operations_per_second": sum(report.operations.values()) / report.seconds,
                "mb_seconds": report.mb_seconds,
                "load_file": str(load),
                "output": text,
            },
        )


class _Window:
    """CPU times of the timed part. dbench reports its begin only after the first second.

    So the counters of a moment ago are used, and profilers miss that second.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._past: list[Edge] = []
        self._start: Edge | None = None
        self._end: Edge | None = None

    def tick(self) -> None:
        """Store the counters until the beginning is known."""
        if self._start is None:
            self._past.append(self._meter.read())

    def watch(self, line: str) -> None:
        """Process a line of the output."""
        if self._start is None and _EXECUTE.search(line):
            began = time.monotonic() - int(_EXECUTE.findall(line)[0][1])
            self._start = min(self._past, key=lambda edge: abs(edge.clock - began))
            self._meter.open()
        elif self._end is None and _CLEANUP.search(line):
            self._end = self._meter.close()

    def usage(self) -> Usage:
        """From the end of the warm-up to the beginning of the clean-up."""
        if self._start is None or self._end is None:
            raise AppError("dbench printed no line about its timed window")
        return between(self._start, self._end)


APPS = [Dbench()]
