# SPDX-License-Identifier: GPL-2.0-only
"""Locks that became bottlenecks: contended in NEW's profiles and not in BASE's."""

from fscale.analysis.compare.model import LockFinding, Subject
from fscale.analysis.compare.pairs import subject_of
from fscale.analysis.diagnosis.run import profiled
from fscale.analysis.diagnosis.triage import triage
from fscale.analysis.diagnosis.verdict import BLAMED_FROM, MENTIONED_FROM
from fscale.analysis.reader import Results
from fscale.model.files import printable

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


def new_bottlenecks(base: Shares, new: Shares) -> list[LockFinding]:
    """Objects that take 5% of the cores' time or more and took less than 1% in BASE.

    Only points that were profiled on both sides can show one.
    """
    return [
        LockFinding(subject=subject, lock=printable(name), share=share, base_share=before)
        for subject in new.keys() & base.keys()
        for name, share in sorted(new[subject].items())
        if share >= BLAMED_FROM and (before := base[subject].get(name, 0.0)) < MENTIONED_FROM
    ]
