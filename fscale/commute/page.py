# SPDX-License-Identifier: GPL-2.0-only
"""The report of results of `fscale commute`: a page that needs no other file and no network."""

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from fscale.analysis.report.layout import content_security_policy
from fscale.analysis.report.render import read, render, stylesheet
from fscale.analysis.report.section import Section
from fscale.analysis.style import speedup_colours
from fscale.commute.compare import compare, summary, table
from fscale.commute.matrix import Matrix, PairCount, sentence
from fscale.commute.posix import CALLS
from fscale.commute.store import Store
from fscale.model.errors import FscaleError
from fscale.model.tables import Table

MOST_OBJECTS = 30


@dataclass(frozen=True)
class _Square:
    """A pair of calls in the heat map."""

    count: PairCount
    colours: tuple[str, str]


def page(stores: Mapping[str, Store]) -> str:
    """Draw the matrices of results, by their labels, and what changed from the first to others.

    Raises:
        FscaleError: a result cannot be read.
    """
    style, scripts = stylesheet(), [read("report.js")]
    named = [
        (f"{label}: " * (len(stores) > 1), of)
        for label, store in stores.items()
        for of in store.load_matrices()
    ]
    drawn = {"Which calls scale": render("sections/shares.html.j2", named=named)}
    first, *others = stores
    for label in others:
        drawn[f"{label} against {first}"] = _changes(stores[first], stores[label])
    for label, of in named:
        drawn[f"{label}{of.filesystem} on {of.kernel}"] = _matrix(of)
    return render(
        "report.html.j2",
        heading="Which calls conflict?",
        title=", ".join(stores),
        simulated=True,
        sections=[
            (Section(title, f"part{number}", lambda _: None), html)
            for number, (title, html) in enumerate(drawn.items(), 1)
        ],
        policy=content_security_policy(style, scripts),
        style=style,
        charts=None,
        scripts=scripts,
    )


def _changes(base: Store, new: Store) -> Markup:
    compared: list[tuple[str, Table | None]]
    try:
        compared = [(summary(one), table(one)) for one in compare(base, new).compared]
    except FscaleError as error:
        compared = [(f"They are not compared: {error}", None)]
    return render("sections/conflicting.html.j2", compared=compared)


def _matrix(of: Matrix) -> Markup:
    squares = {
        count.calls: _Square(count, speedup_colours(2 * count.free / count.tests - 1))
        for count in of.pairs
    }
    names = [name for name in CALLS if any(name in pair for pair in squares)]
    return render(
        "sections/conflicts.html.j2",
        summary=sentence(of),
        names=names,
        rows=[(name, [squares.get((other, name)) for other in names]) for name in names],
        scale=[(share, speedup_colours(2 * share / 100 - 1)) for share in range(0, 101, 25)],
        spoilers=of.spoilers[:MOST_OBJECTS],
        left_out=max(0, len(of.spoilers) - MOST_OBJECTS),
    )
