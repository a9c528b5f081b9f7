# SPDX-License-Identifier: GPL-2.0-only
"""Verdicts follow from the curve and the profiles, and say so."""

import pytest

from fscale.analysis.curves import Curve
from fscale.analysis.diagnosis.naming import By, Name
from fscale.analysis.diagnosis.triage import COUNTER, LOCK, WAIT, Suspect, Triage
from fscale.analysis.diagnosis.verdict import (
    Confidence,
    Shape,
    confidence_of,
    judge_point,
    shape_of,
    suspects_of,
)
from fscale.analysis.summary import Point
from fscale.model.results import CellKey
from tests.support import synthetic


def key(cores: int, repetition: int = 1, profile: str | None = None) -> CellKey:
    return synthetic.key(repetition, workload="MWCM", cores=cores, profile=profile)


def curve(**rates: list[float]) -> Curve:
    points = []
    for name, values in rates.items():
        cores = int(name[1:])
        cells = tuple(synthetic.bare_cell(key(cores, n), v) for n, v in enumerate(values, 1))
        points.append(Point(key(cores), "ops", cells))
    return Curve("ext4", None, tuple(points), 1)


def suspect(name: str, share: float, sort: str = LOCK, by: By = By.ADDRESS_AND_STACK) -> Suspect:
    return Suspect(Name(name, "Directory", by), sort, "rwsem write", blocked=share)


def diagnosed(*suspects: Suspect, cores: int = 4) -> Triage:
    return Triage(key(cores, profile="locks"), list(suspects), {"locks": 1, "cpu": 1}, {})


SCALING = curve(c1=[100, 101, 99], c2=[198, 200, 199], c4=[380, 385, 390])
SATURATED = curve(c1=[100, 101, 99], c2=[150, 151, 149], c4=[160, 161, 159])
COLLAPSED = curve(c1=[100, 101, 99], c2=[150, 151, 149], c4=[80, 81, 79])


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        (None, (Shape.UNKNOWN, None, None)),
        (curve(c1=[100.0], c2=[160.0]), (Shape.SCALES, None, 0.8)),
        (curve(c1=[100.0], c2=[159.0]), (Shape.SATURATES, 2, 0.795)),
        (curve(c1=[100.0], c2=[159.0], c4=[380.0]), (Shape.SCALES, None, 0.95)),
        (curve(c1=[100.0], c2=[159.0], c4=[310.0]), (Shape.SATURATES, 2, 0.775)),
        (curve(c1=[100.0], c2=[160.0], c4=[310.0]), (Shape.SATURATES, 4, 0.775)),
        (curve(c1=[100.0]), (Shape.UNKNOWN, None, None)),
        (curve(c1=[100.0], c2=[190.0], c4=[380.0], c8=[320.0]), (Shape.COLLAPSES, 8, 0.4)),
        (
            curve(c1=[100.0], c2=[190.0], c4=[350.0], c8=[330.0], c16=[320.0]),
            (Shape.COLLAPSES, 8, 0.2),
        ),
        # The slowest of the peak is no faster than the fastest at the end.
        (curve(c1=[100.0], c2=[150, 190, 200], c4=[140, 140, 150]), (Shape.SATURATES, 4, 0.35)),
        (curve(c1=[100.0], c2=[151, 190, 200], c4=[140, 140, 150]), (Shape.COLLAPSES, 4, 0.35)),
        # Clearly below the base, however wide the peak.
        (curve(c1=[100.0], c2=[50, 120, 130], c4=[80.0]), (Shape.COLLAPSES, 4, 0.2)),
        (curve(c2=[100.0], c4=[200.0]), (Shape.UNKNOWN, None, None)),
    ],
)
def test_shapes_at_their_edges(
    points: Curve | None, expected: tuple[Shape, int | None, float | None]
) -> None:
    assert shape_of(points) == expected


