# SPDX-License-Identifier: GPL-2.0-only
"""Each verdict at the edge where it becomes another one, and what is said of it."""

import math
import re
from typing import Any

import pytest

from fscale.analysis.compare import decide as deciding
from fscale.analysis.compare.effect import Effect, smallest_change
from fscale.analysis.compare.judge import judge, refuse_too_few, running
from fscale.analysis.compare.model import Judgement, Subject
from fscale.analysis.compare.observations import Observations
from fscale.analysis.compare.observations import Test as Compared
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sliced import PairRatio, paired, pairs_needed
from fscale.analysis.compare.sliced import smallest_change as pairs_show
from fscale.analysis.metrics import COUNT, PEAK, THROUGHPUT
from fscale.model.errors import FscaleError

SUBJECT = Subject(
    workload="MWCL", filesystem="ext4", medium="ram", mode="buffered", cores=(1,), duration=1
)
SETTINGS = Settings()
EDGE = 1 / 0.95


def compared(
    base: int | list[float] = 10, new: int | list[float] = 10, metric: str = THROUGHPUT, **more: Any
) -> Any:
    """A test whose sides have these values, or so many of 100."""
    sides = [[100.0] * v if isinstance(v, int) else v for v in (base, new)]
    ours, theirs = (Observations("ext4", dict(enumerate(values, 1))) for values in sides)
    return Compared(SUBJECT, metric, ours, theirs, **more)


def verdict(
    effect: Effect,
    q: float,
    metric: str = THROUGHPUT,
    spread: float = 0.02,
    family: int = 1,
    **more: Any,
) -> Judgement:
    evidence = deciding.Evidence(0.95, q / 2, effect, spread)
    return deciding.decide(compared(metric=metric, **more), evidence, q, family, SETTINGS)


@pytest.mark.parametrize(
    ("ratio", "low", "high", "q", "expected", "reason"),
    [
        (0.90, 0.85, 0.94, 0.01, "slower", ""),
        (0.90, 0.85, 0.94, 0.0101, "undecided", "the data are not conclusive"),
        (0.95, 0.90, 0.99, 0.001, "undecided", None),
        (0.90, 0.85, 1.0, 0.001, "undecided", "the distributions differ"),
        (1.10, 1.06, 1.20, 0.01, "faster", ""),
        (1.10, 1.06, 1.20, 0.0101, "undecided", "the data are not conclusive"),
        (EDGE, 1.01, 1.10, 0.001, "undecided", None),
        (1.10, 1.0, 1.20, 0.001, "undecided", "the distributions differ"),
        (1.00, 0.95, EDGE, 0.5, "same", ""),
        (0.98, 0.95, 0.99, 0.001, "same", "the change is smaller than the margin"),
        (1.00, 0.949, EDGE, 0.5, "undecided", "the data are not conclusive"),
        (1.00, 0.95, 1.0527, 0.5, "undecided", "the data are not conclusive"),
    ],
)
def test_verdicts_at_their_edges(
    ratio: float, low: float, high: float, q: float, expected: str, reason: str | None
) -> None:
    found = verdict(Effect(ratio, low, high), q)
    assert found.verdict == expected
    if reason is not None:
        assert found.reason.startswith(reason)
        assert bool(found.reason) == bool(reason)
    assert (found.ratio, found.low, found.high, found.level, found.p, found.q) == (
        ratio, low, high, 0.95, q / 2, q,
    )  # fmt: skip
    assert found.margin == 0.05


def test_more_counted_work_is_slower_from_its_own_margin_on() -> None:
    more, less = Effect(1.02, 1.015, 1.03), Effect(0.98, 0.97, 0.985)
    assert verdict(more, 0.001, COUNT + "alloc").verdict == "slower"
    assert verdict(less, 0.001, COUNT + "alloc").verdict == "faster"
    assert verdict(less, 0.001).verdict == "same"
    assert verdict(more, 0.001, COUNT + "alloc").margin == 0.01


DIFFER = "the distributions differ, but their medians not clearly: look at the values"


def undecided(**changes: Any) -> Judgement:
    fields = {"smallest_change": 0.1, "more_repetitions": 5}
    return deciding.undecided(compared(), 0.05).model_copy(update=fields | changes)


