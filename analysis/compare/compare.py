# SPDX-License-Identifier: GPL-2.0-only
"""`compare` from results directories to a `Comparison`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from analysis.compare.boots import BETWEEN_BOOTS, between_boots
from analysis.compare.curves import curve_tests
from analysis.compare.definition import notes, refuse_other_kind
from analysis.compare.health import health
from analysis.compare.judge import judge
from analysis.compare.locks import new_bottlenecks, shares
from analysis.compare.pairs import Pairing, common_place, pair
from analysis.compare.repetitions import minimum_repetitions
from analysis.compare.settings import Comparison, RunRef, Settings
from analysis.reader import Results, as_typed, first_error, load
from fscale.model.bench import Strict
from fscale.model.errors import FscaleError
from fscale.model.files import Folder, printable
from fscale.model.results import Cell

AB_FILE = "ab.json"


class AbRecord(Strict):
    """`ab.json` beside `run.json`: what the two sides of an interleaved run are."""

    schema_: int = Field(default=1, alias="schema")
    base: str = Field(description="side A, as it was asked for")
    new: str = Field(description="side B")
    looks: list[int] = Field(description="repetitions a side at which it looked; empty: at the end")
    pair_looks: list[int] = Field(
        default=[], description="pairs at which it looked, where both sides took turns"
    )


@dataclass(frozen=True)
class Sides:
    """The cells of both sides and where they come from."""

    base: RunRef
    new: RunRef
    base_results: Results
    new_results: Results
    base_cells: Sequence[Cell]
    new_cells: Sequence[Cell]
    interleaved: bool = False
    looks: tuple[int, ...] = ()
    pair_looks: tuple[int, ...] = ()


def open_sides(base: Path, new: Path | None) -> Sides:
    """Read two runs, or the two sides of one interleaved run when `new` is None.

    Raises:
        FscaleError: a directory is no run, or a single one is not of `fscale ab`.
    """
    first = load(base)
    if new is not None:
        second = load(new)
        return sides_of((first, first.cells), (second, second.cells), (first.run.id, second.run.id))
    record = _record(base)
    return Sides(
        _ref(first, record.base),
        _ref(first, record.new),
        first,
        first,
        [c for c in first.cells if c.key.side == "A"],
        [c for c in first.cells if c.key.side == "B"],
        interleaved=True,
        looks=tuple(record.looks),
        pair_looks=tuple(record.pair_looks),
    )


def sides_of(
    base: tuple[Results, Sequence[Cell]],
    new: tuple[Results, Sequence[Cell]],
    labels: tuple[str, str],
) -> Sides:
    """Two runs, or parts of their cells, that were not interleaved."""
    return Sides(
        _ref(base[0], labels[0]), _ref(new[0], labels[1]), base[0], new[0], base[1], new[1]
    )


def _record(run_dir: Path) -> AbRecord:
    path = run_dir / AB_FILE
    try:
        return AbRecord.model_validate_json(Folder(run_dir).read(AB_FILE))
    except FileNotFoundError:
        raise FscaleError(
            f"{run_dir} is a single run and not one of `fscale ab`; "
            "give a second run to compare it with"
        ) from None
    except OSError as error:
        raise FscaleError(f"cannot use {path}: {error.strerror}; run `fscale ab` again") from None
    except ValidationError as error:
        raise FscaleError(
            f"cannot use {path}: {first_error(error)}; run `fscale ab` again"
        ) from None


def _ref(results: Results, label: str) -> RunRef:
    machine = results.run.machine
    return RunRef(
        path=str(results.path),
        id=printable(results.run.id),
        started=printable(results.run.started),
        kernel=printable(machine.kernel),
        build=printable(machine.build.version) if machine.build else None,
        build_id=printable(machine.build.id or "") or None if machine.build else None,
        machine=printable(machine.hostname),
        label=printable(label),
        cpus=printable(f"{len(machine.cpu_order)} x {machine.cpu_model}"),
        command=[printable(as_typed(line)) for line in results.run.command],
    )


def paired(sides: Sides, settings: Settings) -> Pairing:
    """The cells of both sides that are to be compared, by point and metric."""
    return pair(
        sides.base_cells,
        sides.new_cells,
        interleaved=sides.interleaved,
        looks=sides.looks,
        pair_looks=sides.pair_looks,
        metrics=settings.metrics,
    )


def compare(sides: Sides, settings: Settings, *, refuse_few: bool = True) -> Comparison:
    """Judge NEW against BASE.

    Raises:
        FscaleError: nothing can be compared, the figures mean different things, or there are too
            few repetitions for any verdict and nothing broke either. Without `refuse_few` all is
            undecided then.
    """
    _refuse_other_kinds(sides)
    warnings = _warnings(sides, settings)
    pairing = paired(sides, settings)
    lost_in_new = sides.new_results.missing > 0 or bool(sides.new_results.unreadable)
    place = common_place(sides.base_cells, sides.new_cells)
    points = health(sides.base_cells, sides.new_cells, place, lost_in_new)
    failed = any(point.kind != "mended" for point in points)
    if not pairing.tests and not failed:
        raise FscaleError(
            "the two sides have no cell in common: same workload, file system, medium, mode, "
            "cores, duration and options; run the same suite for both"
        )
    tests = [*pairing.tests, *curve_tests(pairing.tests, settings.margin)]
    judgements = judge(tests, settings, refuse=refuse_few and not failed)
    if sides.base_cells == sides.new_cells:
        for judgement in judgements:
            judgement.more_repetitions = None
    family = sum(j.p is not None for j in judgements)
    return Comparison(
        base=sides.base,
        new=sides.new,
        settings=settings,
        tests=family,
        repetitions_needed=minimum_repetitions(settings, family, sides.interleaved),
        judgements=judgements,
        health=points,
        locks=[]
        if sides.interleaved
        else new_bottlenecks(shares(sides.base_results), shares(sides.new_results)),
        missing_in_base=pairing.missing_in_base,
        missing_in_new=[
            name for name in pairing.missing_in_new if name not in {p.subject.name for p in points}
        ],
        between_boots=_between_boots(sides),
        warnings=[printable(warning) for warning in warnings],
    )


def _refuse_other_kinds(sides: Sides) -> None:
    base, new = sides.base_results.run.machine, sides.new_results.run.machine
    if sides.interleaved and base.guest and isinstance(base.guest.get("B"), dict):
        new = new.model_copy(update={"guest": base.guest["B"]})
    refuse_other_kind(base, new)


def _controls_differ(base: Iterable[Cell], new: Iterable[Cell]) -> bool:
    """Whether some cells of the same load and core count had other CPUs online than the others."""
    controls = {(c.key.workload, c.key.mode, c.key.cores): c.cpu_control for c in _good(base)}
    return any(
        controls.get((c.key.workload, c.key.mode, c.key.cores), c.cpu_control) != c.cpu_control
        for c in _good(new)
    )


def _good(cells: Iterable[Cell]) -> Iterator[Cell]:
    """Those that were measured: another's CPUs may never have been chosen."""
    return (cell for cell in cells if cell.status == "ok")