def test_the_cause_is_named_with_its_share_and_confidence() -> None:
    found = judge_point(diagnosed(suspect("i_rwsem", 0.5), suspect("other", 0.02)), COLLAPSED)
    assert found.confidence is Confidence.CERTAIN
    assert found.sentence.startswith("MWCM on ext4 collapses from 4 cores on (20% of linear)")
    assert "i_rwsem: 50.0% " in found.sentence
    assert found.sentence.endswith("(certain).")


@pytest.mark.parametrize(
    ("cause", "other", "loss", "expected"),
    [
        (suspect("a", 0.25), suspect("b", 0.125), 0.5, Confidence.CERTAIN),
        (suspect("a", 0.25), suspect("b", 0.126), 0.5, Confidence.LIKELY),
        (suspect("a", 0.25), suspect("b", 0.125), 0.51, Confidence.LIKELY),
        (suspect("a", 0.25), suspect("b", 0.126), 0.51, Confidence.POSSIBLE),
        (suspect("a", 0.25), suspect("b", 0.125), None, Confidence.CERTAIN),
        (suspect("a", 0.25, by=By.ADDRESS), suspect("b", 0.1), 0.5, Confidence.CERTAIN),
        (suspect("a", 0.25, by=By.STACK), suspect("b", 0.1), 0.5, Confidence.LIKELY),
        (suspect("a", 0.25, COUNTER, By.STACK), suspect("b", 0.1), 0.5, Confidence.LIKELY),
        (suspect("a", 0.25, WAIT, By.STACK), suspect("b", 0.1), 0.5, Confidence.CERTAIN),
    ],
)
def test_confidence_at_its_edges(
    cause: Suspect, other: Suspect, loss: float | None, expected: Confidence
) -> None:
    assert confidence_of(cause, [other, cause], loss) is expected


def test_a_cause_takes_a_twentieth_and_a_mention_a_hundredth() -> None:
    shares = {"a": 0.05, "b": 0.01, "c": 0.0099}
    found = diagnosed(*(suspect(name, share) for name, share in shares.items()))
    assert [s.name.object for s in suspects_of(found, None)] == ["a", "b"]
    judgement = judge_point(found, SATURATED)
    assert judgement.cause is not None
    assert judgement.cause.name.object == "a"
    assert (judgement.shape, judgement.cores, judgement.since) == (Shape.SATURATES, 4, 2)
    assert judgement.efficiency == 0.4
    less = judge_point(diagnosed(suspect("a", 0.0499)), SATURATED)
    assert (less.cause, less.confidence) == (None, None)


def test_suspects_come_by_what_they_have_grown() -> None:
    now = diagnosed(
        suspect("counter", 0.5, COUNTER), suspect("lock", 0.3), suspect("disk", 0.25, WAIT)
    )
    before = diagnosed(
        suspect("counter", 0.3, COUNTER), suspect("lock", 0.3), suspect("disk", 0.24, WAIT)
    )
    found = suspects_of(now, before)
    # What a lock takes at one core is lost there as well. The disk has grown by a hundredth.
    assert [s.name.object for s in found] == ["lock", "counter", "disk"]
    of_another_sort = diagnosed(suspect("counter", 0.5, WAIT))
    assert [s.sort for s in suspects_of(of_another_sort, before)] == [WAIT]


def test_a_point_is_judged_against_its_base() -> None:
    now, before = (diagnosed(suspect("disk", share, WAIT)) for share in (0.5, 0.495))
    assert judge_point(now, SATURATED).cause is not None
    assert judge_point(now, SATURATED, before).cause is None


def test_a_small_share_explains_a_small_loss() -> None:
    assert judge_point(diagnosed(suspect("a", 0.06)), SCALING).confidence is Confidence.CERTAIN


def test_the_cause_of_an_application_is_never_certain() -> None:
    found = diagnosed(suspect("a", 0.5))
    assert judge_point(found, COLLAPSED).confidence is Confidence.CERTAIN
    found.application = True
    assert judge_point(found, COLLAPSED).confidence is Confidence.LIKELY
    weak = diagnosed(suspect("a", 0.1), suspect("b", 0.09))
    weak.application = True
    assert judge_point(weak, COLLAPSED).confidence is Confidence.POSSIBLE


