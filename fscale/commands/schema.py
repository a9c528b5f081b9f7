# SPDX-License-Identifier: GPL-2.0-only
"""`fscale schema`: the JSON Schemas of the result files."""

from typing import Annotated, Literal

import typer

from fscale import schema


def _schema(
    name: Annotated[Literal["run", "cell"] | None, typer.Argument(help="Which file.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Renew docs/schemas.")] = False,
) -> None:
    """Print the JSON Schema of run.json or of a cell's file."""
    if write:
        for path in schema.write():
            typer.echo(path)
    for chosen in [name] if name else [] if write else list(schema.MODELS):
        typer.echo(schema.text(chosen), nl=False)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("schema")(_schema)
