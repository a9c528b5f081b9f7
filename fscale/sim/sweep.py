# SPDX-License-Identifier: GPL-2.0-only
"""Turns the user's request into cells, boots, and the run to which they belong."""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fscale.model import catalogue, paths, runs, variant
from fscale.model.bench import Mode
from fscale.model.config import FileSystem, Medium, Suite
from fscale.model.errors import FscaleError
from fscale.model.results import CellKey, Cpu, Machine, Run
from fscale.model.store import BENCH, Store
from fscale.runner import microbench
from fscale.runner import plan as plans
from fscale.runner.guard import check_output
from fscale.runner.options import refuse_idle, resolve
from fscale.runner.request import parse_options
from fscale.sim import emulator, image, kerneltypes, machine
from fscale.sim.kerneltypes import Types
from fscale.sim.machine import Method
from fscale.sim.plan import GuestPoint, Sockets, WindowPlan, fixed, sockets
from fscale.system.programs import made
from fscale.vm import kernel as kernels
from fscale.vm import module_build, qemu
from fscale.vm.kernel import Kernel
from fscale.vm.qemu import Qemu
from fscale.vm.steps import Steps

ACCELERATOR = "simulated"
LABEL = "simulated: the shape of curves and counts per operation, no absolute figures"
MEDIA = ("brd", "null_blk")


@dataclass(frozen=True)
class Freed:
    """An object whose transfers cost nothing: its name, and its rules (sim/rules.py)."""

    words: str
    rules: tuple[str, ...]


# A kernel, the simulator's buffers and a RAM disk fit into it.
LEAST_MEMORY_MIB = 512


@dataclass(frozen=True)
class Sweep:
    """The requested simulation."""

    filesystems: Sequence[str]
    """as `fscale run --fs` takes them"""
    workloads: Sequence[str] | None
    """None: all"""
    cores: Sequence[int]
    output: Path
    medium: str = "brd"
    mode: Mode = "buffered"
    repetitions: int = 1
    seed: int = 1
    windows: WindowPlan = field(default_factory=lambda: fixed(5, 512))
    machine: str = "paper"
    method: Method = field(default_factory=Method)
    kernel: str = "bookworm"
    kernel_tree: Path | None = None
    kernel_modules: Path | None = None
    """where the modules of a bzImage are"""
    modules: Sequence[Path] = ()
    """modules under test"""
    memory_mib: int = 4096
    append: str = ""
    """parameters added to the kernel's command line"""
    options: Sequence[str] = ()
    free: Sequence[str] = ()
    """symbols whose transfers cost nothing in all cells"""


@dataclass
class PreparedSweep:
    """A checked sweep, with everything that its boots need."""

    sweep: Sweep
    run: Run
    cells: list[CellKey]
    store: Store
    resumed: bool
    kernel: Kernel
    emulator: Qemu
    plugin: Path
    initramfs: Path
    filesystems: dict[str, FileSystem]
    media: dict[str, Medium]
    parameters: dict[str, int]
    sockets: Sockets
    freed: dict[str, Freed] = field(default_factory=dict)
    """by the id of a cell"""
    types: Mapping[str, Types] = field(default_factory=dict)
    """types of the kernel, by file system; empty if it has none"""
    mounts: frozenset[str] = frozenset()
    """file systems that workloads mount themselves"""
    modules: tuple[Path, ...] = ()
    """modules under test"""

    @property
    def vcpus(self) -> int:
        """The number of CPUs of every guest, which is that of the largest point."""
        return self.parameters["vcpus"]

    @property
    def done(self) -> list[CellKey]:
        """The cells that are finished."""
        return [key for key in self.cells if self.store.finished(key)]

    @property
    def todo(self) -> list[CellKey]:
        """The cells that are not finished."""
        return [key for key in self.cells if not self.store.finished(key)]


def of_side(side: variant.Variant, sweep: Sweep) -> Sweep:
    """The sweep of a side, with its file system, kernel and modules. Raises FscaleError."""
    if side.name is None:
        raise FscaleError(
            f"{side.text} names no file system; give one, such as ext4:kernel={side.kernel}"
        )
    for module in side.modules:
        if not module.is_file():
            raise FscaleError(f"the module {module} does not exist")
    return replace(
        sweep,
        filesystems=[side.filesystem],
        kernel=side.kernel or sweep.kernel,
        kernel_modules=side.kernel_modules,
        modules=side.modules,
    )