@pytest.mark.parametrize(
    ("low", "high", "significant", "reason"),
    [
        (0.9, 1.1, False, "the data are not conclusive"),
        (0.9, 1.1, True, DIFFER),
        (1.0, 1.1, True, DIFFER),
        (0.9, 1.0, True, DIFFER),
        (0.9, 0.99, True, "the data are not conclusive"),
        (1.01, 1.1, True, "the data are not conclusive"),
    ],
)
def test_significant_without_a_clear_direction(
    low: float, high: float, significant: bool, reason: str
) -> None:
    assert deciding.why_undecided(undecided(), Effect(1.0, low, high), significant) == reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"smallest_change": 0.0}, "the data are not conclusive"),
        ({"smallest_change": 0.25}, "the data are not conclusive"),
        ({"smallest_change": 0.26}, "too noisy: only a change above 26% would be detected"),
        ({"smallest_change": 0.26, "metric": PEAK}, "the data are not conclusive"),
        ({"more_repetitions": None},
         "too close to the margin for any practical number of repetitions"),
    ],
)  # fmt: skip
def test_why_it_is_undecided(changes: dict[str, Any], reason: str) -> None:
    assert deciding.why_undecided(undecided(**changes), Effect(1.0, 0.9, 1.1), False) == reason


@pytest.mark.parametrize("side", ["base", "new"])
@pytest.mark.parametrize(
    ("disturbed", "before", "interleaved", "after"),
    [
        (2, "slower", False, "slower"),
        (3, "slower", False, "undecided"),
        (3, "faster", False, "undecided"),
        (3, "same", False, "same"),
        (3, "slower", True, "slower"),
    ],
)
def test_a_change_beside_others_load_is_taken_back(
    side: str, disturbed: int, before: str, interleaved: bool, after: str
) -> None:
    """More than a quarter of one side's repetitions, here of 8, and the other side's are more."""
    found = deciding.undecided(compared(8, 8, interleaved=interleaved), 0.05)
    found.verdict = before  # type: ignore[assignment]
    getattr(found, side).disturbed = disturbed
    deciding.retract_if_disturbed(found)
    assert found.verdict == after
    if before == after:
        assert found.reason == ""
    else:
        assert "disturbed 38%" in found.reason
        assert "`fscale ab`" in found.reason


@pytest.mark.parametrize(
    ("ratio", "base", "new", "excused"),
    [
        (0.8, None, 0.03, False),  # a neighbour of 3% does not cost a fifth
        (0.8, None, 0.1, True),
        (0.93, None, 0.03, True),
        (1.3, 0.03, None, False),
        (1.3, 0.2, None, True),
        (0.8, 0.04, 0.04, True),
        (0.8, None, "unknown", True),
    ],
)
def test_others_load_takes_back_what_it_can_explain(
    ratio: float, base: float | None, new: float | str | None, excused: bool
) -> None:
    found = deciding.undecided(compared(8, 8), 0.05)
    found.verdict, found.ratio = "slower" if ratio < 1 else "faster", ratio
    for side, lost in ((found.base, base), (found.new, new)):
        side.disturbed = 0 if lost is None else 6
        side.lost = None if isinstance(lost, str) else lost
    deciding.retract_if_disturbed(found)
    assert (found.verdict == "undecided") is excused


@pytest.mark.parametrize(
    ("base", "new", "hidden"), [(0.1, None, True), (0.1, 0.04, True), (0.1, 0.08, False)]
)
def test_load_on_one_side_hides_a_change_of_the_other(
    base: float, new: float | None, hidden: bool
) -> None:
    found = deciding.undecided(compared(8, 8), 0.05)
    found.verdict, found.ratio = "same", 1.0
    for side, lost in ((found.base, base), (found.new, new)):
        side.disturbed, side.lost = 0 if lost is None else 8, lost
    deciding.retract_if_disturbed(found)
    assert found.verdict == ("undecided" if hidden else "same")


