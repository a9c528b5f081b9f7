# SPDX-License-Identifier: GPL-2.0-only
"""From the command line to a checked plan: nothing on the machine is changed here."""

import os
import random
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fscale import __version__, config, filesystem, guard, host, medium, paths, plan
from fscale.errors import FscaleError, MissingTool
from fscale.execute import microbench
from fscale.execute.cell import Limits
from fscale.execute.load import Load, Settings, application_loads
from fscale.executor import CommandFailed, Executor
from fscale.model.config import FileSystem, Medium, Suite, resolve_size
from fscale.model.results import CellKey, Machine, Run
from fscale.profilers import Profiler, parse_names, usable
from fscale.session import Setup
from fscale.store import Store, differences


@dataclass
class Request:
    """What the user asked for. `overrides` holds suite keys; `explicit` the names given by hand."""

    suite: Path
    output: Path
    overrides: dict[str, Any] = field(default_factory=dict)
    options: list[str] = field(default_factory=list)
    explicit: set[str] = field(default_factory=set)
    seed: int | None = None
    device: Path | None = None
    directory: Path | None = None
    yes_format: str | None = None
    partitions: int | None = None
    binary: Path = paths.BENCH
    by_id: Path = guard.BY_ID


@dataclass
class Prepared:
    """A checked request: what to measure and with what."""

    setup: Setup
    run: Run
    cells: list[CellKey]
    store: Store
    resumed: bool


