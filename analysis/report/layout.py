# SPDX-License-Identifier: GPL-2.0-only
"""The page around the sections: style, scripts and their data, Content Security Policy."""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup

from fscale.analysis.report import interactive
from fscale.analysis.report.render import read, render, stylesheet
from fscale.analysis.report.section import Report, Section
from fscale.analysis.vega import library


def page(
    report: Report,
    heading: str,
    title: str,
    sections: Iterable[tuple[Section, str | None]],
    *,
    ratios: Sequence[dict[str, Any]] = (),
    diagnosed: bool = True,
) -> str:
    """A page that needs no other file and no network.

    `sections`: each with its HTML, or None to leave it out. `ratios`: figures of a comparison
    (`fscale.analysis.report.comparison_page`). `diagnosed`: one section has the diagnosis.
    """
    style = stylesheet()
    scripts = [read("report.js")]
    if report.points:
        scripts += [library(), interactive.scripts()]
    return render(
        "report.html.j2",
        heading=heading,
        title=title,
        simulated=all(m.results.run.machine.simulated for m in report.members),
        sections=[(section, Markup(html)) for section, html in sections if html is not None],
        policy=content_security_policy(style, scripts),
        style=style,
        charts=interactive.data(report, diagnosed) if report.points else None,
        specification=interactive.specification(),
        ratios=ratios,
        ratio_specification=interactive.specification("ratios"),
        scripts=scripts,
    )


def content_security_policy(style: str, scripts: Iterable[str]) -> Markup:
    """A Content Security Policy, which limits what injected markup could do.

    It allows only these scripts and styles, no `eval`, and no loading of resources. It
    allows style attributes, which drawings need. Frames, which hold flame graphs, inherit it.
    """
    allowed = " ".join(_digest(script) for script in scripts)
    return Markup(
        f"default-src 'none'; script-src {allowed}; style-src-elem {_digest(style)}; "
        "style-src-attr 'unsafe-inline'; img-src data:; frame-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