def test_a_side_as_it_is_shown() -> None:
    values = {1: 100.0, 2: 101.0, 4: 99.0, 5: 100.0, 7: 40.0}
    found = deciding.side_of(Observations("xfs", values, unusable=2, disturbed=1), counted=False)
    assert (found.filesystem, found.values, found.median) == ("xfs", values, 100.0)
    assert (found.outliers, found.unusable, found.disturbed) == ([7], 2, 1)
    assert found.cv == pytest.approx(1.4826 * 0.00995, rel=1e-3)  # |log 1.01| is in the middle
    one = deciding.side_of(Observations("xfs", {3: 5.0}), counted=False)
    assert (one.median, one.cv, one.outliers) == (5.0, None, [])
    two = deciding.side_of(Observations("xfs", {3: 5.0, 4: 5.0}), counted=False)
    assert (two.median, two.cv) == (5.0, 0.0)
    none = deciding.side_of(Observations("xfs", {}), counted=False)
    assert (none.median, none.cv, none.outliers) == (None, None, [])
    # Counts are taken plus one event, on both sides.
    test = compared([0.0, 0.0, 1.0, 3.0], [0.0, 1.0, 3.0, 7.0], COUNT + "alloc")
    both = deciding.undecided(test, 0.01)
    assert both.base.cv == pytest.approx(1.4826 * 0.6931 / 2, rel=1e-3)
    assert both.new.cv == pytest.approx(1.4826 * 0.6931, rel=1e-3)
    counts = deciding.side_of(Observations("xfs", {1: 0.0, 2: 0.0, 3: 1.0, 4: 3.0}), counted=True)
    assert counts.cv == pytest.approx(1.4826 * 0.6931 / 2, rel=1e-3)


def test_counts_are_judged_plus_one_event_and_by_repetition() -> None:
    test = compared([3.0, 1.0, 0.0], [1.0, 1.0, 7.0], COUNT + "alloc")
    assert test.samples().value.tolist() == [4, 2, 1, 2, 2, 8]
    assert test.samples(2).value.tolist() == [4, 2, 2, 2]
    assert compared([3.0, 1.0], [2.0, 5.0]).samples(1).value.tolist() == [3, 2]


def test_repetitions_are_those_of_the_shorter_side_or_pairs() -> None:
    assert compared(5, 7).repetitions == compared(7, 5).repetitions == 5
    assert compared(9, 9, ratios={1: PairRatio(0, 1), 4: PairRatio(0, 1)}).repetitions == 2


def pairs(count: int, log: float = -0.2) -> dict[int, PairRatio]:
    """Around `log` by turns a hundredth more and less."""
    return {r: PairRatio(log + 0.01 * (-1) ** r, 0.001) for r in range(1, count + 1)}


@pytest.mark.parametrize(
    ("tests", "family", "refused"),
    [
        ([], 0, False),
        ([compared(4, 4)], 1, True),  # 2 / 70
        ([compared(5, 5)], 1, False),  # 2 / 252
        ([compared(5, 5)], 2, True),
        ([compared(5, 5)], 0, False),
        ([compared(4, 9)], 1, False),  # 2 / 715
        ([compared(4, 4), compared(6, 6)], 2, False),
        ([compared(4, 4, ratios=pairs(3))], 1, True),
        ([compared(4, 4, ratios=pairs(4))], 1, False),
    ],
)
def test_what_can_never_be_significant_is_refused(
    tests: list[Any], family: int, refused: bool
) -> None:
    if not refused:
        refuse_too_few(tests, family, SETTINGS)
        return
    with pytest.raises(FscaleError):
        refuse_too_few(tests, family, SETTINGS)


def test_the_level_itself_is_significant() -> None:
    refuse_too_few([compared(4, 4)], 1, Settings(fdr=2 / 70))
    with pytest.raises(FscaleError):
        refuse_too_few([compared(4, 4)], 1, Settings(fdr=2 / 70 - 1e-9))
    with pytest.raises(FscaleError, match="--repetitions 9"):
        refuse_too_few([compared(4, 4)], 1, Settings(fdr=1e-4))
    # In blocks of four repetitions a side there are fewer arrangements.
    with pytest.raises(FscaleError, match="--repetitions 10"):
        refuse_too_few([compared(4, 4, interleaved=True)], 1, Settings(fdr=1e-4))


def test_the_refusal_says_what_it_takes() -> None:
    tests = [compared(4, 5), compared(1, 3), compared(0, 9)]
    with pytest.raises(FscaleError) as caught:
        refuse_too_few(tests, 0, Settings(fdr=0.005))
    told = str(caught.value)
    assert "at most 4 per side" in told
    assert "2 tests" in told
    assert "0.005" in told
    assert told.endswith("measure both sides with --repetitions 6")


