# SPDX-License-Identifier: GPL-2.0-only
"""Reads a results directory into the models, and lists files that cannot be used."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from fscale.analysis import windows
from fscale.farm import results as farm_results
from fscale.model.bench import Descriptor
from fscale.model.errors import FscaleError
from fscale.model.files import Folder, printable
from fscale.model.results import Cell, CpuControl, Run
from fscale.model.store import RUN_FILE, Store, say_no_run

# Beyond these bounds a quotient or a logarithm may not be a finite number.
LEAST, MOST = 1e-15, 1e18

# How the program is started in a clone, and where it is installed.
_STARTED = re.compile(r"^\S*/fscale(/__main__\.py)?(?= |$)")


@dataclass(frozen=True)
class Unreadable:
    """A cell file that cannot be used: its name and the reason."""

    file: str
    reason: str


@dataclass(frozen=True)
class Results:
    """A run directory in memory. Statistics may only use `scored`."""

    path: Path
    run: Run
    descriptors: dict[str, Descriptor]
    cells: tuple[Cell, ...]
    unreadable: tuple[Unreadable, ...]
    controls: tuple[Cell, ...] = ()
    """the control cells, which are not among `cells`"""
    hosts: Mapping[str, str] = field(default_factory=dict)
    """the machine of each successful cell by the cell's id, if several measured the run (`--on`)"""
    whatifs: tuple[Cell, ...] = ()
    """the cells of what-ifs, which are not among `cells` either"""

    @property
    def scored(self) -> list[Cell]:
        """The cells that count: successful and not profiled."""
        return [c for c in self.cells if c.status == "ok" and c.key.profile is None]

    @property
    def every(self) -> tuple[Cell, ...]:
        """The cells, those of the controls and those of what-ifs."""
        return (*self.cells, *self.controls, *self.whatifs)

    @property
    def missing(self) -> int:
        """How many planned cells left no file."""
        return max(0, self.run.planned_cells - len(self.every) - len(self.unreadable))


def as_typed(command: str) -> str:
    """A command line of `Run.command` as the user typed it."""
    return _STARTED.sub(lambda how: "bin/fscale" if how[1] else "fscale", command)


