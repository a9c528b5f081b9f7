# SPDX-License-Identifier: GPL-2.0-only
"""`fscale show`: draws the curves and the matrix of a run in the terminal."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fscale.analysis.metrics import SHOWN, THROUGHPUT
from fscale.analysis.reader import Results, load
from fscale.commands.options.chosen import (
    ChosenFilesystems,
    ChosenWorkloads,
    choose,
    filesystems_of,
)
from fscale.commands.options.given import refuse_given
from fscale.model.errors import FscaleError
from fscale.model.store import has_conflicts
from fscale.model.terminal import only_ascii, terminal

_EPILOG = """
More examples:

    fscale show results/today --workload MWCL --fs ext4,xfs    # one plot, with its values
    fscale show results/today --workload DWSL --metric p99
    fscale show results/today | less
    fscale show results/today --ascii
    fscale show results/commute --fs ext4    # of `fscale commute`: the pairs of calls
"""


def _show(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="Results directory to draw.")],
    workload: ChosenWorkloads = None,
    fs: ChosenFilesystems = None,
    metric: Annotated[
        str, typer.Option(metavar="METRIC", help=f"Metric to draw: {', '.join(SHOWN)}.")
    ] = THROUGHPUT,
    ascii_only: Annotated[
        bool,
        typer.Option(
            "--ascii", help="Draw with ASCII only; the default where the locale is not UTF-8."
        ),
    ] = False,
) -> None:
    """Draw the curves of a run in the terminal, and show which of its points scale.

    Example: fscale show results/today

    Each file system has its own mark, so that the plots are readable without colours, as in a pipe
    or with NO_COLOR. The plots are as wide as the terminal; in a pipe as COLUMNS says, or 80.
    """
    # Matplotlib takes a second to load.
    from fscale.analysis.members import Member  # noqa: PLC0415
    from fscale.analysis.report.section import Report  # noqa: PLC0415
    from fscale.analysis.show.run import drawn  # noqa: PLC0415

    console = terminal(ascii_only=ascii_only or only_ascii())
    if has_conflicts(run):
        refuse_given(context, {"workload", "metric"}, "a result of `fscale commute`")
        _show_conflicts(console, run, fs)
        return
    results = choose(load(run), workload, fs)
    _check_metric(results, metric)
    for part in drawn(
        Report((Member(results),), run, metric=metric), console.width, console.height
    ):
        console.print(part)


def _show_conflicts(console: Console, directory: Path, fs: str | None) -> None:
    from fscale.commute.matrix import print_matrix  # noqa: PLC0415
    from fscale.commute.store import Store  # noqa: PLC0415

    matrices = Store(directory).load_matrices()
    chosen = filesystems_of(fs, (one.filesystem for one in matrices))
    for one in matrices:
        if one.filesystem in chosen:
            print_matrix(console, one)


def _check_metric(results: Results, metric: str) -> None:
    """Refuse a metric that there is not, or that no point has in all its repetitions."""
    from fscale.analysis.metrics import VALUES, why_missing  # noqa: PLC0415 - loads all metrics
    from fscale.analysis.summary import summarise  # noqa: PLC0415 - loads numpy

    if metric not in SHOWN:
        raise FscaleError(f"--metric {metric}: no such metric; give one of {', '.join(SHOWN)}")
    if not summarise(results.scored, metric=metric):
        why = why_missing(next(c for c in results.scored if VALUES[metric](c) is None), metric)
        raise FscaleError(
            f"no selected point in {results.path} has {metric} in all its repetitions: {why}"
        )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("show", epilog=_EPILOG)(_show)