def test_what_has_too_few_repetitions_says_how_many_it_takes() -> None:
    few, many = compared(4, 4), compared(12, 12)
    for test, needed, more in (
        (few, 6, 2),
        (compared(4, 4, interleaved=True, looks=(8, 12)), 8, 4),
        (compared(8, 8, looks=(6, 12)), 6, 1),
        (compared(9, 9, ratios=pairs(3)), 4, 1),
    ):
        found = deciding.too_few(test, 2, SETTINGS)
        numbers = re.findall(r"\d+", found.reason or "")
        assert numbers == [str(test.repetitions), str(needed)]
        margin = 0.02 if test.ratios else 0.05
        assert (found.verdict, found.more_repetitions, found.margin) == ("undecided", more, margin)
    assert deciding.too_few(compared(4, 4, COUNT + "x"), 2, SETTINGS).margin == 0.01
    for interleaved, needed in ((False, 9), (True, 10)):
        found = deciding.too_few(compared(4, 4, interleaved=interleaved), 100, SETTINGS)
        assert re.findall(r"\d+", found.reason or "") == ["4", str(needed)]
    first, second = judge([few, many], SETTINGS)
    assert re.findall(r"\d+", first.reason or "") == ["4", "5"]
    assert (first.p, second.p) == (None, 1.0)


def test_what_can_reach_the_level_is_judged() -> None:
    def p(count: int, fdr: float, interleaved: bool) -> float | None:
        test = compared(count, count, interleaved=interleaved)
        return judge([test], Settings(fdr=fdr), refuse=False)[0].p

    assert [p(n, 0.01, False) for n in (4, 5)] == [None, 1.0]
    assert [p(n, 1e-4, False) for n in (8, 9)] == [None, 1.0]
    assert [p(n, 1e-4, True) for n in (9, 10)] == [None, 1.0]


def test_nothing_is_refused_where_it_must_not_be() -> None:
    (found,) = judge([compared(3, 3)], SETTINGS, refuse=False)
    assert (found.verdict, found.reason) == ("undecided", "too few repetitions: 3 of at least 5")
    with pytest.raises(FscaleError):
        judge([compared(3, 3)], SETTINGS)
    assert judge([], SETTINGS) == []


SLOWER = [80.0 + i for i in range(20)]
FASTER = [100.0 + i for i in range(20)]


def test_each_look_costs_its_share() -> None:
    def one(looks: tuple[int, ...], n: int = 20) -> Judgement:
        test = compared(FASTER[:n], SLOWER[:n], interleaved=True, looks=looks)
        return judge([test], SETTINGS, refuse=False)[0]

    once = one(())
    assert once.level == pytest.approx(0.95)
    first = one((20,))
    # The first look may spend a half, so its p-value counts double.
    assert first.p == pytest.approx(2 * (once.p or 0))
    assert first.level == pytest.approx(1 - 0.05 / 2)
    second = one((8, 20))
    assert second.level == pytest.approx(1 - 0.05 / 6)
    ps = [one((8,), 8).p or 0, 6 * (once.p or 0)]
    assert second.p == pytest.approx(min(ps))
    # A look that is still to come is none, and before the first one nothing is judged.
    assert one((8, 40)).p == one((8,), 8).p
    assert one((40,)).p is None
    assert one((8, 40)).low == one((8,), 8).low
    (same,) = judge([compared(8, 8, interleaved=True, looks=(8,))], SETTINGS)
    assert same.p == 1.0