def first_error(error: ValidationError) -> str:
    """The first complaint of pydantic in one sentence."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"]) or "the file"
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{place}: {first['msg']}{more}"


def _read_run(folder: Folder) -> tuple[Run, dict[str, Descriptor]]:
    path = folder.path / RUN_FILE
    try:
        run = Run.model_validate_json(folder.read(RUN_FILE))
        return run, {d.id: d for d in map(Descriptor.model_validate, run.workloads)}
    except FileNotFoundError:
        raise FscaleError(say_no_run(path.parent)) from None
    except OSError as error:
        raise FscaleError(
            f"cannot read {path}: {error.strerror}; check that it is a file that you may read"
        ) from None
    except ValidationError as error:
        raise FscaleError(
            f"{path} is not a run of this version of fscale: {first_error(error)}; "
            "use the version that wrote it, or run the suite again"
        ) from None


def _read_cell(folder: Folder, name: str) -> Cell | Unreadable:
    shown = printable(name)
    try:
        cell = Cell.model_validate_json(folder.read(f"cells/{name}"))
    except OSError as error:
        return Unreadable(shown, f"cannot be read: {error.strerror}")
    except ValidationError as error:
        return Unreadable(shown, first_error(error))
    wrong = _wrong(cell, name)
    return Unreadable(shown, wrong) if wrong else cell


def _wrong(cell: Cell, name: str) -> str | None:
    if f"{cell.id}.json" != name or cell.id != cell.key.id:
        return f"the names do not agree: the file's, its id ({cell.id}) and its key"
    if cell.status == "ok" and not (
        math.isfinite(cell.ops_per_second) and cell.ops_per_second > 0 and cell.seconds > 0
    ):
        return "its status is ok, but it counted nothing"
    if cell.status == "ok" and cell.bench and not cell.bench.workers:
        return "its status is ok, but it has no worker"
    if not all(value == 0 or LEAST < abs(value) < MOST for value in _figures(cell)):
        return "it has a figure that is too large or too small to be measured"
    return None


def _figures(cell: Cell) -> list[float]:
    """All figures of a cell that statistics use."""
    times = cell.cpu.model_dump().values() if cell.cpu else ()
    used = (
        cell.ops,
        cell.seconds,
        cell.ops_per_second,
        cell.key.duration,
        cell.wall_seconds or 0.0,
    )
    return [*used, cell.own_cpu_seconds or 0.0, *times, *(cell.counts or {}).values()]


def load(run_dir: Path) -> Results:
    """Read `run_dir` (run.json and cells/*.json).

    Broken cell files do not stop the reading: they are returned in `unreadable`, so that the report
    shows them and no statistic uses them.

    Raises:
        FscaleError: run.json is missing or has another schema, or no cell can be read.
    """
    folder = Folder(run_dir)
    run, descriptors = _read_run(folder)
    cells: list[Cell] = []
    unreadable: list[Unreadable] = []
    try:
        names = folder.names("cells", ".json")
    except OSError as error:
        raise FscaleError(
            f"cannot read {run_dir / 'cells'}: {error.strerror}; check that it is a directory "
            "that you may read"
        ) from None
    for name in names:
        read = _read_cell(folder, name)
        if isinstance(read, Cell):
            cells.append(read)
        else:
            unreadable.append(read)
    if not cells:
        why = f"the first: {unreadable[0].reason}" if unreadable else "it contains none"
        raise FscaleError(
            f"no cell in {run_dir / 'cells'} can be read ({why}); "
            "run the suite again with the same --output to measure them"
        )
    hosts = _hosts(run_dir, run, cells)
    if hosts:
        _name_measuring_hosts(run, set(hosts.values()))
    cells, mixed = _one_cpu_control(cells)
    controls = tuple(cell for cell in cells if cell.key.control)
    whatifs = tuple(cell for cell in cells if cell.key.whatif)
    others = tuple(cell for cell in cells if not cell.key.control and not cell.key.whatif)
    run.warnings += [*mixed, *windows.warnings(run, others)]
    return Results(run_dir, run, descriptors, others, tuple(unreadable), controls, hosts, whatifs)


def _hosts(run_dir: Path, run: Run, cells: Iterable[Cell]) -> dict[str, str]:
    """The machine of each successful cell, if other machines than the run's measured some.

    Simulated cells depend on no machine: the guest's clock is simulated.

    Raises:
        FscaleError: a record of a task is not valid.
    """
    if run.machine.simulated:
        return {}
    try:
        known = farm_results.hosts(Store(run_dir))
    except (OSError, ValidationError) as error:
        raise FscaleError(
            f"{run_dir}/{farm_results.FOLDER} says which machine measured a cell, and cannot be "
            f"read: {str(error).splitlines()[0]}"
        ) from None
    return known and {c.id: known.get(c.id, run.machine.host) for c in cells if c.status == "ok"}


def _name_measuring_hosts(run: Run, hosts: set[str]) -> None:
    """Let a run name the machines that measured it, and not the one that planned it."""
    machine, name = run.machine, ", ".join(sorted(hosts))
    if name == machine.host:
        return
    if machine.guest:
        machine.guest["host"] = name
    else:
        machine.hostname, machine.boots = name, None


def _one_cpu_control(cells: list[Cell]) -> tuple[list[Cell], list[str]]:
    """Make each point use a single CPU control (hotplug or affinity); return warnings as well.

    A machine with its other CPUs offline differs from one with all CPUs online. Older runs switched
    to affinity when the kernel refused to take a CPU offline. For each point (in a comparison, for
    both of its sides) cells of the control with fewer good cells are left out; if both have as
    many, those by affinity.
    """
    good = [cell for cell in cells if cell.status == "ok"]
    if len({cell.cpu_control for cell in good}) < 2:
        return cells, []
    controls: dict[str, Counter[CpuControl]] = defaultdict(Counter)
    for cell in good:
        controls[_both_sides(cell)][cell.cpu_control] += 1
    kept = {
        point: max(repetitions, key=lambda c: (repetitions[c], c == "hotplug"))
        for point, repetitions in controls.items()
    }
    merged, left_out = [], 0
    for cell in cells:
        if cell.status == "ok" and cell.cpu_control != (most := kept[_both_sides(cell)]):
            reason = f"measured with CPU {cell.cpu_control}, most cells of its point with {most}"
            cell = cell.model_copy(update={"status": "invalid", "reason": reason})  # noqa: PLW2901
            left_out += 1
        merged.append(cell)
    warnings = []
    if left_out:
        warnings.append(
            f"{left_out} cells are left out because they restricted the CPUs in another way "
            "(hotplug or affinity) than most cells of their point"
        )
    if len(set(kept.values())) > 1:
        count = Counter(kept.values())
        warnings.append(
            f"{count['hotplug']} points were measured by hotplug and {count['affinity']} by "
            "affinity, with all CPUs online: do not compare them within a curve"
        )
    return merged, warnings


def _both_sides(cell: Cell) -> str:
    sides_may_differ_in = {"side": None, "filesystem": "any"} if cell.key.side else {}
    return cell.key.model_copy(update=sides_may_differ_in).point
