# SPDX-License-Identifier: GPL-2.0-only
"""Turns a request into a checked plan, without changing anything on the machine.

Data flow one way: request, selection, machine, cells, resources, record.
"""

import platform
import random
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fscale.model import catalogue, paths, runs
from fscale.model.config import FileSystem, Suite
from fscale.model.load import LoadSettings
from fscale.model.results import CellKey, Machine, Mounted, Run
from fscale.model.store import BENCH, Store
from fscale.model.topology import beyond, core_counts, machine_layout, place, spreads
from fscale.model.words import ranges
from fscale.runner import guard, plan
from fscale.runner.cell.measure import Limits
from fscale.runner.machine import confinement, host
from fscale.runner.request import Request
from fscale.runner.resources import Resources, find_resources
from fscale.runner.selection import Selection, select
from fscale.runner.setup import Setup
from fscale.runner.storage import filesystem
from fscale.runner.storage.disk import CheckedDevice
from fscale.system.executor import CommandFailed, Executor
from fscale.system.programs import made


@dataclass
class Prepared:
    """A checked request: the cells, and everything needed to measure them."""

    setup: Setup
    run: Run
    cells: list[CellKey]
    store: Store
    resumed: bool

    @property
    def todo(self) -> list[CellKey]:
        """The cells that are not finished."""
        return [key for key in self.cells if not self.store.finished(key)]

    def measurable(self, keys: Sequence[CellKey]) -> list[CellKey]:
        """Those of some cells for which this machine lacks nothing."""
        missing = set(self.setup.missing)
        return [key for key in keys if not {key.filesystem, key.medium, key.workload} & missing]


def prepare(request: Request) -> Prepared:
    """Check all that can be checked without changing the machine, and make the plan.

    Raises:
        FscaleError: the request cannot be carried out on this machine.
    """
    selection = select(request)
    machine = _read_machine(selection.suite)
    counts = _core_counts(request, selection.suite, machine)
    guard.check_output(request.output)
    store = Store(request.output)
    old = store.load_run()
    seed = _seed(request, old)
    cells = request.choose(
        plan.make_keys(
            selection.suite.model_copy(update={"profiles": list(selection.profilers)}),
            selection.descriptors,
            selection.media,
            selection.filesystems,
            counts,
            seed,
        )
    )
    resources = find_resources(request, selection, machine, cells)
    run = _record(request, selection, machine, counts, seed, cells, resources)
    if old:
        runs.resume(old, run, request.output)
    setup = _set_up(selection, machine, seed, cells, resources, store)
    return Prepared(setup, run, cells, store, resumed=old is not None)


def _read_machine(suite: Suite) -> Machine:
    """Read this machine, with its CPUs in the order in which the suite uses them."""
    machine = place(host.read_machine(), suite.placement, suite.keep_free)
    confinement.look_for_hidden_quota(machine)
    return machine


def _core_counts(request: Request, suite: Suite, machine: Machine) -> list[int]:
    # A suite's file serves unlike machines; who types a core count wants it measured.
    return core_counts(
        suite.cores,
        machine_layout(machine),
        leave_out="cores" not in request.overrides,
        why_fewer=host.why_denied(machine),
    )


def _seed(request: Request, old: Run | None) -> int:
    if request.seed is not None:
        return request.seed
    return old.seed if old else random.SystemRandom().getrandbits(32)


def _record(
    request: Request,
    selection: Selection,
    machine: Machine,
    counts: list[int],
    seed: int,
    cells: Sequence[CellKey],
    resources: Resources,
) -> Run:
    """Record what is measured, with what, and warnings about it."""
    suite, filesystems = selection.suite, selection.filesystems
    descriptors = selection.descriptors
    wanted = {cell.workload for cell in cells}
    left_out = {**resources.missing, **selection.unusable}
    return runs.begin(
        request.output,
        seed=seed,
        suite=suite.model_dump(mode="json"),
        filesystems={
            name: _described(fs, name, resources.beside.get(name, ()), selection.existing)
            for name, fs in filesystems.items()
        },
        media={
            name: m.model_dump(mode="json") | resources.recorded(name)
            for name, m in selection.described.items()
        },
        machine=machine,
        versions=_versions(machine, selection, wanted, request.binary),
        workloads=[descriptors[n].model_dump(mode="json") for n in descriptors if n in wanted],
        planned_cells=len(cells),
        warnings=[
            *host.warnings(machine),
            *host.turbo_warning(machine, counts),
            *_order_warning(suite),
            *_cpu_warnings(suite, machine),
            *resources.warnings,
            *plan.left_out(suite, descriptors, filesystems, counts),
            *plan.lengthened(suite, descriptors),
            *sorted(f"{name}{runs.SKIPPED}{reason}" for name, reason in left_out.items()),
        ],
    )


