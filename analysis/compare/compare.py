# SPDX-License-Identifier: GPL-2.0-only
"""Compares the two sides of a comparison: from their cells to a `Comparison`."""

from collections.abc import Iterable, Iterator

from fscale.analysis.compare import counted
from fscale.analysis.compare.boots import BETWEEN_BOOTS, between_boots
from fscale.analysis.compare.curves import curve_tests
from fscale.analysis.compare.definition import notes, refuse_other_kind
from fscale.analysis.compare.health import health
from fscale.analysis.compare.hosts import mixed_hosts
from fscale.analysis.compare.judge import judge
from fscale.analysis.compare.locks import new_bottlenecks, shares
from fscale.analysis.compare.model import Comparison
from fscale.analysis.compare.pairs import Pairing, Points, match_cells, pair
from fscale.analysis.compare.repetitions import minimum_repetitions
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import Sides
from fscale.model import crew
from fscale.model.errors import FscaleError
from fscale.model.files import printable
from fscale.model.results import Cell


def paired(sides: Sides, points: Points, settings: Settings) -> Pairing:
    """The tests of both sides' matched cells, by point and metric."""
    return pair(
        points,
        interleaved=sides.interleaved,
        looks=sides.looks,
        pair_looks=sides.pair_looks,
        metrics=settings.metrics,
    )


def compare(sides: Sides, settings: Settings, *, refuse_few: bool = True) -> Comparison:
    """Judge NEW against BASE. Simulated counts have rules of their own and ignore `settings`.

    Raises:
        FscaleError: nothing can be compared, the figures mean different things, or there are too
            few repetitions for any verdict and nothing broke. Without `refuse_few`, too few
            repetitions leave all undecided instead.
    """
    _refuse_other_kinds(sides)
    points = match_cells(sides.base_cells, sides.new_cells)
    if sides.counted:
        return counted.compare(sides, points)
    warnings = _warnings(sides, settings)
    pairing = paired(sides, points, settings)
    lost_in_new = sides.new_results.missing > 0 or bool(sides.new_results.unreadable)
    changes = health(points, lost_in_new)
    failed = any(point.kind != "mended" for point in changes)
    if not pairing.tests and not failed:
        raise FscaleError(
            "the two sides have no cell in common, that is, with the same workload, file system, "
            "medium, mode, cores, duration and options; run the same suite for both"
        )
    if not failed:
        _refuse_missing(pairing, settings)
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
        health=changes,
        locks=[]
        if sides.interleaved
        else new_bottlenecks(shares(sides.base_results), shares(sides.new_results)),
        missing_in_base=pairing.missing_in_base,
        missing_in_new=[
            name for name in pairing.missing_in_new if name not in {c.subject.name for c in changes}
        ],
        between_boots=_between_boots(sides),
        warnings=[printable(warning) for warning in warnings],
    )


def _refuse_missing(pairing: Pairing, settings: Settings) -> None:
    """FscaleError if a metric that was asked for by name has a value at no point."""
    for metric in settings.metrics:
        tests = [test for test in pairing.tests if test.metric == metric]
        reasons = dict.fromkeys(
            f"{name}: {side.missing}"
            for test in tests
            for name, side in (("BASE", test.base), ("NEW", test.new))
            if side.missing
        )
        if reasons and not any(test.base.values and test.new.values for test in tests):
            raise FscaleError(f"{metric} cannot be judged: {'; '.join(reasons)}")


def _refuse_other_kinds(sides: Sides) -> None:
    base, new = sides.base_results.run.machine, sides.new_results.run.machine
    if sides.interleaved and base.guest and isinstance(base.guest.get("B"), dict):
        new = new.model_copy(update={"guest": base.guest["B"]})
    refuse_other_kind(base, new)


def _controls_differ(base: Iterable[Cell], new: Iterable[Cell]) -> bool:
    """Whether cells of the same load and core count took CPUs away in different ways."""
    controls = {
        (c.key.workload, c.key.mode, c.key.cores): c.cpu_control for c in _measured_cells(base)
    }
    return any(
        controls.get((c.key.workload, c.key.mode, c.key.cores), c.cpu_control) != c.cpu_control
        for c in _measured_cells(new)
    )


def _measured_cells(cells: Iterable[Cell]) -> Iterator[Cell]:
    """The cells that were measured; for others the CPUs may not have been chosen."""
    return (cell for cell in cells if cell.status == "ok")


def _between_boots(sides: Sides) -> bool | None:
    runs = sides.base_results.run, sides.new_results.run
    return between_boots(*runs, interleaved=sides.interleaved)


def _warnings(sides: Sides, settings: Settings) -> list[str]:
    warnings = []
    base, new = sides.base_results, sides.new_results
    if not sides.interleaved:
        warnings.append(
            "the sides were not interleaved: if the machine changed between the two runs, that "
            "counts as a change (`fscale ab` avoids this)"
        )
        if _between_boots(sides):
            warnings.append(BETWEEN_BOOTS)
        warnings += notes(
            *(base.run, new.run, sides.base_cells, sides.new_cells),
            *(settings.allow_different, mixed_hosts(sides)),
        )
        if sides.base_cells and sides.base_cells == sides.new_cells:
            warnings.append("both sides are the same measurements, so they cannot differ")
        if _controls_differ(base.scored, new.scored):
            warnings.append(
                "unused CPUs were excluded by hotplug on one side and by affinity on the other"
            )
    in_new = crew.sentences(new.run)
    warnings += [f"on both sides, {text}" for text in crew.sentences(base.run) if text in in_new]
    for name, cells in (("BASE", sides.base_cells), ("NEW", sides.new_cells)):
        scored = [c for c in cells if c.key.profile is None]
        wrong = sum(c.status != "ok" for c in scored)
        disturbed = sum(c.status == "ok" and c.disturbed is not None for c in scored)
        if wrong:
            warnings.append(f"{wrong} of {len(scored)} repetitions of {name} gave no value")
        if disturbed:
            warnings.append(
                f"other processes disturbed {disturbed} of {len(scored)} repetitions of {name}"
            )
    for name, results in {"BASE": base, "NEW": new}.items():
        if results.unreadable:
            warnings.append(
                f"{len(results.unreadable)} cell files of {name} cannot be read and are not used"
            )
        if results.run.state != "complete":
            warnings.append(f"the run of {name} is {results.run.state}")
    guests = [r.run.machine.guest for r in (base, new) if r.run.machine.guest]
    labels = dict.fromkeys(str(guest.get("label")) for guest in guests)
    return warnings + [f"measured in a guest ({label})" for label in labels]
