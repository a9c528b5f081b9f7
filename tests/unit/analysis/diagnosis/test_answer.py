# SPDX-License-Identifier: GPL-2.0-only
"""The sentence that says what limits the curves of a run."""

from typing import Any

import pytest

from fscale.analysis.diagnosis.answer import sentence, tops
from fscale.analysis.diagnosis.naming import By, Name
from fscale.analysis.diagnosis.run import Diagnosed
from fscale.analysis.diagnosis.triage import LOCK, Suspect, Triage
from fscale.analysis.diagnosis.verdict import Confidence, CurveVerdict, Shape
from tests.support import synthetic


def point(
    where: str,
    name: str = "",
    *,
    cores: int = 8,
    share: float = 0.3,
    shape: Shape = Shape.SATURATES,
    confidence: Confidence = Confidence.LIKELY,
    **more: Any,
) -> Diagnosed:
    workload, filesystem = where.split()
    key = synthetic.key(
        1,
        workload=workload,
        filesystem=filesystem,
        cores=cores,
        profile="locks",
        **more,
    )
    cause = Suspect(Name(name, None, By.ADDRESS), LOCK, "mutex", blocked=share) if name else None
    judged = CurveVerdict(shape, cores, 2, 0.5, cause, confidence if cause else None, "")
    return Diagnosed(
        Triage(key, [cause] if cause else [], {"locks": 1}, {}),
        None,
        judged,
        [cause] if cause else [],
    )


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ([], ""),
        ([point("MWCM ext4", "a->lock")], "a->lock limits MWCM (ext4)"),
        (
            [point("MWCM ext4", "a"), point("MWUM xfs", "b"), point("MWCM xfs", "b")],
            "b limits MWUM (xfs), MWCM (xfs); a limits MWCM (ext4)",
        ),
        (
            [point("MWCM ext4", "a"), point("MWUM xfs", "b", share=0.5)],
            "b limits MWUM (xfs); a limits MWCM (ext4)",
        ),
        (
            [point("MWCM ext4", "a", confidence=Confidence.POSSIBLE)],
            "a possibly limits MWCM (ext4)",
        ),
        (
            [
                point("DRBL xfs", "a", shape=Shape.SCALES),
                point("MWCM xfs"),
                point("DRBL ext4", "a"),
            ],
            "a limits DRBL (ext4); no object explains MWCM (xfs); what scales: DRBL (xfs)",
        ),
        (
            [point(f"W{n} ext4", "a") for n in range(6)],
            "a limits W0 (ext4), W1 (ext4), W2 (ext4), W3 (ext4) and 2 more workloads",
        ),
        (
            [point(f"W{n} ext4", f"l{n}", share=0.9 - n / 10) for n in range(5)],
            "l0 limits W0 (ext4); l1 limits W1 (ext4); l2 limits W2 (ext4); 2 more objects limit 2 "
            "curves",
        ),
        (
            [point(f"W{n} ext4", f"l{n}", share=0.9 - n / 10) for n in range(4)],
            "l0 limits W0 (ext4); l1 limits W1 (ext4); l2 limits W2 (ext4); 1 more object limits 1 "
            "curve",
        ),
        (
            [
                point("DWAL ext4", "a", options={"block": 4096}),
                point("DWAL ext4", "a", options={"block": 65536}, shape=Shape.SCALES),
            ],
            "a limits DWAL block=4096 (ext4); what scales: DWAL block=65536 (ext4)",
        ),
        (
            [
                point("DRBL ext4", "a", mode="direct"),
                point("DRBL ext4", "a", medium="disk", shape=Shape.SCALES),
            ],
            "a limits DRBL (ext4 ram direct); what scales: DRBL (ext4 disk buffered)",
        ),
    ],
)
def test_the_commonest_object_comes_first(points: list[Diagnosed], said: str) -> None:
    assert sentence(points) == said


def test_only_the_most_cores_of_a_curve_speak() -> None:
    eight, one = point("MWCM ext4", "many"), point("MWCM ext4", "few", cores=1)
    assert tops([eight, one]) == [eight]
    assert sentence([one, eight]) == "many limits MWCM (ext4)"
