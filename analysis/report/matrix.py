# SPDX-License-Identifier: GPL-2.0-only
"""The matrix of FxMark's Figure 13 as an accessible table with links."""

from dataclasses import dataclass

from fscale.analysis.curves import Curve, Page
from fscale.analysis.report.render import render
from fscale.analysis.report.section import Report, Section
from fscale.analysis.style import speedup_colours


@dataclass(frozen=True)
class Square:
    """One cell of the matrix; colours are None where there is no speed-up."""

    curve: Curve
    colours: tuple[str, str] | None


def _square(curve: Curve | None) -> Square | None:
    if curve is None:
        return None
    share = curve.share_of_linear
    return Square(curve, None if share is None else speedup_colours(share))


def _rows(page: Page) -> list[tuple[str, list[Square | None]]]:
    return [(name, [_square(panel.curve(name)) for panel in page.panels]) for name in page.names]


def _build(report: Report) -> str | None:
    pages = [(page, _rows(page)) for page in report.pages if len(page.cores) > 1]
    if not pages:
        return None
    return render(
        "sections/matrix.html.j2",
        report=report,
        pages=pages,
        scale=[speedup_colours(share / 2) for share in range(-2, 3)],
    )


SECTION = Section("Which points scale", "matrix", _build)
