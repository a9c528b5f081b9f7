# SPDX-License-Identifier: GPL-2.0-only
"""Writes the history as a directory of pages: all steps, all series, all runs.

The pages load only the style, the scripts and the charting library next to them, so they can be
opened from a disk, a CI artefact or any web server.
"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from fscale.analysis.compare.wording import change
from fscale.analysis.history import index
from fscale.analysis.history.site import charts
from fscale.analysis.history.site.arrange import History, SeriesPage
from fscale.analysis.history.steps import FEWEST_RUNS
from fscale.analysis.history.trend import trends
from fscale.analysis.report.render import read, render, stylesheet
from fscale.analysis.vega import library
from fscale.model.errors import FscaleError
from fscale.model.files import Folder

SCRIPTS = {
    "page.js": ("report.js",),
    "overview.js": ("history/overview.js",),
    "series.js": ("charts/points.js", "history/series.js"),
}


def write(
    connection: sqlite3.Connection,
    out_dir: Path,
    metric: str,
    margin: float,
    problems: Sequence[str] = (),
) -> Path:
    """Write the site of all runs in the index; `problems` lists those left out, and why.

    Returns:
        The path of index.html.

    Raises:
        FscaleError: there is no run, no run has this metric, or `out_dir` cannot be written.
    """
    runs = index.runs(connection)
    if not runs:
        raise FscaleError(
            "there is no run to show; index runs with `fscale history add DIR`, or give the "
            "directory that contains them"
        )
    every_trend = trends(connection, metric, margin=margin)
    if not every_trend:
        raise FscaleError(
            f"no run has a figure of the metric {metric} outside of `fscale ab`, whose sides have "
            "no history; choose another metric or index other runs"
        )
    history = History(runs, every_trend, metric)
    folder = Folder(out_dir)
    try:
        _write_shared(folder)
        for page in history.pages:
            folder.write(f"series/{page.file}", _series(history, page))
        return folder.write("index.html", _overview(history, margin, problems))
    except OSError as error:
        raise FscaleError(
            f"cannot write the site to {out_dir}: {error.strerror}; give a directory that you can "
            "write to"
        ) from error


def _write_shared(folder: Folder) -> None:
    folder.write("style.css", stylesheet() + read("history/history.css"))
    folder.write("vega.js", library())
    for name, parts in SCRIPTS.items():
        folder.write(name, "\n".join(read(part) for part in parts))


def _overview(history: History, margin: float, problems: Sequence[str]) -> Markup:
    return render(
        "history/index.html.j2",
        history=history,
        margin=margin,
        change=change,
        shown=charts.shown,
        problems=problems,
        fewest=FEWEST_RUNS,
        sparkline=charts.sparkline,
    )


def _series(history: History, page: SeriesPage) -> Markup:
    panels = [(trend, charts.specification(page, trend)) for trend in page.trends]
    return render(
        "history/series.html.j2",
        history=history,
        page=page,
        panels=[
            (trend, spec, Markup(charts.still(spec, f"cores-{trend.cores}")))
            for trend, spec in panels
        ],
        fewest=FEWEST_RUNS,
        change=change,
        shown=charts.shown,
        unit=charts.unit(page.trends[0]),
    )
