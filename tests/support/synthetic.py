# SPDX-License-Identifier: GPL-2.0-only
"""Writes run directories of made-up figures, for tests of what reads results.

Nothing here was measured: the host is `synthetic-test-host`, and rates follow Gunther's universal
scalability law with coefficients drawn from a seed.
"""

import hashlib
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fscale.model.bench import (
    Background,
    BenchOutput,
    CpuTimes,
    Descriptor,
    Intervals,
    Window,
    Worker,
)
from fscale.model.results import Cell, CellKey, Command, Confinement, Cpu, Machine, Run, Slice

PAPER = [
    *("DRBL", "DRBM", "DRBH", "DWOL", "DWOM", "DWAL", "DWTL", "DWSL", "MRPL", "MRPM", "MRPH"),
    *("MRDL", "MRDM", "MWCL", "MWCM", "MWUL", "MWUM", "MWRL", "MWRM"),
]
BACKGROUND = ["DRBL_bg", "DRBM_bg", "DRBH_bg", "MRDL_bg", "MRDM_bg", "MRPM_bg"]
SHARING = {"L": "low", "M": "medium", "H": "high"}
START = "2026-01-01T00:00:00Z"


def descriptor(workload: str) -> Descriptor:
    """A plausible descriptor."""
    background = workload.endswith("_bg")
    return Descriptor(
        id=workload,
        title=f"made-up title of {workload}",
        operation="pread(fd, b, 4K, 0)",
        paper=workload,
        type="data" if workload[0] == "D" else "metadata",
        action="read" if workload[1] == "R" else "write",
        sharing=SHARING[workload[3]],
        contention="",
        setup="",
        consumes=False,
        background=background,
        min_cores=2 if background else 1,
        modes=["buffered", "direct"],
        options=[],
    )


def _writer(cpu: int, ops: int, key: CellKey) -> Background:
    """A writer that is half as fast as the readers together."""
    return Background(cpu=cpu, ops=ops // 2, ops_per_second=ops // 2 / key.duration)


def key(repetition: int = 1, **changes: object) -> CellKey:
    """DRBL on ext4 at one core, with some fields changed."""
    fields = {
        "workload": "DRBL", "filesystem": "ext4", "medium": "ram", "mode": "buffered",
        "cores": 1, "repetition": repetition, "duration": 1,
    }  # fmt: skip
    return CellKey.model_validate(fields | changes)


def cell(key: CellKey, rate: float, **changes: Any) -> Cell:
    """An ok cell that did `rate` operations a second for `key.duration` seconds."""
    on_cpus = key.cores - (1 if key.workload.endswith("_bg") else 0)
    workers = on_cpus * key.workers_per_cpu
    ops = max(1, round(rate * key.duration))
    cpu = _cpu(key)
    each = [ops // workers + (1 if i < ops % workers else 0) for i in range(workers)]
    bench = BenchOutput(
        schema=1,
        workload=key.workload,
        mode=key.mode,
        options={},
        seed=1,
        status="ok",
        reason=None,
        end="time",
        ops=ops,
        executed_ops=ops,
        seconds=key.duration,
        ops_per_second=rate,
        setup_seconds=0.1,
        warmup_seconds=0.1,
        clock="monotonic",
        cpus=list(range(key.cores)),
        windows=[Window(start_ns=0, seconds=key.duration, ops=each, end="time")],
        workers=[
            Worker(
                id=i,
                cpu=i % on_cpus,
                ops=n,
                user_seconds=cpu.user / workers,
                system_seconds=cpu.system / workers,
                voluntary_switches=0,
                involuntary_switches=0,
            )
            for i, n in enumerate(each)
        ],
        background=_writer(on_cpus, ops, key) if on_cpus < key.cores else None,
        intervals=Intervals(seconds=[key.duration], ops=[ops]),
        cpu=cpu,
        cgroup_cpu_seconds=cpu.user + cpu.system,
        busy_cpu_seconds=cpu.user + cpu.system,
        stock=None,
        latency=None,
        error=None,
    )
    fields: dict[str, Any] = {
        "id": key.id,
        "key": key,
        "status": "ok",
        "started": START,
        "wall_seconds": key.duration + 0.5,
        "ops": ops,
        "seconds": key.duration,
        "ops_per_second": rate,
        "cpu": cpu,
        "own_cpu_seconds": cpu.user + cpu.system,
        "others_cpu_seconds": 0.01,
        "cpu_control": "hotplug",
        "cpus": list(range(key.cores)),
        "commands": _commands(key),
        "bench": bench,
    }
    return Cell(**(fields | changes))


def bare_cell(key: CellKey, rate: float, **changes: Any) -> Cell:
    """An ok cell that says no more than its rate."""
    ops = rate * key.duration
    fields: dict[str, Any] = {
        "id": key.id, "key": key, "status": "ok", "started": START, "wall_seconds": 1,
        "ops": ops, "seconds": key.duration, "ops_per_second": rate,
    }  # fmt: skip
    return Cell(**(fields | changes))


def _random(*parts: object) -> random.Random:
    return random.Random(hashlib.sha256(repr(parts).encode()).hexdigest())


def _cpu(key: CellKey) -> CpuTimes:
    draw = _random("cpu", key.workload, key.filesystem, key.cores)
    total = key.cores * key.duration
    weights = [draw.uniform(0.05, 0.3), 1, draw.uniform(0, 1), draw.uniform(0, 0.3), 0.02, 0.01]
    weights.append(draw.uniform(0, 0.05))
    share = [total * w / sum(weights) for w in weights]
    names = ("user", "system", "idle", "iowait", "irq", "softirq", "steal")
    return CpuTimes(**dict(zip(names, share, strict=True)))


def _commands(key: CellKey) -> list[Command]:
    bench = ["build/microbench/fscale-bench", "--workload", key.workload, "--cpus"]
    bench.append(f"0-{key.cores - 1}" if key.cores > 1 else "0")
    mkfs = ["mkfs." + key.filesystem.split("-")[0], "-q", "/dev/loop7"]
    return [Command(argv=argv, seconds=0.1, returncode=0) for argv in (mkfs, bench)]


def usl_rate(key: CellKey, noise: float = 0.02) -> float:
    """A made-up rate: lambda n / (1 + sigma (n - 1) + kappa n (n - 1)), with noise."""
    draw = _random("usl", key.workload, key.filesystem, key.mode)
    one = 10 ** draw.uniform(4, 6.6)
    sigma, kappa = draw.choice([(0.01, 0), (0.3, 0.002), (0.9, 0.05), (0.05, 0.0005)])
    n = key.cores
    exact = one * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))
    return exact * (1 + noise * _random("noise", key.id).gauss(0, 1))