def prepare(sweep: Sweep, steps: Steps) -> PreparedSweep:
    """Check what can be checked, fetch and build what is missing."""
    asked = [variant.parse(name) for name in sweep.filesystems]
    for one in asked:
        one.refuse_but(("mount", "mkfs"), "a simulation")
    filesystems = {one.label: catalogue.load_variant(one) for one in asked}
    media = _media(sweep, filesystems)
    loads = {load.descriptor.id: load.descriptor for load in microbench.find(paths.BENCH)}
    suite = resolve(_suite(sweep, filesystems), loads)
    refuse_idle(parse_options(list(sweep.options)), suite, loads)
    described = machine.load(sweep.machine)
    vcpus = max(sweep.cores)
    arranged = sockets(described, vcpus)
    check_output(sweep.output)
    counts = sorted(set(sweep.cores))
    cells = plans.make_keys(suite, loads, media, filesystems, counts, sweep.seed)
    if paced := next((cell for cell in cells if cell.open_loop), None):
        raise FscaleError(
            f"{paced.load}: simulated windows are of a number of operations, which cannot arrive "
            "at a rate; leave the option rate out"
        )
    kernel = kernels.of_guest(
        sweep.kernel, steps, modules=sweep.kernel_modules, tree=sweep.kernel_tree
    )
    emulated = qemu.find(steps)
    emulator.check_version(emulated)
    plugin = made(paths.SIMULATOR)
    parts = module_build.build_parts(
        sweep.filesystems, (), kernel, sweep.kernel, sweep.kernel_tree, steps, sweep.modules
    )
    parts = parts.with_given(sweep.modules)
    wanted = {cell.workload for cell in cells}
    mounts = {mounted for load in wanted if (mounted := loads[load].mounts)}
    initramfs = image.build(kernel, filesystems, media.values(), mounts, parts, steps)
    # Words are for counts, which need fixed windows, and take time that a curve need not spend.
    method = sweep.method.model_copy(update={"words": int(sweep.windows.precision is None)})
    parameters = machine.parameters(described, method, vcpus, sweep.memory_mib)
    store = Store(sweep.output)
    old = store.load_run()
    run = runs.begin(
        sweep.output,
        seed=sweep.seed,
        suite={
            **suite.model_dump(mode="json", include=_RECORDED),
            "windows": sweep.windows.count,
            "window_ops": sweep.windows.ops,
            "precision": sweep.windows.precision,
            "free": list(sweep.free),
        },
        filesystems={name: fs.model_dump(mode="json") for name, fs in filesystems.items()},
        media={name: medium.model_dump(mode="json") for name, medium in media.items()},
        machine=_machine(sweep, described, kernel, emulated, parameters),
        versions={
            "kernel": kernel.release,
            "kernel image": runs.fingerprint(kernel.image),
            "qemu": emulated.version,
            "qemu program": f"sha256:{emulated.digest[:16]}",
            BENCH: runs.fingerprint(paths.BENCH),
            "fscale-sim": runs.fingerprint(plugin),
            **{f"module {path.name}": runs.fingerprint(path) for path in parts.modules},
        },
        workloads=[loads[name].model_dump(mode="json") for name in loads if name in wanted],
        planned_cells=len(cells),
        warnings=[
            f"all figures are simulated on {described.title} ({described.source}): no measurement",
            *plans.left_out(suite, loads, filesystems, counts),
        ],
    )
    if old:
        runs.resume(old, run, sweep.output)
    return PreparedSweep(
        sweep,
        run,
        cells,
        store,
        old is not None,
        kernel,
        emulated,
        plugin,
        initramfs,
        filesystems,
        media,
        parameters,
        arranged,
        types=kerneltypes.load(kernel, filesystems, mounts, parts.modules),
        mounts=frozenset(mounts),
        modules=parts.modules,
    )


_RECORDED = {
    *("filesystems", "media", "workloads", "modes", "cores", "repetitions", "order", "options"),
    "duration",
}


def _media(sweep: Sweep, filesystems: dict[str, FileSystem]) -> dict[str, Medium]:
    medium = catalogue.load_medium(sweep.medium)
    if medium.kind not in MEDIA:
        raise FscaleError(
            f"medium {sweep.medium} cannot be simulated; give one of the kind {' or '.join(MEDIA)}"
        )
    if medium.latency_ns:
        raise FscaleError(
            f"medium {sweep.medium} has a latency, which the simulator does not support; give one "
            "without"
        )
    if split := [name for name, fs in filesystems.items() if fs.partitions > 1]:
        raise FscaleError(
            f"{', '.join(split)}: the simulator does not support partitions; leave them out"
        )
    return {catalogue.short_name(sweep.medium): medium}


