# SPDX-License-Identifier: GPL-2.0-only
"""Locks whose contention changed from BASE's profiles to NEW's."""

from fscale.analysis.compare.model import LockFinding, Subject
from fscale.analysis.compare.pairs import subject_of
from fscale.analysis.diagnosis.run import profiled
from fscale.analysis.diagnosis.triage import triage
from fscale.analysis.diagnosis.verdict import BLAMED_FROM, MENTIONED_FROM
from fscale.analysis.reader import Results
from fscale.model.files import printable

CLEAR_PART = 0.2  # of the larger share

Shares = dict[Subject, dict[str, float]]


def shares(results: Results) -> Shares:
    """The share of the cores' time that each object takes, for each profiled point."""
    by_subject: Shares = {}
    for cells in profiled(results).values():
        good = [c for c in cells if c.status == "ok"]
        if good:
            objects = by_subject.setdefault(subject_of(good[0].key), {})
            for suspect in triage(results.path, good).suspects:
                name = suspect.name.object
                objects[name] = objects.get(name, 0.0) + suspect.share
    return by_subject


def changed_locks(base: Shares, new: Shares) -> list[LockFinding]:
    """Objects whose share of the cores' time differs clearly, at points profiled on both sides.

    The larger share is 5% or more; the smaller one is below 1%, or lower by 5% of the cores' time
    and by a fifth of the larger one, because a profile is of one repetition.
    """
    found = []
    for subject in new.keys() & base.keys():
        for name in sorted(new[subject].keys() | base[subject].keys()):
            before, after = (side[subject].get(name, 0.0) for side in (base, new))
            low, high = sorted((before, after))
            clear = low < MENTIONED_FROM or high - low >= max(BLAMED_FROM, CLEAR_PART * high)
            if high >= BLAMED_FROM and clear:
                found.append(
                    LockFinding(
                        subject=subject, lock=printable(name), share=after, base_share=before
                    )
                )
    return sorted(found, key=lambda lock: -abs(lock.share - lock.base_share))
