# SPDX-License-Identifier: GPL-2.0-only
"""`fscale doctor`: what this machine can do."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from apps.adapter import loads
from fscale.model.errors import Exit
from fscale.runner.doctor import examine


def _doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Say what this machine can and cannot measure, and what would help.

    Exit code 2 when nothing at all can be measured.
    """
    findings = examine(loads())
    if as_json:
        typer.echo(json.dumps([finding.as_dict() for finding in findings], indent=1))
    else:
        table = Table(box=None, pad_edge=False, show_header=False)
        for finding in findings:
            hint = "" if finding.good or finding.help == finding.detail else finding.help or ""
            table.add_row("yes" if finding.good else "no", finding.name, finding.detail, hint)
        Console(highlight=False, markup=False).print(table)
    if any(finding.needed and not finding.good for finding in findings):
        raise typer.Exit(Exit.USAGE)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor", epilog="Example: fscale doctor --json")(_doctor)