def _suite(sweep: Sweep, filesystems: dict[str, FileSystem]) -> Suite:
    return Suite.model_validate(
        {
            "title": "simulated",
            "filesystems": list(filesystems),
            "media": [catalogue.short_name(sweep.medium)],
            "workloads": "all" if sweep.workloads is None else list(sweep.workloads),
            "modes": [sweep.mode],
            "cores": sorted(set(sweep.cores)),
            "duration": 1,
            "repetitions": sweep.repetitions,
            "order": "cores",
            "control": 0,  # a simulated core does not slow down if other cores are busy
            "remeasure": 0,  # nothing disturbs its clock
            "options": parse_options(list(sweep.options)),
        }
    )


def _machine(
    sweep: Sweep,
    described: machine.SimulatedMachine,
    kernel: Kernel,
    emulated: Qemu,
    parameters: dict[str, int],
) -> Machine:
    each = described.cores_per_socket
    guest: dict[str, Any] = {
        "accelerator": ACCELERATOR,
        "label": LABEL,
        "kernel": kernel.name,
        "release": kernel.release,
        "qemu": emulated.version,
        "smp": parameters["vcpus"],
        "model": parameters,
        "source": described.source,
        "free": list(sweep.free),
    }
    return Machine(
        hostname=catalogue.short_name(sweep.machine),
        kernel=kernel.release,
        kernel_cmdline=emulator.kernel_line(sweep.append),
        architecture="x86_64",
        cpu_model=described.title,
        memory_bytes=sweep.memory_mib << 20,
        topology=[
            Cpu(cpu=cpu, core=cpu, socket=cpu // each, node=0) for cpu in range(described.cores)
        ],
        cpu_order=list(range(described.cores)),
        governor=None,
        mitigations={},
        virtualization=None,
        guest=guest,
    )


def boots(prepared: PreparedSweep, jobs: int) -> list[list[GuestPoint]]:
    """The unfinished cells as the plans of boots.

    A repetition is a boot of its own, with its own seed, so that the spread of a point is that of
    boots. A repetition is cut into as many boots of equal cost as keep all `jobs` busy.
    """
    todo: dict[int, list[CellKey]] = {}
    for key in prepared.todo:
        todo.setdefault(key.repetition, []).append(key)
    made = []
    for repetition, keys in sorted(todo.items()):
        for part in split(keys, -(-jobs // max(1, len(todo)))):
            seed = prepared.sweep.seed + repetition - 1
            groups = _groups(prepared, part)
            made.append(
                [
                    GuestPoint(number, key, seed, groups.get(prepared.freed.get(key.id), 0))
                    for number, key in enumerate(part)
                ]
            )
    return made


def _groups(prepared: PreparedSweep, keys: Iterable[CellKey]) -> dict[Freed | None, int]:
    """The plugin's number, from 1, for each object that is free in some of the cells."""
    freed_objects = dict.fromkeys(f for key in keys if (f := prepared.freed.get(key.id)))
    return {freed: number for number, freed in enumerate(freed_objects, 1)}


def rules(prepared: PreparedSweep, points: Iterable[GuestPoint]) -> tuple[str, ...]:
    """The rules of free objects in a boot: GROUP:RULE (sim/rules.py)."""
    lines: dict[str, None] = {}
    for point in points:
        freed = prepared.freed.get(point.key.id)
        if freed is not None:
            lines |= dict.fromkeys(f"{point.group}:{rule}" for rule in freed.rules)
    return tuple(lines)


def split(keys: Sequence[CellKey], parts: int) -> list[list[CellKey]]:
    """Split cells into groups of about the same cost, none empty."""
    groups: list[list[CellKey]] = [[] for _ in range(min(parts, len(keys)))]
    costs = [(0.0, number) for number in range(len(groups))]
    for key in sorted(keys, key=lambda key: -key.cores):
        least, number = costs[0]
        groups[number].append(key)
        heapq.heapreplace(costs, (least + cost(key), number))
    return groups


def cost(key: CellKey) -> float:
    """The relative cost of a cell, whose instructions grow with its cores."""
    return 2.0 + key.cores
