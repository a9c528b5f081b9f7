# SPDX-License-Identifier: GPL-2.0-only
"""Compares the two sides of a comparison: from their cells to a `Comparison`."""

from fscale.analysis.compare import counted
from fscale.analysis.compare.curves import curve_tests
from fscale.analysis.compare.definition import refuse_other_kind
from fscale.analysis.compare.health import health
from fscale.analysis.compare.judge import judge
from fscale.analysis.compare.locks import changed_locks, shares
from fscale.analysis.compare.model import Comparison
from fscale.analysis.compare.pairs import Pairing, Points, match_cells, pair
from fscale.analysis.compare.repetitions import minimum_repetitions
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import Sides
from fscale.analysis.compare.warnings import between_boots, collect_warnings
from fscale.analysis.metrics import NAMED
from fscale.model.errors import FscaleError
from fscale.model.files import printable


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
    warnings = collect_warnings(sides, settings)
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
        else changed_locks(shares(sides.base_results), shares(sides.new_results)),
        missing_in_base=pairing.missing_in_base,
        missing_in_new=[
            name for name in pairing.missing_in_new if name not in {c.subject.name for c in changes}
        ],
        between_boots=between_boots(sides),
        warnings=[printable(warning) for warning in warnings],
    )


def _refuse_missing(pairing: Pairing, settings: Settings) -> None:
    """FscaleError if a metric that was asked for by name has a value at no point."""
    for metric in (m for m in settings.metrics if m in NAMED):
        tests = [test for test in pairing.tests if test.metric == metric]
        reasons = dict.fromkeys(
            f"{name}: {side.gap}"
            for test in tests
            for name, side in (("BASE", test.base), ("NEW", test.new))
            if side.gap
        )
        if reasons and not any(test.base.values and test.new.values for test in tests):
            raise FscaleError(f"{metric} cannot be judged: {'; '.join(reasons)}")


def _refuse_other_kinds(sides: Sides) -> None:
    base, new = sides.base_results.run.machine, sides.new_results.run.machine
    if sides.interleaved and base.guest and isinstance(base.guest.get("B"), dict):
        new = new.model_copy(update={"guest": base.guest["B"]})
    refuse_other_kind(base, new)
