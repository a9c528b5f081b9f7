# SPDX-License-Identifier: GPL-2.0-only
"""A row for each object that a profiled point waits for."""

from collections.abc import Iterable
from dataclasses import dataclass

from fscale.analysis.diagnosis.run import Diagnosed, unprofiled
from fscale.analysis.diagnosis.triage import Suspect
from fscale.analysis.tables.column import PLACE, Column, Row, figure, make_row
from fscale.model.results import CellKey


@dataclass(frozen=True)
class Waited:
    """An object and the point that waits for it; `run` is the name of its run."""

    run: str
    point: Diagnosed
    suspect: Suspect

    @property
    def key(self) -> CellKey:
        """The key of the point without its profiler."""
        return unprofiled(self.point.key)

    @property
    def cause(self) -> bool:
        """Whether the verdict on the point names the object."""
        return self.suspect is self.point.judgement.cause


def rows(run: str, points: Iterable[Diagnosed]) -> list[Row]:
    """The rows of diagnosed points, the largest share of each point first."""
    return [
        make_row(COLUMNS, Waited(run, point, suspect))
        for point in points
        for suspect in point.triage.suspects
    ]


def _seconds(microseconds: float | None) -> float | None:
    return None if microseconds is None else microseconds / 1e6


def _confidence(waited: Waited) -> str | None:
    confidence = waited.point.judgement.confidence if waited.cause else None
    return confidence.value if confidence else None


COLUMNS: tuple[Column[Waited], ...] = (
    *PLACE,
    Column(
        "object",
        "string",
        "lock, or another object that is waited for",
        lambda w: w.suspect.name.object,
    ),
    Column(
        "scope",
        "string",
        "what has one of it: inode, file system, ...",
        lambda w: w.suspect.name.scope,
    ),
    Column("sort", "string", "lock, wait, shared counter, cache line", lambda w: w.suspect.sort),
    Column("kind", "string", "kind of the lock, or of the wait", lambda w: w.suspect.kind),
    figure(
        "share",
        "share of the cores' time, 0 to 1: `blocked` and `spinning`",
        lambda w: w.suspect.share,
    ),
    figure("blocked", "share that tracepoints or the scheduler show", lambda w: w.suspect.blocked),
    figure("spinning", "share that samples of the CPUs show", lambda w: w.suspect.spinning),
    Column("waits", "integer", "number of waits", lambda w: w.suspect.count),
    Column(
        "mean_seconds",
        "number",
        "mean length of a wait",
        lambda w: _seconds(w.suspect.mean_us),
        "s",
    ),
    Column("longest_seconds", "number", "longest wait", lambda w: _seconds(w.suspect.max_us), "s"),
    Column("named_by", "string", "evidence for the name", lambda w: w.suspect.evidence),
    Column("cause", "boolean", "true if the verdict on the point names it", lambda w: w.cause),
    Column("confidence", "string", "of a cause: certain, likely, possible", _confidence),
)
