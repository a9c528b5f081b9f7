# SPDX-License-Identifier: GPL-2.0-only
"""`fscale doctor`: shows what a machine can measure."""

import json

import typer

from fscale.apps.adapter import loads
from fscale.commands.options.on import MachineOption, nodes_of
from fscale.commands.options.shared import JsonFlag
from fscale.model.errors import Exit
from fscale.model.tables import Column, Row, Table
from fscale.model.terminal import only_ascii, terminal
from fscale.runner.doctor import examine
from fscale.runner.machine_task import examine_on
from fscale.runner.signals import Signals


def _doctor(
    on: MachineOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what a machine can and cannot measure, and what to install or change.

    Example: fscale doctor

    Exit codes: 0: the machine can measure something. 2: it can measure nothing.
    """
    if on is None:
        findings = list(examine(loads()))
    else:
        with Signals().installed(), nodes_of(on) as engine:
            findings = examine_on(engine)
    if as_json:
        typer.echo(json.dumps([finding.as_dict() for finding in findings], indent=1))
    else:
        columns = (Column(""), Column(""), Column("", breaks=True), Column("", 1, label="needs:"))
        rows = []
        for finding in findings:
            hint = "" if finding.good or finding.help == finding.detail else finding.help or ""
            rows.append(Row(["yes" if finding.good else "no", finding.name, finding.detail, hint]))
        terminal(ascii_only=only_ascii()).print(Table(columns, rows, header=False))
    if any(finding.needed and not finding.good for finding in findings):
        raise typer.Exit(Exit.USAGE)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(_doctor)
