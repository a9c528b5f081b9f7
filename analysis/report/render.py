# SPDX-License-Identifier: GPL-2.0-only
"""Renders the templates of reports/, and formats their numbers."""

import json
from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from fscale.analysis.style import variables
from fscale.analysis.summary import Ratio
from fscale.model import paths
from fscale.model.files import printable
from fscale.model.words import plural

TEMPLATES = paths.PACKAGE / "reports"
PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def rate(value: float) -> str:
    """Three significant digits and a prefix: 4523000 -> "4.52 M"."""
    for factor, prefix in PREFIXES:
        if value >= 0.9995 * factor:
            return f"{_digits(value / factor)} {prefix}"
    return _digits(value)


def _digits(value: float) -> str:
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def times(value: float) -> str:
    """A ratio: 1.9731 -> "1.97x"."""
    return f"{_digits(value)}\u00d7"


def interval(ratio: Ratio) -> str:
    """A ratio's interval: "1.85-2.02"."""
    return f"{_digits(ratio.low)}\u2013{_digits(ratio.high)}"


def microseconds(seconds: float) -> str:
    """Seconds in microseconds: 2.21e-7 -> "0.221"."""
    micro = seconds * 1e6
    return f"{micro:.3f}" if micro < 1 else _digits(micro)


def span(seconds: float) -> str:
    """A duration: 3725 -> "1 h 2 min"."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def pretty(value: object) -> str:
    """Indented JSON."""
    return json.dumps(value, indent=2, default=str)


def _shown(value: object) -> object:
    return value if isinstance(value, Markup) or not isinstance(value, str) else printable(value)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    filters = (rate, times, interval, microseconds, span, plural, pretty)
    environment.filters.update({f.__name__: f for f in filters})
    return environment


def render(template: str, **values: Any) -> Markup:
    """Fill in `template` of reports/; strings are escaped unless they are Markup."""
    return Markup(_environment().get_template(template).render(**values))


@cache
def read(name: str) -> Markup:
    """A file of reports/ without changes; it is trusted, so it is Markup."""
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))


def stylesheet() -> Markup:
    """The style of all pages: CSS variables of the colours, and reports/report.css."""
    return render("theme.css.j2", colours=variables()) + read("report.css")
