# SPDX-License-Identifier: GPL-2.0-only
"""The verdict on a curve in one sentence: how it scales, what limits it, and the confidence."""

from dataclasses import dataclass
from enum import Enum

from fscale.analysis.curves import Curve
from fscale.analysis.diagnosis.naming import ADDRESSED
from fscale.analysis.diagnosis.triage import COUNTER, LOCK, Suspect, Triage
from fscale.analysis.findings import SCALES_FROM, Scaling, judge

MENTIONED_FROM = 0.01  # smallest share of the cores' time that is called contention
BLAMED_FROM = 0.05  # smallest share with which an object can be the cause
DOMINANT = 2.0  # a dominant suspect has this many times the share of the next one


class Shape(Enum):
    """How a curve behaves up to its last core count."""

    SCALES = "scales"
    SATURATES = "saturates"
    COLLAPSES = "collapses"
    UNKNOWN = "not known (no scored curve)"


class Confidence(Enum):
    """How well the data supports the cause; docs/design/diagnosis.md explains the levels."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


@dataclass(frozen=True)
class CurveVerdict:
    """The verdict on one curve at the core count of its profiles."""

    shape: Shape
    cores: int  # of the profiles
    since: int | None  # the first core count at which it does not scale
    efficiency: float | None  # throughput relative to linear, at the highest core count
    cause: Suspect | None
    confidence: Confidence | None
    sentence: str


def shape_of(curve: Curve | None) -> tuple[Shape, int | None, float | None]:
    """Shape, first bad core count, efficiency at the last one.

    A curve collapses if its last point lies clearly below its base or its peak, by more than the
    control, which shows what the machine itself loses. It scales if the
    last speed-up is at least 80% of linear. Otherwise it saturates.
    """
    if curve is None or curve.base is None or curve.top_speedup is None:
        return Shape.UNKNOWN, None, None
    base = curve.base
    efficiency = {
        p.key.cores: p.median / base.median / curve.linear_at(p) for p in curve.points[1:]
    }
    last = efficiency[curve.top.key.cores]
    kept = curve.machine_kept(curve.peak, curve.top)
    fallen = curve.peak is not curve.top and curve.top.spread.high < kept * curve.peak.spread.low
    if judge(curve.top_speedup, curve.linear, curve.most, curve.kept) is Scaling.FALLS or fallen:
        return Shape.COLLAPSES, min(n for n in efficiency if n > curve.peak.key.cores), last
    if last >= SCALES_FROM:
        return Shape.SCALES, None, last
    return Shape.SATURATES, next(n for n, e in efficiency.items() if e < SCALES_FROM), last


def suspects_of(triage: Triage, base: Triage | None) -> list[Suspect]:
    """The suspects that can explain lost throughput, by share.

    The functions of a shared counter take time even if nothing is shared, so only the growth since
    one core counts. Without a profile at one core it cannot be judged and is left out here (the
    triage lists it). Waits that a single worker has as well (for a disk) also count by growth.
    """
    before = {(s.sort, s.name.object): s.share for s in base.suspects} if base else {}
    suspects = []
    for suspect in triage.suspects:
        grown = suspect.share
        if suspect.sort != LOCK:
            if base is None and suspect.sort == COUNTER:
                continue
            grown -= before.get((suspect.sort, suspect.name.object), 0.0)
        if grown >= MENTIONED_FROM:
            suspects.append((grown, suspect))
    return [suspect for _, suspect in sorted(suspects, key=lambda item: -item[0])]


def confidence_of(cause: Suspect, others: list[Suspect], loss: float | None) -> Confidence:
    """The confidence: is the cause dominant, explains the loss, and is named by address?"""
    runner_up = max((s.share for s in others if s is not cause), default=0.0)
    dominant = cause.share >= DOMINANT * runner_up
    explains = loss is None or cause.share >= 0.5 * loss
    named = cause.by in ADDRESSED or cause.sort not in (LOCK, COUNTER)
    if dominant and explains and named:
        return Confidence.CERTAIN
    return Confidence.LIKELY if dominant or explains else Confidence.POSSIBLE


def judge_point(triage: Triage, curve: Curve | None, base: Triage | None = None) -> CurveVerdict:
    """The verdict on a curve, from the profiles at one core count (preferably the highest)."""
    shape, since, efficiency = shape_of(curve)
    candidates = suspects_of(triage, base)
    cause = candidates[0] if candidates and candidates[0].share >= BLAMED_FROM else None
    loss = None if efficiency is None else max(0.0, 1 - efficiency)
    confidence = confidence_of(cause, candidates, loss) if cause else None
    if triage.application and confidence is Confidence.CERTAIN:
        # A sleeping thread of an application leaves its CPU to another, so no time may be lost.
        confidence = Confidence.LIKELY
    cores = triage.key.cores
    return CurveVerdict(
        shape,
        cores,
        since,
        efficiency,
        cause,
        confidence,
        _sentence(triage, shape, since, efficiency, candidates, cause, confidence),
    )


def _sentence(
    triage: Triage,
    shape: Shape,
    since: int | None,
    efficiency: float | None,
    candidates: list[Suspect],
    cause: Suspect | None,
    confidence: Confidence | None,
) -> str:
    key = triage.key
    start = f"{key.load} on {key.filesystem}"
    linear = "" if efficiency is None else f" ({100 * efficiency:.0f}% of linear)"
    if shape is Shape.SCALES:
        start += f" scales to {key.cores} cores{linear}"
    elif shape is Shape.UNKNOWN:
        start += f" at {key.cores} cores"
    else:
        start += f" {shape.value} from {since} cores on{linear}"
    doubt = "; other processes disturbed the measurement" if triage.disturbed else ""
    if cause is None:
        seen = f"; the largest is {_share(candidates[0])}" if candidates else ""
        seen += f" (profiles: {', '.join(triage.profiles)}){doubt}"
        if not triage.sees_shares:
            return (
                f"{start}: no profile shows what its cores wait for; measure it with --profile "
                "locks,offcpu,cpu."
            )
        nameless = "cpu" in triage.nameless
        if nameless or (shape is Shape.UNKNOWN and not triage.sees_spinning):
            why = "because the cpu profile has no symbols" if nameless else "without a cpu profile"
            return f"{start}: no lock waits; spinning is not known {why}{seen}."
        if shape in (Shape.SCALES, Shape.UNKNOWN):
            return f"{start}: no contention{seen}."
        return f"{start}; no lock, wait or shared counter explains it{seen}."
    if shape in (Shape.SCALES, Shape.UNKNOWN):
        return f"{start}; contention on {_share(cause)}{doubt}."
    assert confidence is not None
    return f"{start} because of {_share(cause)} ({confidence.value}){doubt}."


def _share(suspect: Suspect) -> str:
    return f"{suspect.name.object}: {100 * suspect.share:.1f}% of the cores' time"