NOWHERE = "no profile shows what its cores wait for; measure it with --profile locks,offcpu,cpu."
UNSEEN = "MWCM on ext4 at 4 cores: no lock waits; spinning is not known without a cpu profile"
EXPLAINS = "no lock, wait or shared counter explains it"


@pytest.mark.parametrize(
    ("points", "share", "profiles", "disturbed", "sentence"),
    [
        (SCALING, 0.5, "locks", False,
         "MWCM on ext4 scales to 4 cores (96% of linear); contention on a: 50.0% of "
         "the cores' time."),
        (None, 0.5, "locks", True,
         "MWCM on ext4 at 4 cores; contention on a: 50.0% of the cores' time; other "
         "processes disturbed the measurement."),
        (SATURATED, 0.5, "locks", True,
         "MWCM on ext4 saturates from 2 cores on (40% of linear) because of a: 50.0% of the "
         "cores' time (certain); other processes disturbed the measurement."),
        (SATURATED, 0.02, "locks", True,
         f"MWCM on ext4 saturates from 2 cores on (40% of linear); {EXPLAINS}; the largest is a: "
         "2.0% of the cores' time (profiles: locks); other processes disturbed the measurement."),
        (SCALING, 0.0, "locks cpu", False,
         "MWCM on ext4 scales to 4 cores (96% of linear): no contention (profiles: locks, cpu)."),
        (SCALING, 0.0, "", False, f"MWCM on ext4 scales to 4 cores (96% of linear): {NOWHERE}"),
        (SATURATED, 0.0, "lockstat", False,
         f"MWCM on ext4 saturates from 2 cores on (40% of linear): {NOWHERE}"),
        (None, 0.02, "offcpu", False,
         f"{UNSEEN}; the largest is a: 2.0% of the cores' time (profiles: offcpu)."),
        (None, 0.0, "cpu", False,
         "MWCM on ext4 at 4 cores: no contention (profiles: cpu)."),
    ],
)  # fmt: skip
def test_sentences(
    points: Curve | None, share: float, profiles: str, disturbed: bool, sentence: str
) -> None:
    found = diagnosed(*([suspect("a", share)] if share else []))
    found.profiles, found.disturbed = dict.fromkeys(profiles.split(), 1), disturbed
    assert judge_point(found, points).sentence == sentence


def test_a_small_share_is_no_cause() -> None:
    found = judge_point(diagnosed(suspect("a", 0.03)), SATURATED)
    assert found.cause is None
    assert "the largest is a: 3.0%" in found.sentence


def test_a_scaling_curve_without_suspects_has_no_contention() -> None:
    sentence = judge_point(diagnosed(suspect("a", 0.004)), SCALING).sentence
    assert "scales to 4 cores (96% of linear): no contention" in sentence


def test_without_a_cpu_profile_contention_is_not_ruled_out() -> None:
    triage = diagnosed()
    assert "no contention" in judge_point(triage, None).sentence
    del triage.profiles["cpu"]
    assert "without a cpu profile" in judge_point(triage, None).sentence


def test_from_lock_stat_alone_nothing_is_judged() -> None:
    judgement = judge_point(Triage(key(4), [], {"lockstat": 2}, {}), None)
    assert "no contention" not in judgement.sentence and "no lock" not in judgement.sentence
    assert "no profile" in judgement.sentence


def test_a_shared_counter_counts_by_its_growth_only() -> None:
    now = diagnosed(suspect("refcount", 0.4, COUNTER, By.STACK), suspect("disk", 0.3, WAIT))
    before = diagnosed(suspect("refcount", 0.1, COUNTER, By.STACK), suspect("disk", 0.3, WAIT))
    assert [s.name.object for s in suspects_of(now, before)] == ["refcount"]
    assert [s.name.object for s in suspects_of(now, None)] == ["disk"]
    assert suspects_of(before, before) == []
