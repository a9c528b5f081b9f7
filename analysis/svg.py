# SPDX-License-Identifier: GPL-2.0-only
"""Turns a figure into an SVG element that is embedded in a page and follows its theme."""

import io
import re
from html import escape

from matplotlib.figure import Figure

from fscale.analysis.style import variables

_ROOT = re.compile(r"<svg .*?viewBox=\"([^\"]+)\".*?>", re.DOTALL)
_HEAD = re.compile(r"<metadata>.*?</metadata>\s*<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)
_FONT = re.compile(r"font-family: [^;\"]*")
_COLOUR = re.compile("|".join(c.light for c in variables().values()))
_IDS = re.compile(r'(\bid="|href="#|url\(#)')
_NAMES = {colour.light: f"var(--{name})" for name, colour in variables().items()}


def raw(figure: Figure) -> str:
    """The figure as matplotlib writes it, without a date, on a transparent background."""
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return out.getvalue()


def inline(svg: str, prefix: str, label: str) -> str:
    """Make an SVG of matplotlib's part of a page.

    Its colours become the page's CSS variables, its font the page's, its ids start with `prefix`
    (unique in the page), its size follows the column, and screen readers read `label`.
    """
    body = svg[svg.index("<svg") :]
    body = _HEAD.sub("", body, count=1)
    body = _COLOUR.sub(lambda m: _NAMES[m.group()], body)
    body = _FONT.sub("font-family: var(--font)", body)
    body = _IDS.sub(rf"\g<1>{prefix}-", body)
    label = escape(label, quote=True)
    return _ROOT.sub(
        lambda m: f'<svg viewBox="{m[1]}" role="img" aria-label="{label}" class="plot">',
        body,
        count=1,
    )
