# SPDX-License-Identifier: GPL-2.0-only
"""The comparison on a terminal."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fscale.analysis.compare import wording
from fscale.analysis.compare.model import WORSE, Comparison, Judgement

HEALTH_COLOURS = {"broken": "bold red", "lost": "bold red", "mended": "green"}
COLOURS = {
    **dict.fromkeys(WORSE, "bold red"),
    **dict.fromkeys(("faster", "less"), "green"),
    "undecided": "yellow",
    "same": "dim",
}


def render(comparison: Comparison, everything: bool = False) -> RenderableType:
    """The conclusion, a table of all verdicts but "same" (or of all), a line with the totals."""
    shown = [j for j in wording.ordered(comparison) if everything or j.verdict != "same"]
    parts: list[RenderableType] = [Text(f"fscale {wording.conclusion(comparison)}", "bold")]
    parts += [Text(f"warning: {w}", "yellow") for w in comparison.warnings]
    parts += [Text(wording.health(h), HEALTH_COLOURS[h.kind]) for h in comparison.health]
    if shown:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("verdict", "cell", "metric"):
            table.add_column(name)
        for name in ("BASE", "NEW", "change", "interval"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("n", no_wrap=True)
        table.add_column("remark")
        for judgement in shown:
            table.add_row(*_row(judgement), style=COLOURS[judgement.verdict])
        parts.append(table)
    parts += [
        Text(
            f"new bottleneck: {lock.lock} takes {lock.share:.0%} of the cores' time "
            f"in {lock.subject.name}",
            "bold red",
        )
        for lock in comparison.locks
    ]
    for name, missing in (("BASE", comparison.missing_in_base), ("NEW", comparison.missing_in_new)):
        if missing:
            parts.append(Text(f"missing in {name}: {'; '.join(missing)}", "yellow"))
    parts.append(Text(f"{wording.headline(comparison)} ({wording.rule(comparison)})", "bold"))
    return Group(*parts)


def _row(judgement: Judgement) -> list[str]:
    values = [
        f"{wording.figure(judgement.metric, side.median)} {wording.spread(side)}"
        for side in (judgement.base, judgement.new)
    ]
    return [
        judgement.verdict,
        wording.subject_text(judgement),
        judgement.metric,
        *values,
        wording.change(judgement.ratio),
        wording.interval(judgement),
        str(judgement.pairs or f"{len(judgement.base.values)}/{len(judgement.new.values)}"),
        wording.remark(judgement),
    ]
