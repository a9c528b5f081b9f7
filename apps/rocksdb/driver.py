# SPDX-License-Identifier: GPL-2.0-only
"""RocksDB: operations per second of db_bench, without compression.

They are overwrites, or reads and overwrites mixed: YCSB (Cooper et al., SoCC 2010) has 50% of reads
in its workload A and 95% in B. Its keys are Zipfian, those of db_bench uniform.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fscale.apps.base import AppError, AppResult, Options, Site, Timing
from fscale.apps.packaged import Packaged
from fscale.apps.process import Processes
from fscale.model.bench import Descriptor, OptionHelp

_VALUE = 8192
_KEY = 16
# Levelled compaction keeps about 1.1 copies; a compaction in flight and the files that it has not
# deleted yet may double that; logs and memtables come on top.
_COPIES = 4

DESCRIPTOR = Descriptor(
    id="rocksdb",
    title="RocksDB key/value store",
    operation="overwrite, or with reads=N read, one 8 KiB value of a random key (db_bench)",
    paper="FxMark, Figures 12(b), 14(b), 15",
    type="data",
    action="write",
    sharing="medium",
    contention="as DWAL: compaction threads append to files of their own; RocksDB's own locks",
    setup="a database filled in key order",
    consumes=False,
    background=False,
    min_cores=1,
    partitions=True,
    modes=["buffered"],
    options=[
        OptionHelp(
            name="keys",
            default=50000,
            least=1,
            help="keys of all databases, fewer if space is short",
        ),
        OptionHelp(name="wal", default=1, least=0, most=1, help="write-ahead log: 1 on, 0 off"),
        OptionHelp(
            name="sync",
            default=0,
            least=0,
            most=1,
            help="1: each write waits for the log to be synced",
        ),
        OptionHelp(
            name="databases", default=1, least=1, help="databases, spread over the partitions"
        ),
        OptionHelp(name="threads", default=0, least=0, help="threads; 0: one per core"),
        OptionHelp(
            name="reads",
            default=0,
            least=0,
            most=99,
            help="percent of operations that read a value: 50 as in YCSB A, 95 as in B",
        ),
    ],
)

_LINE = re.compile(
    r"^(?P<benchmark>\w+)\s*:\s*(?P<micros>[\d.]+) micros/op (?P<rate>\d+) ops/sec "
    r"(?P<seconds>[\d.]+) seconds (?P<ops>\d+) operations;(?:\s*(?P<mb>[\d.]+) MB/s)?",
    re.MULTILINE,
)


@dataclass(frozen=True)
class RocksDbReport:
    """The line about the benchmark in the output of db_bench."""

    ops: int
    seconds: float
    micros_per_op: float
    mb_per_second: float | None
    """of overwrites"""


def parse(text: str, benchmark: str = "overwrite") -> RocksDbReport:
    """Find the line about a benchmark; AppError if there is none or it did nothing."""
    # Progress reports, which end with carriage returns only, precede the line.
    lines = _LINE.finditer(text.replace("\r", "\n"))
    match = next((line for line in lines if line["benchmark"] == benchmark), None)
    if match is None:
        raise AppError(f"db_bench printed no figure for {benchmark}: {text.strip()[-200:]}")
    mb = float(match["mb"]) if match["mb"] else None
    report = RocksDbReport(int(match["ops"]), float(match["seconds"]), float(match["micros"]), mb)
    if not report.ops or not report.seconds:
        raise AppError("db_bench did no operation in its timed window")
    return report


class RocksDb(Packaged):
    """Debian's rocksdb-tools."""

    descriptor = DESCRIPTOR
    unit = "ops"
    program = "db_bench"
    package = "rocksdb-tools"

    def run(
        self, site: Site, timing: Timing, options: Options, ready: Callable[[], None]
    ) -> AppResult:
        """Fill the databases (untimed), then overwrite, or read as well, for the timed window."""
        databases = int(options["databases"])
        if databases < len(site.dirs):
            raise AppError(
                f"{len(site.dirs)} partitions need at least as many databases; give "
                f"databases={len(site.dirs)} or more",
                fault="user",
            )
        keys = min(int(options["keys"]), site.space // _COPIES // (_KEY + _VALUE)) // databases
        if keys < 1:
            raise AppError(
                f"{site.space} bytes of space are too few for {databases} databases; use a larger "
                "medium or fewer databases",
                fault="user",
            )
        place = _spread(site, databases)
        common = _common(place, databases, keys, options)
        with Processes(site) as processes:
            # One writer, because fillseq writes all keys once per thread.
            fill = ["db_bench", "--benchmarks=fillseq", "--threads=1", *common]
            processes.run(fill, timeout=timing.margin * 5)
            ready()
            reads = [f"--readwritepercent={options['reads']}"] if options["reads"] else []
            benchmark = "readrandomwriterandom" if reads else "overwrite"
            argv = [
                "db_bench",
                f"--benchmarks={benchmark}",
                *reads,
                "--use_existing_db=1",
                f"--threads={int(options['threads']) or site.cores}",
                # db_bench counts whole seconds.
                f"--duration={max(1, round(timing.duration))}",
                f"--max_background_jobs={max(2, site.cores)}",
                f"--seed={site.seed}",
                *common,
            ]
            text, usage = processes.run_timed(argv, timing)
        report = parse(text, benchmark)
        return AppResult(
            amount=report.ops,
            unit=self.unit,
            seconds=report.seconds,
            usage=usage,
            commands=processes.commands,
            extra={
                "label": f"WAL {'on' if options['wal'] else 'off'}, "
                f"{'synced' if options['sync'] else 'not synced'}",
                **({"mb_per_second": report.mb_per_second} if report.mb_per_second else {}),
                "micros_per_op": report.micros_per_op,
                "keys_per_database": keys,
                "output": clean(text),
            },
        )


APPS = [RocksDb()]


def clean(text: str) -> str:
    """The output without its progress reports."""
    lines = [line for line in text.replace("\r", "\n").splitlines() if line.strip()]
    return "\n".join(line.rstrip() for line in lines if not line.startswith("... finished"))


def _spread(site: Site, databases: int) -> Path:
    """The directory for --db: the only one, or one of links `0`, `1`, ... into the partitions."""
    if databases == 1:
        return site.dirs[0]
    place = site.scratch / "databases"
    place.mkdir()
    for number in range(databases):
        target = site.dirs[number % len(site.dirs)] / f"db{number}"
        target.mkdir()
        (place / str(number)).symlink_to(target)
    return place


def _common(place: Path, databases: int, keys: int, options: Options) -> list[str]:
    argv = [f"--db={place}", f"--num={keys}", f"--key_size={_KEY}", f"--value_size={_VALUE}"]
    argv += ["--compression_type=none", f"--disable_wal={int(not options['wal'])}"]
    argv += [f"--sync={options['sync']}"]
    if databases > 1:
        argv.append(f"--num_multi_db={databases}")
    return argv
