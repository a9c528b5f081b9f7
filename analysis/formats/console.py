# SPDX-License-Identifier: GPL-2.0-only
"""The comparison on a terminal."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from fscale.analysis.compare import answer, wording
from fscale.analysis.compare.model import WORSE, Comparison, Judgement, LockFinding
from fscale.analysis.metrics import COUNT
from fscale.model.tables import Column, Row, Table

COLUMNS = (
    Column("verdict"),
    Column("cell"),
    Column("metric"),
    Column("BASE", 2, right=True),
    Column("NEW", 2, right=True),
    Column("change", 1, right=True),
    Column("interval", 3, right=True),
    Column("n", 4),
    Column("remark", 5, label=""),
)
HEALTH_COLOURS = {"broken": "bold red", "lost": "bold red", "mended": "green"}
COLOURS = {
    **dict.fromkeys(WORSE, "bold red"),
    **dict.fromkeys(("faster", "less"), "green"),
    "undecided": "yellow",
    "same": "dim",
}


def render(comparison: Comparison, everything: bool = False) -> RenderableType:
    """The answer, a table of all verdicts but "same" (or of all), a line with the totals."""
    shown = [j for j in wording.ordered(comparison) if everything or j.verdict != "same"]
    parts: list[RenderableType] = [Text(f"fscale: {answer.sentence(comparison)}", "bold")]
    parts += [Text(f"warning: {w}", "yellow") for w in comparison.warnings]
    parts += [Text(wording.health(h), HEALTH_COLOURS[h.kind]) for h in comparison.health]
    if shown:
        common = wording.in_common(j.subject for j in shown)
        rows = [Row(_cells(j, common, comparison.explaining(j)), COLOURS[j.verdict]) for j in shown]
        parts.append(Table(COLUMNS, rows))
        if common:
            parts.append(Text(f"all cells: {wording.place(common)}"))
    parts += [
        Text(f"{wording.lock(lock)} in {lock.subject.name}", "bold")
        for lock in comparison.other_locks
    ]
    for name, missing in (("BASE", comparison.missing_in_base), ("NEW", comparison.missing_in_new)):
        if missing:
            parts.append(Text(f"missing in {name}: {'; '.join(missing)}", "yellow"))
    parts.append(Text(f"{wording.headline(comparison)} ({wording.rule(comparison)})", "bold"))
    return Group(*parts)


def _cells(judgement: Judgement, common: Sequence[str], locks: Sequence[LockFinding]) -> list[str]:
    base, new = (
        f"{wording.figure(judgement.metric, side.median)} {wording.spread(side)}".rstrip()
        for side in (judgement.base, judgement.new)
    )
    return [
        judgement.verdict,
        wording.where(judgement.subject, common=common),
        judgement.metric.removeprefix(COUNT),
        base,
        new,
        wording.change_of(judgement),
        wording.interval(judgement),
        str(judgement.pairs or f"{len(judgement.base.values)}/{len(judgement.new.values)}"),
        wording.remark(judgement, locks),
    ]