def _set_up(
    selection: Selection,
    machine: Machine,
    seed: int,
    cells: Sequence[CellKey],
    resources: Resources,
    store: Store,
) -> Setup:
    """Collect what all cells share; existing cells decide how CPUs are restricted."""
    suite, measured_by = selection.suite, store.cpu_control()
    host.choose_cpu_control(machine, measured_by)  # refuses what `Cpus` would refuse later
    return Setup(
        machine=machine,
        variants=selection.variants,
        filesystems=selection.filesystems,
        media=selection.media,
        devices=resources.devices,
        beside=resources.beside,
        existing=selection.existing,
        loads=selection.loads,
        settings=LoadSettings(
            warmup=suite.warmup,
            min_window=suite.min_window,
            interval=suite.interval,
            max_stock=suite.max_stock,
            latency=suite.latency,
        ),
        limits=Limits(
            setup=suite.setup_limit,
            margin=suite.margin,
            cpus=machine.confinement.cpus_found if machine.confinement else None,
        ),
        seed=seed,
        missing=resources.missing,
        profilers=selection.profilers,
        filled=max(
            (fs.aged.utilisation for fs in selection.filesystems.values() if fs and fs.aged),
            default=0.0,
        ),
        fewest=min((cell.cores for cell in cells), default=1),
        measured_by=measured_by,
    )


def _described(
    fs: FileSystem | None, name: str, beside: Sequence[CheckedDevice], there: Mounted | None
) -> dict[str, Any]:
    if fs is None:
        options = {"mount_options": there.options} if there else {}
        return {"kernel": name, "existing": True, **options}
    devices = {str(one.path): one.identity.recorded() for one in beside}
    return fs.model_dump(mode="json") | ({"devices": devices} if devices else {})


def _versions(
    machine: Machine, selection: Selection, wanted: Collection[str], binary: Path
) -> dict[str, str]:
    versions = {
        "kernel": machine.kernel,
        "python": sys.version.split()[0],
        "libc": " ".join(platform.libc_ver()).strip(),
        BENCH: runs.fingerprint(binary),
    }
    for name, argv in (("gcc", ["gcc", "--version"]), ("util-linux", ["lscpu", "--version"])):
        try:
            versions[name] = Executor().run(argv, timeout=10).splitlines()[0]
        except CommandFailed:
            continue
    if any(fs and fs.aged for fs in selection.filesystems.values()):
        versions[paths.AGE.name] = runs.fingerprint(made(paths.AGE))
    for name, fs in selection.filesystems.items():
        if fs and (version := filesystem.version(fs)):
            title = catalogue.short_name(selection.variants[name].name or name)
            versions[f"mkfs of {title}"] = version
    for name in sorted(wanted):
        if version := selection.loads[name].version():
            versions[f"program of {name}"] = version
    return versions


def _cpu_warnings(suite: Suite, machine: Machine) -> list[str]:
    warnings = []
    if lacking := beyond(suite.cores, machine_layout(machine)):
        warnings.append(
            f"{ranges(lacking)} cores are not measured: this run may use {len(machine.cpu_order)}"
        )
    if suite.placement == "spread" and not spreads(machine):
        warnings.append(
            "placement spread has no effect here: all CPUs are in one socket, one NUMA node and "
            "one L3 cache"
        )
    return warnings


def _order_warning(suite: Suite) -> list[str]:
    if suite.order == "cores":
        return ['cells of one core count are measured together, because order is "cores"']
    return []
