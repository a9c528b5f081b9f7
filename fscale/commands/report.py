# SPDX-License-Identifier: GPL-2.0-only
"""`fscale report`: draws the report of a run, or one report of several."""

import gc
from pathlib import Path
from typing import Annotated

import typer

from fscale.commands.compare import AllowOption
from fscale.model.errors import FscaleError
from fscale.system.outputs import directory_to_write

_EPILOG = """
Examples:\n\n
fscale report results/today\n\n
fscale report results/sim --output paper/ --paper\n\n
fscale report results/6.1 results/6.12 results/6.18 --output results/kernels\n\n
fscale report results/v1=stock results/v2=patched --output results/both\n\n
fscale report a b --output c --allow-different filesystems.ext4.mount_options
"""


def _report(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="A results directory; several are drawn in one report, each as DIR or DIR=LABEL. "
            "Without labels what differs names them.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            callback=directory_to_write,
            help="Where to write; of one run beside the results by default.",
        ),
    ] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="Lay what FxMark's paper says beside the curves.")
    ] = False,
    plots: Annotated[
        bool,
        typer.Option(help="Write the plots as PDF and SVG files too; without, in half the time."),
    ] = True,
    allow_different: AllowOption = None,
) -> None:
    """Draw the report of a run: report.html, and the plots as PDF and SVG.

    Several runs, as of several kernels, share all plots, and a table has each beside the first,
    judged as `fscale compare` does. It only reads results, so it works on any machine and while a
    run goes on.
    """
    from analysis.report.members import Asked  # noqa: PLC0415 - it brings in the statistics

    asked = [Asked.parse(text) for text in runs]
    for one in asked:
        if not (one.path / "run.json").exists():
            raise FscaleError(
                f"{one.path} holds no fscale run (no run.json); give a directory of fscale run"
            )
    # Drawing makes millions of objects that are all still needed: to look for cycles among them
    # after every 700 of them took a seventh of the time.
    gc.set_threshold(200_000, 20, 100)
    from analysis.report import build, build_several  # noqa: PLC0415 - matplotlib takes a second

    if len(asked) > 1:
        if output is None:
            raise FscaleError("several runs: say where their report goes, with --output DIR")
        allow = tuple(allow_different or ())
        typer.echo(build_several(asked, output, paper=paper, plots=plots, allow=allow))
    elif asked[0].label is not None or allow_different:
        raise FscaleError("a label and --allow-different are for several runs; give a second one")
    else:
        typer.echo(build(asked[0].path, output, paper=paper, plots=plots))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report", epilog=_EPILOG)(_report)
