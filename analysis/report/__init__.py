# SPDX-License-Identifier: GPL-2.0-only
"""Writes the report of a run: report.html, plots/*.pdf and *.svg, figures.csv and .json.

To add a section, add one line to `SECTIONS` (one run) and one to `OF_SEVERAL` (several runs); see
`fscale.analysis.report.section.Section`.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from fscale.analysis import sheets
from fscale.analysis.members import Member, NamedRun, open_members, refuse_many
from fscale.analysis.plotsettings import PlotSettings
from fscale.analysis.reader import load
from fscale.analysis.report import (
    answer,
    comparison_page,
    controls,
    diagnosis,
    drawings,
    headline,
    paper,
    partitions,
    runs,
    sidebyside,
    simulated,
    sweeps,
    tables,
)
from fscale.analysis.report.layout import page
from fscale.analysis.report.section import Report, Section
from fscale.analysis.tables import points
from fscale.analysis.tables.text import to_csv
from fscale.model.errors import FscaleError
from fscale.model.files import Folder

SECTIONS: list[Section] = [
    comparison_page.SECTION,
    headline.SECTION,
    drawings.CURVES,
    sweeps.SECTION,
    controls.SECTION,
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

OF_SEVERAL: list[Section] = [
    runs.SECTION,
    sidebyside.SECTION,
    answer.SECTION,
    drawings.CURVES,
    sweeps.SECTION,
    runs.each(controls.SECTION),
    drawings.CPU,
    paper.SECTION,
    runs.each(simulated.SECTION),
    runs.each(diagnosis.SECTION),
    runs.each(partitions.PARTITIONS),
    tables.FIGURES,
    runs.each(tables.CELLS),
    runs.each(tables.MACHINE),
    runs.each(tables.WARNINGS),
    runs.each(tables.REPRODUCE),
]


def build(
    run_dir: Path,
    out_dir: Path | None = None,
    *,
    paper: bool = False,
    plots: PlotSettings | None = None,
) -> Path:
    """Write the report of the run in `run_dir` to `out_dir` (default: beside the results).

    `paper` compares the curves with FxMark's paper. With `plots`, PDF and SVG files are written,
    too, which takes as long again as the page.

    Returns:
        The path of report.html, which needs no other file and no network.

    Raises:
        FscaleError: `run_dir` contains no readable run, or `out_dir` cannot be written.
    """
    return _write(Report((Member(load(run_dir)),), out_dir or run_dir, paper), plots)


def build_several(
    named_runs: Sequence[NamedRun],
    out_dir: Path,
    *,
    paper: bool = False,
    plots: PlotSettings | None = None,
    allow: tuple[str, ...] = (),
) -> Path:
    """Write one report of several runs to `out_dir`, and return the path of report.html.

    `allow`: differences despite which the runs may be compared (`--allow-different`).

    Raises:
        FscaleError: as `build`; also if the runs cannot be told apart, or if `out_dir` is the
            directory of one of them, whose own report would be overwritten.
    """
    if out_dir.resolve() in [one.path.resolve() for one in named_runs]:
        raise FscaleError(
            f"{out_dir} is one of the runs, and its own report would be overwritten; give another "
            "--output"
        )
    members = open_members(named_runs)
    refuse_many(members)
    return _write(Report(members, out_dir, paper, allow), plots)


def _write(report: Report, plots: PlotSettings | None) -> Path:
    folder = Folder(report.out_dir)
    try:
        folder.write("figures.csv", to_csv(points.COLUMNS, report.figures))
        folder.write("figures.json", _figures_json(report))
        if plots:
            sheets.save(report.pages, report.lines, folder, plots)
        path = folder.write("report.html", _html(report))
    except OSError as error:
        raise FscaleError(
            f"cannot write the report to {report.out_dir}: {error.strerror}; "
            "give a directory that you may write to"
        ) from error
    return path


def _figures_json(report: Report) -> str:
    return json.dumps({"schema": 1, "figures": report.figures}, indent=1) + "\n"


def _html(report: Report) -> str:
    sections = OF_SEVERAL if report.several else SECTIONS
    return page(
        report,
        "File-system scalability",
        " | ".join(m.label or m.results.run.id for m in report.members),
        [(section, section.build(report)) for section in sections],
    )
