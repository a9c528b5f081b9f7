# SPDX-License-Identifier: GPL-2.0-only
"""Turns a request into a checked plan, without changing anything on the machine."""

import random
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fscale.model import catalogue, runs, variant
from fscale.model.config import FileSystem, Suite
from fscale.model.load import LoadSettings
from fscale.model.results import CellKey, Machine, Mounted, Run
from fscale.model.store import BENCH, Store
from fscale.model.topology import beyond, core_counts, machine_layout, place, spreads
from fscale.model.variant import Variant
from fscale.model.words import ranges
from fscale.runner import guard, plan, resources
from fscale.runner.cell.measure import Limits
from fscale.runner.machine import confinement, host, kernelsettings
from fscale.runner.profilers import parse_names
from fscale.runner.request import Request, read_suite
from fscale.runner.setup import Setup
from fscale.runner.storage import blockqueue, disk, filesystem
from fscale.runner.storage.disk import CheckedDevice
from fscale.system.executor import CommandFailed, Executor


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


def _versions(
    machine: Machine,
    variants: Mapping[str, Variant],
    filesystems: Mapping[str, FileSystem | None],
    binary: Path,
) -> dict[str, str]:
    versions = {
        "kernel": machine.kernel,
        "python": sys.version.split()[0],
        BENCH: runs.fingerprint(binary),
    }
    for name, argv in (("gcc", ["gcc", "--version"]), ("util-linux", ["lscpu", "--version"])):
        try:
            versions[name] = Executor().run(argv, timeout=10).splitlines()[0]
        except CommandFailed:
            continue
    for name, fs in filesystems.items():
        if fs and (version := filesystem.version(fs)):
            versions[f"mkfs of {catalogue.short_name(variants[name].name or name)}"] = version
    return versions


def _with_short_names(suite: Suite) -> Suite:
    if suite.workloads == "all":
        return suite
    short = [catalogue.short_name(name) for name in suite.workloads]
    return suite.model_copy(update={"workloads": short})


def check(request: Request, elsewhere: Collection[str]) -> Suite:
    """Check what can be checked of a request for another machine, and return its suite.

    `elsewhere` are names of file systems that only the other machine has.

    Raises:
        FscaleError: a key, a name or an option of a workload is not valid.
    """
    suite = read_suite(request)
    resources.media_of(request, suite)
    parse_names(",".join(suite.profiles))
    for name in suite.filesystems:
        asked = variant.parse(name)
        if asked.name not in elsewhere:
            catalogue.load_variant(asked)
    loads = resources.loads_of(request, suite)
    plan.check_names(
        _with_short_names(suite), {name: load.descriptor for name, load in loads.items()}
    )
    return suite


def prepare(request: Request) -> Prepared:
    """Check all that can be checked without changing the machine, and make the plan.

    Raises:
        FscaleError: the request cannot be carried out on this machine.
    """
    suite = read_suite(request)
    media = resources.media_of(request, suite)
    recorded = {name: m.model_dump(mode="json") for name, m in media.items()}
    # Without a path, measure next to the results. The path is not recorded, because a resumed run
    # may have its results elsewhere.
    beside_results = {"path": str(guard.existing(request.output))}
    media = {
        name: m if m.path or m.kind != "dir" else m.model_copy(update=beside_results)
        for name, m in media.items()
    }
    variants = resources.variants_of(request, suite, media)
    suite = suite.model_copy(update={"media": list(media), "filesystems": list(variants)})
    asked_profiles = suite.profiles
    suite, profilers, no_profile = resources.profilers(suite)
    existing = any(m.kind == "dir" for m in media.values())
    there = resources.existing_mount(media)
    filesystems = {
        name: None if existing else catalogue.load_variant(asked)
        for name, asked in variants.items()
    }
    loads = resources.loads_of(request, suite)
    descriptors = {name: load.descriptor for name, load in loads.items()}
    suite = _with_short_names(suite)
    plan.check_names(suite, descriptors)
    machine = place(host.read_machine(), suite.placement, suite.keep_free)
    confinement.look_for_hidden_quota(machine)
    layout = machine_layout(machine)
    # A suite's file serves unlike machines; who types a core count wants it measured.
    counts = core_counts(
        suite.cores,
        layout,
        leave_out="cores" not in request.overrides,
        why_fewer=host.why_denied(machine),
    )
    guard.check_output(request.output)
    used = {} if all(fs and fs.nodev for fs in filesystems.values()) else media
    store = Store(request.output)
    old = store.load_run()
    seed = request.seed
    if seed is None:
        seed = old.seed if old else random.SystemRandom().getrandbits(32)
    cells = plan.make(suite, descriptors, media, filesystems, counts, seed)
    wanted = {cell.workload for cell in cells}
    resources.check_workers(suite, loads, wanted)
    resources.check_users(media, loads, wanted)
    missing = resources.missing(request, filesystems, used, loads, wanted, machine)
    usable = {name: m for name, m in used.items() if name not in missing}
    devices = resources.check_media(request, machine, filesystems, usable)
    for name, checked in devices.items():
        recorded[name]["identity"] = checked.identity.recorded()
    beside = resources.check_named(request, filesystems, devices)
    kernelsettings.check({n: fs for n, fs in filesystems.items() if n not in missing})
    for name, described in usable.items():
        if described.path and (
            queue := blockqueue.read_queue(disk.find_node(Path(described.path)))
        ):
            recorded[name]["queue"] = queue
    run = runs.begin(
        request.output,
        seed=seed,
        # Record the requested profilers, not the usable ones: a resumed run may find more of them.
        suite=suite.model_dump(mode="json") | {"profiles": asked_profiles},
        filesystems={name: _described(name, fs, beside, there) for name, fs in filesystems.items()},
        media=recorded,
        machine=machine,
        versions=_versions(machine, variants, filesystems, request.binary),
        workloads=[descriptors[n].model_dump(mode="json") for n in descriptors if n in wanted],
        planned_cells=len(cells),
        warnings=host.warnings(machine)
        + host.turbo_warning(machine, counts)
        + _order_warning(suite)
        + _cpu_warnings(suite, machine, beyond(suite.cores, layout))
        + resources.unfinished_work(media, there)
        + resources.hidden_symbols(profilers)
        + plan.left_out(suite, descriptors, filesystems, counts)
        + sorted(
            f"{name}{runs.SKIPPED}{reason}" for name, reason in {**missing, **no_profile}.items()
        ),
    )
    if old:
        runs.resume(old, run, request.output)
    measured_by = store.control()
    host.control(machine, measured_by)
    setup = Setup(
        machine=machine,
        variants=variants,
        filesystems=filesystems,
        media=media,
        devices=devices,
        beside=beside,
        existing=there,
        loads=loads,
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
        missing=missing,
        profilers=profilers,
        fewest=min((cell.cores for cell in cells), default=1),
        control=measured_by,
    )
    return Prepared(setup, run, cells, store, resumed=old is not None)


def _described(
    name: str,
    fs: FileSystem | None,
    beside: Mapping[str, Sequence[CheckedDevice]],
    there: Mounted | None,
) -> dict[str, Any]:
    if fs is None:
        options = {"mount_options": there.options} if there else {}
        return {"kernel": name, "existing": True, **options}
    devices = {str(one.path): one.identity.recorded() for one in beside.get(name, ())}
    return fs.model_dump(mode="json") | ({"devices": devices} if devices else {})


def _cpu_warnings(suite: Suite, machine: Machine, lacking: list[int]) -> list[str]:
    warnings = []
    if lacking:
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
