# SPDX-License-Identifier: GPL-2.0-only
"""`fscale schema`: prints the JSON Schemas of result files, generated from the models."""

import json
from typing import Annotated, Literal

import typer

from fscale.analysis.compare.model import Comparison
from fscale.analysis.prediction.model import StoredPredictions
from fscale.commute.compare import ConflictComparison
from fscale.commute.matrix import Matrices
from fscale.model.bench import Strict
from fscale.model.results import Cell, Run

MODELS: dict[str, type[Strict]] = {
    "run": Run,
    "cell": Cell,
    "compare": Comparison,
    "commute": Matrices,
    "conflicts": ConflictComparison,
    "predictions": StoredPredictions,
}


def text(name: str) -> str:
    """The schema of one kind of file."""
    schema = MODELS[name].model_json_schema(by_alias=True, mode="serialization")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"


def _schema(
    name: Annotated[
        Literal["run", "cell", "compare", "commute", "conflicts", "predictions"] | None,
        typer.Argument(help="Kind of file. Default: all six."),
    ] = None,
) -> None:
    """Print the JSON Schema of run.json, of a cell's file, or of a comparison.

    Example: fscale schema run

    `commute` is matrix.json of `fscale commute`, and `conflicts` a comparison of two such results;
    `predictions` is predictions.json of `fscale predict`.
    """
    for chosen in [name] if name else MODELS:
        typer.echo(text(chosen), nl=False)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("schema")(_schema)
