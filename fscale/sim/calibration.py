# SPDX-License-Identifier: GPL-2.0-only
"""Makes a machine of what `fscale-primitives` (calibrate/) has measured on a real one.

Times are in nanoseconds, those of the machine in cycles.
"""

import math
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path

from pydantic import Field

from fscale.model import paths
from fscale.model.bench import Plain, Strict
from fscale.model.errors import FscaleError
from fscale.model.files import parse_json
from fscale.model.results import Cpu
from fscale.sim.machine import Costs, Latencies, SimulatedMachine
from fscale.system.executor import Executor
from fscale.system.programs import made

MIN_CPUS = 2
PATIENCE = 3600.0  # seconds of one call
# Cycles per instruction are not measured: virtual machines seldom have the counters. Shared reads
# are answered one after another, by an assumed distance.
CPI = 1.0
OCCUPY_SHARED = 15
QUANTILES = (0.05, 0.95)
# A write costs no transfer if it takes less than this part of one of a modified line.
FREE = 0.5
# Transfers that one hand-over of a queued lock needs one after another: the store to the flag of
# the next waiter, its read, and the read of what the lock guards.
HANDED = 3

Matrix = list[list[float | None]]
"""nanoseconds: rows are CPUs that get the line, columns CPUs that had it"""


class Crowd(Strict):
    """Throughput of some cores that contend for one object."""

    ops_per_second: float
    slowest_of_mean: float = Field(description="rate of the slowest core by that of the mean")


class PrimitivesOutput(Strict):
    """The output of one call of `fscale-primitives`."""

    cpus: list[int]
    core: dict[str, float]
    nanoseconds_of_transfers: dict[str, Matrix]
    crowds: dict[str, dict[str, Crowd]]


class Calibration(Strict):
    """What a machine is made of, and where and when it was measured."""

    cpu: Plain
    day: date
    virtual: bool = Field(description="whether it was a virtual machine")
    sockets: dict[int, int] = Field(description="CPU -> its socket")
    hidden_threads: bool = Field(description="whether cores have further hardware threads")
    samples: list[PrimitivesOutput] = Field(min_length=1)


def cores(topology: Sequence[Cpu], usable: Collection[int]) -> list[Cpu]:
    """The first usable CPU of each core; FscaleError with fewer than two cores."""
    first: dict[tuple[int, int], Cpu] = {}
    for cpu in sorted(topology, key=lambda cpu: cpu.cpu):
        if cpu.cpu in usable:
            first.setdefault((cpu.socket, cpu.core), cpu)
    if len(first) < MIN_CPUS:
        raise FscaleError(
            f"only {len(first)} core can be used, but a transfer needs {MIN_CPUS}; bring CPUs "
            "online, or widen the affinity (taskset) of this process"
        )
    return list(first.values())


def argv(cpus: Sequence[int]) -> list[str]:
    """The command line that measures these CPUs."""
    return [str(paths.PRIMITIVES), ",".join(map(str, cpus))]


def sample(cpus: Sequence[int]) -> PrimitivesOutput:
    """Measure once: every ordered pair of CPUs, and crowds of them.

    Raises:
        FscaleError: the program cannot be compiled, or fails.
    """
    made(paths.PRIMITIVES)
    return PrimitivesOutput.model_validate(
        parse_json(Executor().run(argv(cpus), timeout=PATIENCE).encode())
    )


def machine(measured: Calibration) -> SimulatedMachine:
    """The machine whose costs are the medians over all calls and pairs of CPUs."""
    one = _medians(measured, remote=False)
    core = {
        name: statistics.median(sample.core[name] for sample in measured.samples)
        for name in measured.samples[0].core
    }
    mhz = 10 * round(100 / core["cycle_ns_alone"])

    def cycles(nanoseconds: float) -> int:
        return round(nanoseconds * mhz / 1000)

    def overlap(dirty: float) -> int:
        most = str(len(used))
        if len(set(sockets)) > 1 or "queue_lock" not in measured.samples[0].crowds:
            return 0
        rates = [sample.crowds["queue_lock"][most].ops_per_second for sample in measured.samples]
        return max(0, cycles(dirty - 1e9 / statistics.median(rates) / HANDED))

    def latency(of: Mapping[str, float]) -> tuple[int, int, int]:
        # With two cores no third can have a copy: a clean line then costs what a modified one does.
        clean = of.get("clean", of["dirty"])
        upgrade = of["upgrade"] - core["add_ns"]
        if _free(upgrade, of["dirty"]):
            upgrade = of["dirty"]
        return cycles(clean), cycles(of["dirty"]), cycles(upgrade)

    used = set(measured.samples[0].cpus)
    sockets = [socket for cpu, socket in measured.sockets.items() if cpu in used]
    near, far = latency(one), latency(_medians(measured, remote=True) or one)
    after = one.get("add_after_read", one["upgrade"]) - core["add_ns"]
    return SimulatedMachine(
        title=f"{len(used)} cores of {measured.cpu}",
        source=f"fscale calibrate, {measured.day:%d %B %Y}, medians of {len(measured.samples)} "
        "calls over all pairs of cores",
        unseen=unseen(measured),
        sockets=len(set(sockets)),
        cores_per_socket=max(sockets.count(socket) for socket in set(sockets)),
        clock_mhz=mhz,
        cpi=CPI,
        migratory=_free(after, one["dirty"]),
        string_bytes=max(1, math.floor(core["string_bytes_per_ns"] * 1000 / mhz)),
        latency=Latencies(
            clean=near[0],
            clean_remote=far[0],
            dirty=near[1],
            dirty_remote=far[1],
            upgrade=near[2],
            upgrade_remote=far[2],
            memory=cycles(core["memory_ns"]),
            overlap=overlap(one["dirty"]),
            occupy_shared=OCCUPY_SHARED,
        ),
        cost=Costs(lock=cycles(core["add_ns"]), pause=cycles(core["pause_ns"])),
    )


