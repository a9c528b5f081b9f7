# SPDX-License-Identifier: GPL-2.0-only
"""Renders the templates of reports/."""

import json
from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from fscale.analysis.numbers import interval, microseconds, rate, span, times
from fscale.analysis.style import variables
from fscale.model import paths
from fscale.model.files import printable
from fscale.model.words import plural

TEMPLATES = paths.PACKAGE / "reports"


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