def cpus_of(sockets: int, cores: int, threads: int = 1) -> list[Cpu]:
    """CPUs of so many sockets with so many cores each, numbered as Linux does: threads last."""
    count = sockets * cores
    places = [(n, n // cores) for n in range(count)] * threads
    return [Cpu(cpu=i, core=n, socket=s, node=s) for i, (n, s) in enumerate(places)]


def machine(cpus: int, topology: list[Cpu] | None = None, **changes: Any) -> Machine:
    """A machine that says it is made up; without a topology its sockets have ten cores each."""
    made: dict[str, Any] = {
        "hostname": "synthetic-test-host",
        "kernel": "0.0.0-synthetic",
        "kernel_cmdline": "quiet",
        "architecture": "x86_64",
        "cpu_model": "made-up CPU",
        "memory_bytes": 16 << 30,
        "topology": topology
        or [Cpu(cpu=i, core=i, socket=i // 10, node=i // 10) for i in range(cpus)],
        "cpu_order": list(range(cpus)),
        "governor": None,
        "mitigations": {"spectre_v2": "Mitigation: made up"},
        "virtualization": None,
    }
    return Machine(**(made | changes))


def confinement(**changes: Any) -> Confinement:
    """What leaves a run the whole machine, with some changes."""
    whole: dict[str, Any] = {
        "cgroups": "v2",
        "cpus": None,
        "memory_bytes": None,
        "swap_bytes": None,
        "cpuset": None,
        "namespaces": {},
        "denied": {},
        "hidden": [],
    }
    return Confinement.model_validate(whole | changes)


def run(**changes: Any) -> Run:
    """A complete run without cells, with some fields changed."""
    fields: dict[str, Any] = {
        "id": "synthetic",
        "started": START,
        "finished": "2026-01-01T00:09:30Z",
        "state": "complete",
        "fscale_version": "0.1.0",
        "revision": "0" * 40,
        "command": ["/root/fscale/__main__.py run quick --output 'results/x y'"],
        "seed": 42,
        "suite": {"name": "synthetic"},
        "filesystems": {},
        "media": {"ram": {"title": "a file on tmpfs behind a loop device"}},
        "machine": machine(2),
        "versions": {"python": "3.11"},
        "workloads": [],
        "planned_cells": 0,
        "warnings": [],
    }
    return Run(**(fields | changes))


def write_run(
    directory: Path,
    cells: Iterable[Cell],
    *,
    workloads: Iterable[str] = PAPER,
    filesystems: Iterable[str] = ("tmpfs", "ext4", "xfs", "btrfs"),
    cpus: int = 2,
    **changes: Any,
) -> Path:
    """Write run.json and cells/*.json as the runner lays them out."""
    cells = list(cells)
    fields: dict[str, Any] = {
        "filesystems": {name: {"title": name} for name in filesystems},
        "machine": machine(cpus),
        "workloads": [descriptor(w).model_dump() for w in workloads],
        "planned_cells": len(cells),
    }
    (directory / "cells").mkdir(parents=True, exist_ok=True)
    (directory / "run.json").write_text(run(**(fields | changes)).model_dump_json(by_alias=True))
    for one in cells:
        path = directory / "cells" / f"{one.id}.json"
        path.write_text(one.model_dump_json(by_alias=True))
    return directory


def sliced(key: CellKey, rates: list[float], turn: float = 0.018) -> Cell:
    """A cell whose block b ran at rates[b], in two turns that take a whole CPU."""
    turns = [
        Slice(block=block, ops=round(rate * turn), seconds=turn, cpu_seconds=turn)
        for block, rate in enumerate(rates)
        for _ in range(2)
    ]
    return cell(key, sum(rates) / len(rates), slices=turns)


def grid(
    cores: Iterable[int],
    repetitions: int = 3,
    workloads: Iterable[str] = (*PAPER, *BACKGROUND),
    filesystems: Iterable[str] = ("tmpfs", "ext4", "xfs", "btrfs"),
    media: Iterable[str] = ("ram",),
    modes: Iterable[str] = ("buffered",),
    rate: Callable[[CellKey], float] = usl_rate,
) -> list[Cell]:
    """Every cell of a full plan, ok and with made-up rates."""
    keys = (
        key(repetition, workload=workload, filesystem=name, medium=medium, mode=mode, cores=count)
        for medium in media
        for mode in modes
        for workload in workloads
        for name in filesystems
        for count in cores
        if count >= (2 if workload.endswith("_bg") else 1)
        for repetition in range(1, repetitions + 1)
    )
    return [cell(one, rate(one)) for one in keys]