def _free(nanoseconds: float, dirty: float) -> bool:
    return nanoseconds < FREE * dirty


def unseen(measured: Calibration) -> list[str]:
    """What the measurement could not see, a sentence each."""
    sentences = [
        f"Cycles per instruction: {CPI} is assumed.",
        "Entering the kernel: SYSCALL costs nothing more than other instructions.",
        f"The distance of answered reads of a shared line: {OCCUPY_SHARED} cycles are assumed.",
    ]
    if "add_after_read" not in measured.samples[0].nanoseconds_of_transfers:
        sentences.append("Migration: whether a line that is read and then written comes whole.")
    near = _medians(measured, remote=False)
    if _free(near["upgrade"], near["dirty"]):
        sentences.append("Upgrades: the line was there whole in the end, so upgrade repeats dirty.")
    if len(set(measured.sockets.values())) == 1:
        sentences.append("Other sockets: there is one, so remote latencies repeat the near ones.")
    if len(measured.samples[0].cpus) == MIN_CPUS:
        sentences.append("A line that a third core shares: there are two, so clean repeats dirty.")
    if measured.hidden_threads:
        sentences.append("Hardware threads: the first of each core was measured, alone.")
    if measured.virtual:
        sentences.append(
            "The host of this virtual machine: its other load, and where its CPUs are."
        )
    values = sorted(value for _, value in _pairs(measured, "dirty"))
    low, high = (values[round(part * (len(values) - 1))] for part in QUANTILES)
    sentences.append(
        f"Distances between single cores: dirty is {low:.0f} to {high:.0f} ns (5% to 95% of the "
        "pairs), and the model has one latency."
    )
    return sentences


def _pairs(measured: Calibration, kind: str) -> Iterator[tuple[bool, float]]:
    """Whether a pair spans two sockets, and its nanoseconds."""
    for one in measured.samples:
        for to, row in zip(one.cpus, one.nanoseconds_of_transfers[kind], strict=True):
            for origin, value in zip(one.cpus, row, strict=True):
                if value is not None:
                    yield measured.sockets[to] != measured.sockets[origin], value


def _medians(measured: Calibration, *, remote: bool) -> dict[str, float]:
    """The median of each kind over the pairs within, or between, sockets; of those that exist."""
    medians = {}
    for kind in measured.samples[0].nanoseconds_of_transfers:
        values = [value for far, value in _pairs(measured, kind) if far == remote]
        if values:
            medians[kind] = statistics.median(values)
    return medians


def toml(machine: SimulatedMachine) -> str:
    """The machine as a TOML file of configs/machines."""
    lines = ["# SPDX-License-Identifier: GPL-2.0-only"]
    tables: list[tuple[str, Mapping[str, object]]] = []
    for name, value in machine.model_dump().items():
        if isinstance(value, dict):
            tables.append((name, value))
        elif isinstance(value, list):
            lines += [f"{name} = [", *(f"    {_text(item)}," for item in value), "]"]
        else:
            lines.append(f"{name} = {_text(value)}")
    for name, table in tables:
        lines += ["", f"[{name}]", *(f"{key} = {_text(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _text(value: object) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return str(value).lower()


def read(path: Path) -> Calibration:
    """What `--data` has written; FscaleError if it is something else."""
    try:
        return Calibration.model_validate(parse_json(path.read_bytes()))
    except ValueError as error:
        raise FscaleError(f"{path} is not a file of `fscale calibrate --data`: {error}") from None
