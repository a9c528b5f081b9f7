# SPDX-License-Identifier: GPL-2.0-only
"""The comparison as Markdown for a pull request."""

import re
from collections.abc import Iterable

from fscale.analysis.compare import wording
from fscale.analysis.compare.model import Comparison, Health, Judgement, Policy

HEADER = (
    "| verdict | cell | metric | base | new | change | interval | remark |",
    "|---|---|---|--:|--:|--:|---|---|",
)
POLICIES: dict[Policy, str] = {"noisy": "", "counted": " gate, simulated"}
# A run's names must not mention users, add links or run anything in the pull request.
_MARKUP = re.compile(r"[\\`|]|!(?=\[)|\](?=[(\[])")


def _code(text: str) -> str:
    return "`" + text.replace("`", "'").replace("|", "/").replace("\n", " ") + "`"


def render(comparison: Comparison) -> str:
    """A heading, a table of changed and undecided cells, and a folded table of all."""
    shown = [j for j in wording.ordered(comparison) if j.verdict != "same"]
    lines = [
        f"### fscale{POLICIES[comparison.policy]} {wording.conclusion(comparison)}",
        "",
        wording.headline(comparison),
        "",
        f"{_code(comparison.base.label)} (base) against {_code(comparison.new.label)} (new)",
        "",
    ]
    if comparison.health:
        lines += [*(f"- {cell(_health(point))}" for point in comparison.health), ""]
    if shown:
        lines += [*_table(shown), ""]
    lines += [
        f"- {lock.kind}: {_code(lock.lock)} in {cell(lock.subject.name)}: "
        f"{wording.lock_change(lock)}"
        for lock in comparison.locks
    ]
    for name, missing in (("base", comparison.missing_in_base), ("new", comparison.missing_in_new)):
        lines += [f"- missing in {name}: {cell(m)}" for m in missing]
    lines += [f"- {cell(w)}" for w in comparison.warnings]
    lines += [
        "",
        f"<details><summary>All {len(comparison.judgements)} judgements</summary>",
        "",
        *_table(wording.ordered(comparison)),
        "",
        "</details>",
    ]
    return "\n".join(lines) + "\n"


def _health(point: Health) -> str:
    text = wording.health(point)
    kind = point.kind
    return text if kind == "mended" else text.replace(kind, f"**{kind}**", 1)


def _table(judgements: Iterable[Judgement]) -> list[str]:
    rows = [
        (
            f"**{j.verdict}**" if j.worse else j.verdict,
            wording.subject_text(j),
            j.metric,
            f"{wording.figure(j.metric, j.base.median)} {wording.spread(j.base)}",
            f"{wording.figure(j.metric, j.new.median)} {wording.spread(j.new)}",
            wording.change_of(j),
            wording.interval(j),
            wording.remark(j),
        )
        for j in judgements
    ]
    return [*HEADER, *(f"| {' | '.join(map(cell, row))} |" for row in rows)]


def cell(text: str) -> str:
    """Escape text, so that it holds no markup, no link and no end of a table's cell."""
    return _MARKUP.sub(r"\\\g<0>", text.replace("\n", " ")).replace("<", "&lt;")
