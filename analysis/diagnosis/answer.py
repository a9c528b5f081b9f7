# SPDX-License-Identifier: GPL-2.0-only
"""What limits the curves of a run, in a sentence, for people who read nothing else."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from fscale.analysis.cells import marks
from fscale.analysis.diagnosis.run import Diagnosed, curve_key
from fscale.analysis.diagnosis.verdict import Confidence, Shape
from fscale.model.words import plural

OBJECTS = 3
WORKLOADS = 4


def tops(points: Iterable[Diagnosed]) -> list[Diagnosed]:
    """Of each curve the diagnosed point with the most cores, where contention is the highest."""
    found: dict[str, Diagnosed] = {}
    for point in points:
        curve = curve_key(point.key)
        if curve not in found or found[curve].key.cores < point.key.cores:
            found[curve] = point
    return list(found.values())


def sentence(points: Iterable[Diagnosed]) -> str:
    """Which object limits which curves, the commonest object first; empty without a point."""
    shown = tops(points)
    marked = zip(shown, marks([point.key for point in shown]), strict=True)
    places = {curve_key(p.key): " ".join((p.key.filesystem, *more)) for p, more in marked}
    limited: dict[str, list[Diagnosed]] = defaultdict(list)
    scaling, unexplained = [], []
    for point in shown:
        if point.judgement.shape is Shape.SCALES:
            scaling.append(point)
        elif cause := point.judgement.cause:
            limited[cause.name.object].append(point)
        else:
            unexplained.append(point)
    objects = sorted(limited.items(), key=lambda item: (-len(item[1]), -_share(item[1])))
    parts = [
        f"{name} {_verb(curves)} {_where(curves, places)}" for name, curves in objects[:OBJECTS]
    ]
    if rest := objects[OBJECTS:]:
        curves = sum(len(one) for _, one in rest)
        limit = "limits" if len(rest) == 1 else "limit"
        parts.append(f"{plural(len(rest), 'more object')} {limit} {plural(curves, 'curve')}")
    if unexplained:
        parts.append(f"no object explains {_where(unexplained, places)}")
    if scaling:
        parts.append(f"what scales: {_where(scaling, places)}")
    return "; ".join(parts)


def _share(points: Sequence[Diagnosed]) -> float:
    return max(p.judgement.cause.share for p in points if p.judgement.cause)


def _verb(points: Sequence[Diagnosed]) -> str:
    possible = all(p.judgement.confidence is Confidence.POSSIBLE for p in points)
    return "possibly limits" if possible else "limits"


def _where(points: Sequence[Diagnosed], places: Mapping[str, str]) -> str:
    """`MWCM (ext4, xfs), MWUM (xfs) and 2 more workloads`."""
    own: dict[str, dict[str, None]] = defaultdict(dict)
    for point in points:
        own[point.key.load][places[curve_key(point.key)]] = None
    named = [f"{load} ({', '.join(found)})" for load, found in own.items()]
    rest = len(named) - WORKLOADS
    more = f" and {plural(rest, 'more workload')}" if rest > 0 else ""
    return ", ".join(named[:WORKLOADS]) + more
