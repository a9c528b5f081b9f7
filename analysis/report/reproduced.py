# SPDX-License-Identifier: GPL-2.0-only
"""The page of `fscale reproduce`: the claims of a paper, theirs and ours."""

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from fscale.analysis.paper.judge import Answer, Verdict, asked_first
from fscale.analysis.reader import Results
from fscale.analysis.report.layout import content_security_policy
from fscale.analysis.report.render import read, render, stylesheet
from fscale.analysis.report.section import Section
from fscale.model.paper import Paper


def counted(found: Sequence[Answer]) -> str:
    """How many answers of each kind: "holds: 2; cannot be asked here: 1"."""
    counts = Counter(answer.verdict for answer in found)
    return "; ".join(f"{v}: {counts[v]}" for v in get_args(Verdict) if counts[v])


def page(paper: Paper, found: Sequence[Answer], results: Results | None) -> str:
    """A page that needs no other file and no network."""
    style, scripts = stylesheet(), [read("report.js")]
    asked, others = asked_first(found)
    table = render(
        "sections/reproduced.html.j2",
        paper=paper,
        stand_ins=paper.stand_ins_of([one.question.claim for one in found]),
        asked=asked,
        others=others,
        counted=counted(found),
        run=results.run if results else None,
    )
    return render(
        "report.html.j2",
        heading="Does it hold here?",
        title=paper.title,
        simulated=results is not None and results.run.machine.simulated,
        sections=[(Section("Claims", "claims", lambda _: table), table)],
        policy=content_security_policy(style, scripts),
        style=style,
        charts=None,
        scripts=scripts,
    )
