# SPDX-License-Identifier: GPL-2.0-only
"""`fscale report`: draws the report of a run."""

from pathlib import Path
from typing import Annotated

import typer

from fscale.model.errors import FscaleError


def _report(
    run: Annotated[Path, typer.Argument(help="A results directory.")],
    output: Annotated[
        Path | None, typer.Option(help="Where to write; beside the results by default.")
    ] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="Lay what FxMark's paper says beside the curves.")
    ] = False,
) -> None:
    """Draw the report of a run: report.html, and the plots as PDF and SVG.

    It only reads results, so it works on any machine and while a run goes on.
    """
    if not (run / "run.json").exists():
        raise FscaleError(
            f"{run} holds no fscale run (no run.json); give a directory of fscale run"
        )
    from analysis.report import build  # noqa: PLC0415 - matplotlib takes a second to load

    typer.echo(build(run, output, paper=paper))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "report",
        epilog="Examples:  fscale report results/today   |   "
        "fscale report results/sim --output paper/ --paper",
    )(_report)
