# SPDX-License-Identifier: GPL-2.0-only
"""Writes the report of a run: report.html, plots/*.pdf and *.svg, figures.csv and .json.

A section is added by one line in `SECTIONS`; see `analysis.report.section.Section`.
"""

from pathlib import Path

from markupsafe import Markup

from analysis import export, figures
from analysis.reader import load
from analysis.report import (
    comparison,
    diagnosis,
    drawings,
    headline,
    interactive,
    matrix,
    paper,
    partitions,
    simulated,
    tables,
)
from analysis.report.policy import policy
from analysis.report.render import read, render, stylesheet
from analysis.report.section import Report, Section
from fscale.model.errors import FscaleError
from fscale.model.files import Folder

SECTIONS: list[Section] = [
    headline.SECTION,
    comparison.SECTION,
    matrix.SECTION,
    drawings.CURVES,
    drawings.CPU,
    paper.SECTION,
    simulated.SECTION,
    diagnosis.SECTION,
    partitions.PARTITIONS,
    tables.FIGURES,
    tables.CELLS,
    tables.MACHINE,
    tables.COMMANDS,
    tables.WARNINGS,
    tables.REPRODUCE,
]


def build(run_dir: Path, out_dir: Path | None = None, *, paper: bool = False) -> Path:
    """Write the report of the run in `run_dir` to `out_dir` (default: beside the results).

    `paper` lays FxMark's paper beside the curves.

    Returns:
        The path of report.html, which needs no other file and no network.

    Raises:
        FscaleError: `run_dir` holds no readable run, or `out_dir` cannot be written.
    """
    out_dir = out_dir or run_dir
    report = Report(load(run_dir), out_dir, paper)
    folder = Folder(out_dir)
    try:
        export.write(report.figures, folder)
        for page in report.pages:
            directory = f"plots/{page.slug}" if len(report.pages) > 1 else "plots"
            figures.save_page(page, report.lines, folder, directory)
        path = folder.write("report.html", _html(report))
    except OSError as error:
        raise FscaleError(
            f"cannot write the report to {out_dir}: {error.strerror}; "
            "give a directory that you may write to"
        ) from error
    return path


def _html(report: Report) -> str:
    built = [(section, section.build(report)) for section in SECTIONS]
    style = stylesheet()
    scripts = [read("report.js")]
    if report.points:
        scripts += [interactive.library(), interactive.scripts()]
    return render(
        "report.html.j2",
        run=report.results.run,
        sections=[(section, Markup(html)) for section, html in built if html is not None],
        policy=policy(style, scripts),
        style=style,
        charts=interactive.data(report) if report.points else None,
        specification=interactive.specification(),
        scripts=scripts,
    )
