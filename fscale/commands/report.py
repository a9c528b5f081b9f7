# SPDX-License-Identifier: GPL-2.0-only
"""`fscale report`: writes the report of a run, or one report of several runs."""

import gc
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fscale.commands.options.bundle import bundle
from fscale.commands.options.given import refuse_given
from fscale.commands.options.kinds import output_directory
from fscale.commands.options.plots import PlotOptions
from fscale.commands.options.shared import AllowOption
from fscale.model.errors import FscaleError
from fscale.model.files import Folder
from fscale.model.store import has_conflicts, say_no_run

if TYPE_CHECKING:
    from fscale.analysis.members import NamedRun

_OF_PLOTS = {field.name for field in fields(PlotOptions)}
_OF_RUNS = {"paper", "plots", "allow_different"} | _OF_PLOTS

_EPILOG = """
More examples:

    fscale report results/sim --output paper/ --paper
    fscale report results/today --plot-width 3.33in --plot-per workload --font STIXGeneral
    fscale report results/6.1 results/6.12 results/6.18 --output results/kernels
    fscale report results/v1=stock results/v2=patched --output results/both
    fscale report results/commute    # of `fscale commute`: the matrices
    fscale report a b --output c --allow-different filesystems.ext4.mount_options
"""


@bundle("drawn", PlotOptions)
def _report(
    context: typer.Context,
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="Results directories, each as DIR or DIR=LABEL; several are drawn in one report. "
            "The default label is what differs between the runs, such as the kernel.",
        ),
    ],
    output: Annotated[
        Path | None,
        output_directory(
            "Directory to write to; required for several runs. Default: the run's own."
        ),
    ] = None,
    paper: Annotated[
        bool,
        typer.Option("--paper", help="Show next to the curves what the FxMark paper reports."),
    ] = False,
    plots: Annotated[
        bool,
        typer.Option(
            help="--no-plots: write no PDF and SVG files, which takes half the time.",
        ),
    ] = True,
    allow_different: AllowOption = None,
    *,
    drawn: PlotOptions,
) -> None:
    """Write the report of a run: report.html, and its plots as PDF and SVG files.

    Example: fscale report results/today

    Several runs, such as those of several kernels, are drawn in the same plots, and a table
    compares each with the first by the rules of `fscale compare`. The command only reads results:
    it works on any machine, and while the run is still in progress.
    """
    from fscale.analysis.members import NamedRun  # noqa: PLC0415 - imports the statistics

    asked = [NamedRun.parse(text) for text in runs]
    if any(has_conflicts(one.path) for one in asked):
        refuse_given(context, _OF_RUNS, "results of `fscale commute`")
        typer.echo(_report_conflicts(asked, output))
        return
    for one in asked:
        if not (one.path / "run.json").exists():
            raise FscaleError(say_no_run(one.path))
    # Drawing creates millions of objects that stay alive: looking for cycles among them after every
    # 700 took a seventh of the time.
    gc.set_threshold(200_000, 20, 100)
    from fscale.analysis.report import build, build_several  # noqa: PLC0415 - matplotlib takes a second

    if not plots:
        refuse_given(context, _OF_PLOTS, "--no-plots")
    settings = drawn.settings if plots else None

    if len(asked) > 1:
        if output is None:
            raise FscaleError("a report of several runs needs --output DIR")
        allow = tuple(allow_different or ())
        typer.echo(build_several(asked, output, paper=paper, plots=settings, allow=allow))
    elif asked[0].label is not None or allow_different:
        raise FscaleError("labels and --allow-different need several runs; give a second run")
    else:
        typer.echo(build(asked[0].path, output, paper=paper, plots=settings))


def _report_conflicts(asked: Sequence["NamedRun"], output: Path | None) -> Path:
    from fscale.commute.page import page  # noqa: PLC0415 - imports matplotlib
    from fscale.commute.store import open_named  # noqa: PLC0415

    if len(asked) > 1 and output is None:
        raise FscaleError("a report of several results needs --output DIR")
    return Folder(output or asked[0].path).write("report.html", page(open_named(asked)))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report", epilog=_EPILOG)(_report)
