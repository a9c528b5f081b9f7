# SPDX-License-Identifier: GPL-2.0-only
"""`fscale doctor`: shows what this machine can measure."""

import json

import typer
from rich.table import Table

from fscale.apps.adapter import loads
from fscale.commands.options.shared import JsonFlag
from fscale.model.errors import Exit
from fscale.model.terminal import terminal
from fscale.runner.doctor import examine

WIDTH = 160  # columns of a pipe or file, so that each ability is a line for grep


def _doctor(
    as_json: JsonFlag = False,
) -> None:
    """Show what this machine can and cannot measure, and what to install or change.

    Example: fscale doctor

    Exit codes: 0: this machine can measure something. 2: it can measure nothing.
    """
    findings = examine(loads())
    if as_json:
        typer.echo(json.dumps([finding.as_dict() for finding in findings], indent=1))
    else:
        table = Table(box=None, pad_edge=False, show_header=False)
        for finding in findings:
            hint = "" if finding.good or finding.help == finding.detail else finding.help or ""
            table.add_row("yes" if finding.good else "no", finding.name, finding.detail, hint)
        terminal(width=WIDTH).print(table)
    if any(finding.needed and not finding.good for finding in findings):
        raise typer.Exit(Exit.USAGE)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(_doctor)
