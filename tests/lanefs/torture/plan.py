# SPDX-License-Identifier: GPL-2.0-only
"""What is tested, cut into slices: each is one guest of some minutes.

Slices of one part differ in seed, and take turns in placement, the journal's mode and number of
domains.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from fscale.model import catalogue
from fscale.vm.crashload import WORKLOADS as CRASH_WORKLOADS

KERNELS = ("bookworm", "trixie", "sid")
PLACEMENTS = ("lane", "roundrobin", "single")
JOURNALS = ("concurrent", "parallel", "serial")
# What the slices of a log are mounted with, in turns.
COLLECTORS = (
    *("ablate=none", "ablate=gc", "ablate=svp+dws+lsu+cvs", "ablate=dpb"),
    *("victims=costbenefit", "strict=on"),
)
# Collectors are always at work.
COLLECTING = "lanefs.gc_low=100"
# Seconds after which a guest is ended. Most slices take a tenth of it on two cores; one that shows
# no sign of life is ended sooner.
LIMIT = 1200
CORES = "1,2,4,8"
PROCESSES = 8


@dataclass(frozen=True)
class Part:
    """One kind of test: so many slices, each of so many units."""

    name: str
    unit: str
    slices: int
    amount: int
    """units of a slice"""
    seconds: float
    """of a slice: first guess of the time that is left"""


@dataclass(frozen=True)
class Boot:
    """What a guest boots, and how long it may take."""

    kernel: str
    """one of KERNELS, or the path of a built tree"""
    limit: int = LIMIT
    """seconds after which it is ended"""
    append: str = ""
    """more kernel parameters"""
    log: bool = False
    """whether the file system is a log, and its collectors are always at work"""

    @property
    def name(self) -> str:
        """Of the kernel; of a tree that `fscale vm kernel build` made, the digest."""
        path = Path(self.kernel)
        name = path.parent.name if path.name == "build" else path.name
        return f"{name}-log" if self.log else name

    @property
    def filesystem(self) -> str:
        """Its name in the catalogue."""
        return "lanefs_log" if self.log else "lanefs"

    def options(self, number: int) -> str:
        """Mount options of a slice of this number, which a log has more of."""
        return f",{COLLECTORS[number % len(COLLECTORS)]}" if self.log else ""

    @property
    def argv(self) -> list[str]:
        """Options that all commands that boot guests have."""
        option = "--kernel" if self.kernel in KERNELS else "--kernel-tree"
        append = " ".join(filter(None, [self.append, COLLECTING if self.log else ""]))
        more = ["--append", append] if append else []
        return [option, self.kernel, "--timeout", str(self.limit), *more]


@dataclass(frozen=True)
class Slice:
    """One guest."""

    boot: Boot
    part: Part
    number: int
    module: str
    """for python -m"""
    argv: list[str]
    amount: int
    results: bool = False
    """it leaves a run of the suite in its --output, whose cells must all be ok"""

    @property
    def id(self) -> str:
        """Such as `trixie-crash-3`."""
        return f"{self.boot.name}-{self.part.name}-{self.number}"


# Seconds: Linux 6.12 in TCG guests on two cores of an AMD EPYC, shared with others' load.
FUNCTIONS = Part("functions", "runs", 3, 1, 60)
MODEL = Part("model", "operations", 10, 102_400, 60)
PRESSURE = Part("pressure", "operations", 4, 51_200, 75)
FULL = Part("full", "operations", 4, 102_400, 75)
# Of a log, whose collectors have most to do there.
FULL_LOG = replace(FULL, slices=10)
IMAGES = Part("images", "images", 20, 100, 80)
CRASH = Part("crash", "points", 2 * len(CRASH_WORKLOADS), 75, 120)
SUITE = Part("suite", "cells", 5, 16, 120)
APPS = Part("apps", "cells", 3, 2, 60)
NAMES = Part("names", "names", 1, 1_000_000, 500)
RECOVERIES = Part("recoveries", "points", 4, 30, 300)
RECOVERY_CUTS = Part("recovery_cuts", "points", 2, 20, 300)


def plan(
    kernels: Sequence[str] = KERNELS, limit: int = LIMIT, append: str = "", log: bool = False
) -> list[Slice]:
    """All slices. The parts and kernels take turns, so that a short run has seen some of each.

    `log`: of a log, what its data may suffer from.
    """
    if log:
        parts = (_functions, _model, _crash, _images, _pressure, _full, _recoveries, _recovery_cuts)
    else:
        parts = (
            *(_functions, _model, _crash, _images, _suite, _apps, _pressure, _full, _names),
            *(_recoveries, _recovery_cuts),
        )
    boots = [Boot(kernel, limit, append, log) for kernel in kernels]
    lines = [list(make(boot)) for make in parts for boot in boots]
    return [found for turn in zip_longest(*lines) for found in turn if found]


def _inside(
    boot: Boot, part: Part, number: int, *argv: str, smp: int = 4, placement: str = ""
) -> Slice:
    """A part of `python -m tests.lanefs`; the placements take turns where none is given."""
    common = [*boot.argv, "--fs", boot.filesystem, "--smp", str(smp), "--part", part.name]
    journal = JOURNALS[number // len(PLACEMENTS) % len(JOURNALS)]
    chosen = placement or PLACEMENTS[number % len(PLACEMENTS)]
    common += ["-o", f"placement={chosen},journal={journal}{boot.options(number)}"]
    return Slice(boot, part, number, "tests.lanefs", [*common, *argv], part.amount)


def _functions(boot: Boot) -> Iterator[Slice]:
    for number in range(FUNCTIONS.slices):
        yield _inside(boot, FUNCTIONS, number)


def _operations(boot: Boot, part: Part, *argv: str) -> Iterator[Slice]:
    rounds = 4
    ops = part.amount // PROCESSES // rounds
    for number in range(part.slices):
        seed = 1000 * (number + 1)
        yield _inside(
            boot,
            part,
            number,
            *("--processes", str(PROCESSES), "--rounds", str(rounds), "--ops", str(ops)),
            *("--seed", str(seed), "--mkfs", f"--domains {(4, 8, 1)[number % 3]}"),
            *argv,
        )


def _model(boot: Boot) -> Iterator[Slice]:
    return _operations(boot, MODEL)


def _pressure(boot: Boot) -> Iterator[Slice]:
    return _operations(boot, PRESSURE, "--memory", "1G")


def _full(boot: Boot) -> Iterator[Slice]:
    return _operations(boot, FULL_LOG if boot.log else FULL)


def _names(boot: Boot) -> Iterator[Slice]:
    mkfs = f"--domains 4 --inodes {NAMES.amount * 5 // 4}"
    for number in range(NAMES.slices):
        yield _inside(
            boot,
            NAMES,
            number,
            *("--names", str(NAMES.amount), "--mib", "800", "--mkfs", mkfs),
        )


def _recovered(boot: Boot, part: Part) -> Iterator[Slice]:
    for number in range(part.slices):
        argv = ["--points", str(part.amount), "--seed", str(number + 1)]
        # Objects in turns, so that most transactions need others.
        yield _inside(boot, part, number, *argv, placement="roundrobin")


def _recoveries(boot: Boot) -> Iterator[Slice]:
    return _recovered(boot, RECOVERIES)


def _recovery_cuts(boot: Boot) -> Iterator[Slice]:
    return _recovered(boot, RECOVERY_CUTS)


def _images(boot: Boot) -> Iterator[Slice]:
    for number in range(IMAGES.slices):
        first = IMAGES.slices * [*KERNELS, boot.kernel].index(boot.kernel)
        yield _inside(
            boot,
            IMAGES,
            number,
            *("--images", str(IMAGES.amount), "--seed", str(first + number + 1)),
            *("--mkfs", "--domains 2"),
            # One program looks at one image after the other: a second CPU would cost half as much
            # again. Objects come into both domains all the same.
            smp=1,
            placement="roundrobin",
        )


def _crash(boot: Boot) -> Iterator[Slice]:
    for number in range(CRASH.slices):
        workload = list(CRASH_WORKLOADS)[number % len(CRASH_WORKLOADS)]
        # The second slice of a workload has another placement than the first.
        placement = PLACEMENTS[(number + number // len(CRASH_WORKLOADS)) % len(PLACEMENTS)]
        journal = JOURNALS[number // 2 % len(JOURNALS)]
        argv = ["vm", "crash", "--fs", boot.filesystem, *boot.argv, "--smp", "4"]
        argv += ["--workload", workload, "--points", str(CRASH.amount)]
        # One more state of the disk at each point: a random part of what was under way.
        argv += ["--subsets", "1", "--seed", str(number + 1)]
        options = f"noatime,placement={placement},journal={journal}{boot.options(number)}"
        argv += ["--mount-options", options]
        if number % 2:
            # A log with transactions of all modes; the mount has begun with the last.
            turn = JOURNALS.index(journal) + 1
            modes = (*JOURNALS[turn:], *JOURNALS[:turn])
            argv += [word for mode in modes for word in ("--remount", f"journal={mode}")]
        yield Slice(boot, CRASH, number, "fscale", argv, CRASH.amount)


def _run(boot: Boot, suite: str, workloads: Sequence[str], cores: str, seconds: float) -> list[str]:
    return [
        *("vm", "run", suite, "--fs", "lanefs", *boot.argv, "--smp", "8"),
        *("--workload", ",".join(workloads), "--cores", cores),
        *("--repetitions", "1", "--duration", str(seconds)),
    ]


def _suite(boot: Boot) -> Iterator[Slice]:
    workloads = catalogue.load_suite(Path("quick")).workloads
    for number in range(SUITE.slices):
        taken = workloads[number :: SUITE.slices]
        argv = _run(boot, "quick", taken, CORES, 0.5)
        amount = len(taken) * len(CORES.split(","))
        yield Slice(boot, SUITE, number, "fscale", argv, amount, results=True)


def _apps(boot: Boot) -> Iterator[Slice]:
    for number, name in enumerate(("exim", "rocksdb", "dbench")):
        # dbench does not start its clock in less than five seconds.
        argv = _run(boot, "apps", [name], "1,4", 5)
        yield Slice(boot, APPS, number, "fscale", argv, APPS.amount, results=True)
