# SPDX-License-Identifier: GPL-2.0-only
"""The JSON Schemas of the result files, made from the models."""

import json
from pathlib import Path

from fscale import paths
from fscale.model.bench import Strict
from fscale.model.results import Cell, Run

MODELS: dict[str, type[Strict]] = {"run": Run, "cell": Cell}


def text(name: str) -> str:
    """The schema of `run` or `cell` files, as it is kept in docs/schemas."""
    schema = MODELS[name].model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"


def write(directory: Path = paths.SCHEMAS) -> list[Path]:
    """Write all schemas; returns their paths."""
    written = []
    for name in MODELS:
        path = directory / f"{name}.schema.json"
        path.write_text(text(name))
        written.append(path)
    return written