def _between_boots(sides: Sides) -> bool | None:
    runs = sides.base_results.run, sides.new_results.run
    return between_boots(*runs, interleaved=sides.interleaved)


def _warnings(sides: Sides, settings: Settings) -> list[str]:
    warnings = []
    base, new = sides.base_results, sides.new_results
    if not sides.interleaved:
        warnings.append(
            "the sides were not interleaved: what changed on the machine between the two runs is "
            "counted as a change (`fscale ab` avoids that)"
        )
        if _between_boots(sides):
            warnings.append(BETWEEN_BOOTS)
        warnings += notes(
            base.run, new.run, sides.base_cells, sides.new_cells, settings.allow_different
        )
        if sides.base_cells and sides.base_cells == sides.new_cells:
            warnings.append("both sides are the same measurements: there is nothing to tell apart")
        if _controls_differ(base.scored, new.scored):
            warnings.append(
                "CPUs were taken away by hotplug on one side and by affinity on the other"
            )
    for name, cells in (("BASE", sides.base_cells), ("NEW", sides.new_cells)):
        scored = [c for c in cells if c.key.profile is None]
        wrong = sum(c.status != "ok" for c in scored)
        disturbed = sum(c.status == "ok" and c.disturbed is not None for c in scored)
        if wrong:
            warnings.append(f"{wrong} of {len(scored)} repetitions of {name} gave no value")
        if disturbed:
            warnings.append(
                f"{disturbed} of {len(scored)} repetitions of {name} ran beside others' load"
            )
    for name, results in {"BASE": base, "NEW": new}.items():
        if results.unreadable:
            warnings.append(
                f"{len(results.unreadable)} cell files of {name} cannot be read: not used"
            )
        if results.run.state != "complete":
            warnings.append(f"the run of {name} is {results.run.state}")
    guests = [r.run.machine.guest for r in (base, new) if r.run.machine.guest]
    labels = dict.fromkeys(str(guest.get("label")) for guest in guests)
    return warnings + [f"measured in a guest ({label})" for label in labels]
