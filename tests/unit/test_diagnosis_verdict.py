# SPDX-License-Identifier: GPL-2.0-only
"""Verdicts follow from the curve and the profiles, and say so."""

import pytest

from analysis.curves import Curve
from analysis.diagnosis.naming import By, Name
from analysis.diagnosis.triage import COUNTER, LOCK, WAIT, Suspect, Triage
from analysis.diagnosis.verdict import Confidence, Shape, judge_point, shape_of, suspects_of
from analysis.summary import Point
from fscale.model.results import Cell, CellKey


def key(cores: int, repetition: int = 1, profile: str | None = None) -> CellKey:
    return CellKey(
        workload="MWCM", filesystem="ext4", medium="ram", mode="buffered", cores=cores,
        repetition=repetition, duration=1.0, profile=profile,
    )  # fmt: skip


def curve(**rates: list[float]) -> Curve:
    points = []
    for name, values in rates.items():
        cores = int(name[1:])
        cells = tuple(
            Cell(id=key(cores, n).id, key=key(cores, n), status="ok", started="", wall_seconds=1,
                 ops=v, seconds=1, ops_per_second=v)
            for n, v in enumerate(values, 1)
        )  # fmt: skip
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
        (SCALING, (Shape.SCALES, None)),
        (SATURATED, (Shape.SATURATES, 2)),
        (COLLAPSED, (Shape.COLLAPSES, 4)),
        (curve(c2=[1.0]), (Shape.UNKNOWN, None)),
        (None, (Shape.UNKNOWN, None)),
    ],
)
def test_shapes(points: Curve | None, expected: tuple[Shape, int | None]) -> None:
    assert shape_of(points)[:2] == expected


def test_the_cause_is_named_with_its_share_and_confidence() -> None:
    found = judge_point(diagnosed(suspect("i_rwsem", 0.5), suspect("other", 0.02)), COLLAPSED)
    assert found.confidence is Confidence.CERTAIN
    assert found.sentence == (
        "MWCM on ext4 collapses from 4 cores on (20% of linear) because of i_rwsem: 50.0% of the "
        "cores' time (certain)."
    )


@pytest.mark.parametrize(
    ("suspects", "expected"),
    [
        ([suspect("a", 0.5, by=By.STACK)], Confidence.LIKELY),
        ([suspect("a", 0.5), suspect("b", 0.4)], Confidence.LIKELY),
        ([suspect("a", 0.1)], Confidence.LIKELY),
        ([suspect("a", 0.1), suspect("b", 0.09)], Confidence.POSSIBLE),
    ],
)
def test_confidence_follows_from_the_data(suspects: list[Suspect], expected: Confidence) -> None:
    assert judge_point(diagnosed(*suspects), COLLAPSED).confidence is expected


def test_a_small_share_is_no_cause() -> None:
    found = judge_point(diagnosed(suspect("a", 0.03)), SATURATED)
    assert found.cause is None
    assert "no lock, wait or shared counter explains it; the largest is a: 3.0%" in found.sentence


def test_a_scaling_curve_without_suspects_has_no_contention() -> None:
    sentence = judge_point(diagnosed(suspect("a", 0.004)), SCALING).sentence
    assert "scales to 4 cores (96% of linear): no contention" in sentence


def test_without_a_cpu_profile_contention_is_not_ruled_out() -> None:
    triage = diagnosed()
    assert "no contention" in judge_point(triage, None).sentence
    del triage.profiles["cpu"]
    assert "only a cpu profile shows spinning" in judge_point(triage, None).sentence


def test_from_lock_stat_alone_nothing_is_judged() -> None:
    judgement = judge_point(Triage(key(4), [], {"lockstat": 2}, {}), None)
    assert "no contention" not in judgement.sentence and "no lock" not in judgement.sentence
    assert "no profile shows what its cores wait for" in judgement.sentence


def test_a_shared_counter_counts_by_its_growth_only() -> None:
    now = diagnosed(suspect("refcount", 0.4, COUNTER, By.STACK), suspect("disk", 0.3, WAIT))
    before = diagnosed(suspect("refcount", 0.1, COUNTER, By.STACK), suspect("disk", 0.3, WAIT))
    assert [s.name.object for s in suspects_of(now, before)] == ["refcount"]
    assert [s.name.object for s in suspects_of(now, None)] == ["disk"]
    assert suspects_of(before, before) == []