def parse_options(texts: list[str]) -> dict[str, dict[str, int | str]]:
    """`NAME=VALUE` for all workloads that have it, `WORKLOAD.NAME=VALUE` for one."""
    options: dict[str, dict[str, int | str]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        workload, dot, option = name.rpartition(".")
        if not equals or not option:
            raise FscaleError(f"--options {text}: give NAME=VALUE or WORKLOAD.NAME=VALUE")
        parsed = int(value) if value.lstrip("-").isdigit() else value
        options.setdefault(workload if dot else "all", {})[option] = parsed
    return options


def parse_cores(text: str) -> list[int] | str:
    """`1,2,4`, `all` or `powers`."""
    if text in ("all", "powers"):
        return text
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise FscaleError(
            f"--cores {text}: give numbers such as 1,2,4, or all, or powers"
        ) from None


def _with_partitions(names: list[str], partitions: int) -> list[str]:
    """Each file system on a disk, whole and cut into so many partitions."""
    split = [name for name in names if not config.load_filesystem(name).nodev]
    return [*names, *(f"{name}:{partitions}" for name in split if ":" not in name)]


def read_suite(request: Request) -> Suite:
    """The suite as the file and the overrides say it, validated; FscaleError where it is wrong."""
    suite = config.load_suite(request.suite)
    data = suite.model_dump() | request.overrides
    if request.directory and "media" not in request.overrides:
        data["media"] = ["dir"]
    if request.device and "media" not in request.overrides:
        data["media"] = ["device"]
    if request.partitions is not None:
        data["filesystems"] = _with_partitions(data["filesystems"], request.partitions)
    for name, options in parse_options(request.options).items():
        data["options"] = {**data["options"], name: data["options"].get(name, {}) | options}
    if data["cores"] and isinstance(data["cores"], list) and min(data["cores"]) < 1:
        raise FscaleError("a measurement needs at least 1 core; give --cores 1 or more")
    try:
        return Suite.model_validate(data)
    except ValidationError as error:
        raise FscaleError(f"{request.suite} with overrides: {config.explain(error)}") from None


def _media(request: Request, suite: Suite) -> dict[str, Medium]:
    media = {}
    for name in suite.media:
        found = config.load_medium(name)
        path = {"device": request.device, "dir": request.directory}.get(found.kind)
        if path:
            found = found.model_copy(update={"path": str(path.absolute())})
        media[config.short_name(name)] = found
    return media


def _directory_filesystem(request: Request, suite: Suite, media: Mapping[str, Medium]) -> Suite:
    """With an existing directory the file system is the one that is there."""
    directories = [m for m in media.values() if m.kind == "dir"]
    if not directories:
        return suite
    if len(directories) < len(media):
        raise FscaleError("an existing directory cannot be measured together with other media")
    where = Path(directories[0].path or "")
    guard.check_directory(where)
    argv = ["findmnt", "--noheadings", "--output", "FSTYPE", "--target", str(where)]
    there = Executor().run(argv).split()[-1]
    if "filesystems" in request.overrides and suite.filesystems != [there]:
        raise FscaleError(f"{where} lies on {there}; leave --fs out, or measure another medium")
    return suite.model_copy(update={"filesystems": [there]})


def _profilers(suite: Suite) -> tuple[Suite, dict[str, Profiler], dict[str, str]]:
    """The profilers that this machine can do, the suite without the others, and why not those."""
    names = parse_names(",".join(suite.profiles))
    found, skipped = usable(names)
    profilers = {profiler.name: profiler for profiler in found}
    reasons = {f"profile {name}": reason for name, reason in skipped.items()}
    return suite.model_copy(update={"profiles": list(profilers)}), profilers, reasons


def _loads(request: Request, suite: Suite) -> dict[str, Load]:
    loads: dict[str, Load] = {w.descriptor.id: w for w in microbench.find(request.binary)}
    if suite.workloads != "all":
        for load in application_loads():
            loads[load.descriptor.id] = load
    return loads


def _missing(
    request: Request,
    filesystems: Mapping[str, FileSystem | None],
    media: Mapping[str, Medium],
    loads: Mapping[str, Load],
    wanted: set[str],
) -> dict[str, str]:
    """What this machine cannot have. FscaleError when the user asked for it by name."""
    found: dict[str, str | None] = {}
    for name, fs in filesystems.items():
        found[name] = filesystem.missing(fs) if fs else None
        if fs and not paths.is_root():
            raise FscaleError(
                f"mounting {name} needs root; run as root, or measure an existing directory "
                f"without root: --dir DIRECTORY"
            )
    found |= {name: medium.missing(name, m) for name, m in media.items()}
    found |= {name: loads[name].missing() for name in wanted}
    missing = {name: reason for name, reason in found.items() if reason}
    explicit = {config.short_name(name) for name in request.explicit}
    for name, reason in missing.items():
        if name in explicit:
            raise MissingTool(f"{name}: {reason}")
    for group in (filesystems, media):
        if group and all(name in missing for name in group):
            raise MissingTool("; ".join(f"{name}: {missing[name]}" for name in group))
    return missing


def _check_media(
    request: Request,
    machine: Machine,
    filesystems: Mapping[str, FileSystem | None],
    media: Mapping[str, Medium],
) -> None:
    memory = 0
    for name, found in media.items():
        medium.check(name, found, machine.memory_bytes, request.yes_format, request.by_id)
        if found.kind in ("loop", "brd", "null_blk") and not found.backing:
            memory += medium.size_of(found, machine.memory_bytes)
    sizes = [
        resolve_size(fs.size, fs.max_size, machine.memory_bytes)
        for fs in filesystems.values()
        if fs and fs.nodev and fs.size is not None
    ]
    guard.check_memory(memory + max(sizes, default=0), "the run")


def revision() -> str | None:
    """The commit of this checkout, with `-dirty` when files differ from it.

    A guest has a copy without a history; its host says what it copied.
    """
    if told := os.environ.get("FSCALE_REVISION"):
        return told
    try:
        argv = ["git", "-C", str(paths.ROOT), "describe", "--always", "--dirty", "--abbrev=40"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _versions(machine: Machine, filesystems: Mapping[str, FileSystem | None]) -> dict[str, str]:
    versions = {"kernel": machine.kernel, "python": sys.version.split()[0]}
    for name, argv in (("gcc", ["gcc", "--version"]), ("util-linux", ["lscpu", "--version"])):
        try:
            versions[name] = Executor().run(argv, timeout=10).splitlines()[0]
        except CommandFailed:
            continue
    for name, fs in filesystems.items():
        if fs and (said := filesystem.version(fs)):
            versions[f"mkfs of {name}"] = said
    return versions


def prepare(request: Request) -> Prepared:
    """Check everything that can be checked without changing anything, and make the plan."""
    suite = read_suite(request)
    media = _media(request, suite)
    recorded = {name: m.model_dump(mode="json") for name, m in media.items()}
    # Without a path, the directory that the results go to; a resumed run may find it elsewhere.
    place = {"path": str(guard.existing(request.output))}
    media = {
        name: m if m.path or m.kind != "dir" else m.model_copy(update=place)
        for name, m in media.items()
    }
    suite = suite.model_copy(update={"media": list(media)})
    suite = _directory_filesystem(request, suite, media)
    suite, profilers, no_profile = _profilers(suite)
    existing = any(m.kind == "dir" for m in media.values())
    filesystems = {
        config.short_name(name): None if existing else config.load_filesystem(name)
        for name in suite.filesystems
    }
    suite = suite.model_copy(update={"filesystems": list(filesystems)})
    loads = _loads(request, suite)
    descriptors = {name: load.descriptor for name, load in loads.items()}
    plan.check_names(suite, descriptors)
    machine = host.read_machine()
    counts = host.core_counts(suite.cores, len(machine.cpu_order))
    guard.check_output(request.output)
    in_memory = {name for name, fs in filesystems.items() if fs and fs.nodev}
    used = {} if set(filesystems) == in_memory and not existing else media
    store = Store(request.output)
    old = store.load_run()
    seed = request.seed
    if seed is None:
        seed = old.seed if old else random.SystemRandom().getrandbits(32)
    cells = plan.make(suite, descriptors, media, in_memory, counts, seed)
    wanted = {cell.workload for cell in cells}
    missing = _missing(request, filesystems, used, loads, wanted)
    usable = {name: m for name, m in used.items() if name not in missing}
    _check_media(request, machine, filesystems, usable)
    run = Run(
        id=request.output.resolve().name,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        state="running",
        fscale_version=__version__,
        revision=revision(),
        command=[shlex.join(sys.argv)],
        seed=seed,
        suite=suite.model_dump(mode="json"),
        filesystems={
            name: fs.model_dump(mode="json") if fs else {"kernel": name, "existing": True}
            for name, fs in filesystems.items()
        },
        media=recorded,
        machine=machine,
        versions=_versions(machine, filesystems),
        workloads=[descriptors[n].model_dump(mode="json") for n in descriptors if n in wanted],
        planned_cells=len(cells),
        warnings=host.warnings(machine)
        + _order_warning(suite)
        + plan.left_out(suite, descriptors, counts)
        + sorted(
            f"{name} is skipped: {reason}" for name, reason in {**missing, **no_profile}.items()
        ),
    )
    if old:
        if changed := differences(old, run):
            raise FscaleError(
                f"{request.output} holds a run with other parameters ({'; '.join(changed)}); "
                f"give another --output, or the parameters of that run"
            )
        run.started, run.command = old.started, [*old.command, *run.command]
        run.warnings = list(dict.fromkeys(old.warnings + run.warnings))
    setup = Setup(
        machine=machine,
        filesystems=filesystems,
        media=media,
        loads=loads,
        settings=Settings(
            warmup=suite.warmup,
            min_window=suite.min_window,
            interval=suite.interval,
            max_stock=suite.max_stock,
            latency=suite.latency,
        ),
        limits=Limits(setup=suite.setup_limit, margin=suite.margin),
        seed=seed,
        missing=missing,
        profilers=profilers,
    )
    return Prepared(setup, run, cells, store, resumed=old is not None)


def _order_warning(suite: Suite) -> list[str]:
    if suite.order == "cores":
        return ["cells of one core count were measured together, not in a fully random order"]
    return []