def test_each_look_at_pairs_costs_its_share() -> None:
    def one(looks: tuple[int, ...], n: int = 6) -> Judgement:
        test = compared(6, 6, ratios=pairs(n), looks=looks)
        return judge([test], SETTINGS, refuse=False)[0]

    once, first, second = one(()), one((6,)), one((4, 6))
    assert (once.level, first.level, second.level) == pytest.approx(
        (0.95, 1 - 0.05 / 2, 1 - 0.05 / 6)
    )
    assert once.verdict == first.verdict == second.verdict == "slower"
    assert first.p == pytest.approx(2 * (once.p or 0))
    assert second.p == pytest.approx(min(2 * (one((), 4).p or 0), 6 * (once.p or 0)))
    assert one((4, 9)).p == one((4,)).p
    assert one((4, 9)).low == one((4,), 4).low != once.low
    still = compared(6, 6, ratios={r: PairRatio(0.0, 0.1) for r in range(1, 7)}, looks=(6,))
    assert judge([still], SETTINGS)[0].p == 1.0
    assert one((9,)).p is None
    assert one((), 4).p is not None
    assert one((), 3).p is None
    assert once.ratio == pytest.approx(0.8187, rel=1e-3)
    assert once.between_pairs == pytest.approx(0.01095, rel=1e-3)
    assert once.within_pairs == pytest.approx(0.001)
    assert one((), 4).more_repetitions is None


def test_what_pairs_show_is_reckoned_by_pairs() -> None:
    ratios = {r: PairRatio(-0.03 + 0.04 * (-1) ** r, 0.001) for r in range(1, 7)}
    (found,) = judge([compared(6, 6, ratios=ratios)], SETTINGS)
    deviation = found.between_pairs or 0
    assert deviation == pytest.approx(0.0438, rel=1e-3)
    assert found.verdict == "undecided"
    assert found.smallest_change == pairs_show(deviation, 6, 0.01, 0.95)
    needed = pairs_needed(deviation, found.ratio or 0, 0.02, 0.01, 0.95)
    assert found.more_repetitions == (needed or 0) - 6


def test_a_look_now_is_one_of_those_that_are_planned() -> None:
    def half(n: int, looks: tuple[int, ...]) -> float | None:
        found = running(compared(9, 9, ratios=pairs(n), looks=looks), SETTINGS)
        return found and math.log(found.high / found.low) / 2

    assert half(1, ()) is None
    for n, looks, share in ((2, (), 1), (6, (), 1), (4, (6, 9), 2), (6, (6, 9), 2), (7, (6, 9), 6)):
        effect = paired(pairs(n), None, 1 - 0.05 / share).effect
        assert half(n, looks) == pytest.approx(math.log(effect.high / effect.low) / 2)


def test_more_repetitions_are_those_to_the_next_look_that_would_do() -> None:
    near = Effect(0.93, 0.90, 0.96)
    # t(0.995, 36) x 0.08 x sqrt(2/19 x pi/3) = 0.0722, below -log(0.93) = 0.0726; 18 do not do.
    assert verdict(near, 0.5, spread=0.08).more_repetitions == 19 - 10
    assert verdict(near, 0.5, spread=0.08, looks=(10, 19, 30)).more_repetitions == 19 - 10
    assert verdict(near, 0.5, spread=0.08, looks=(10, 18, 30)).more_repetitions == 30 - 10
    assert verdict(near, 0.5, spread=0.08, looks=(10, 15)).more_repetitions == 19 - 10
    # Without spread the rank test still takes its fewest, and one more is the least.
    assert verdict(near, 0.5, spread=0.0).more_repetitions == 1
    assert verdict(near, 0.5, spread=0.0, base=2, new=2).more_repetitions == 3
    assert verdict(near, 0.5, spread=0.0, ratios=pairs(1)).more_repetitions == 1
    for interleaved, more in ((False, 1), (True, 2)):
        found = verdict(near, 0.5, spread=0.0, family=100, base=8, new=8, interleaved=interleaved)
        assert found.more_repetitions == more


def test_the_visible_change_is_that_of_one_among_the_family() -> None:
    found = verdict(Effect(1.0, 0.99, 1.01), 0.5, family=5)
    assert found.smallest_change == smallest_change(0.02, 10, 0.01 / 5, 0.95)


def test_the_seed_and_the_subject_choose_the_resamples() -> None:
    def interval(test: Any, seed: int = 0) -> tuple[float | None, float | None]:
        (found,) = judge([test], Settings(seed=seed))
        return found.low, found.high

    rates = FASTER[:10], [99.0, 95.0, 104.0, 97.5, 88.0, 101.0, 93.0, 96.0, 90.0, 98.0]
    one = compared(*rates)
    assert interval(one) == interval(compared(*rates))
    assert interval(one) != interval(one, seed=1)
    assert interval(one) != interval(compared(*rates, metric="per-cpu-second"))
