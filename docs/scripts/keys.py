# SPDX-License-Identifier: GPL-2.0-only
"""Reference pages of TOML keys and of results, from the models that check them."""

from typing import Any

from pydantic import BaseModel

from fscale.model.config import FileSystem, Medium, Suite
from fscale.model.loadfile import LoadFile
from fscale.model.paper import Paper
from fscale.model.results import Cell, Run
from fscale.sim.machine import SimulatedMachine

Source = tuple[str, str, type[BaseModel]]
"""title, first paragraph, model"""
KEYS: dict[str, Source] = {
    "suite-keys.md": (
        "Keys of a suite",
        "A suite is a TOML file: `configs/suites/NAME.toml`, or any path. `--set KEY=VALUE` sets "
        "a key for one run.",
        Suite,
    ),
    "file-system-keys.md": (
        "Keys of a file system",
        "A file system is a TOML file: `configs/filesystems/NAME.toml`, or any path.",
        FileSystem,
    ),
    "medium-keys.md": (
        "Keys of a medium",
        "A medium is a TOML file: `configs/media/NAME.toml`, or any path.",
        Medium,
    ),
    "load-keys.md": (
        "Keys of a load",
        "A load of your own is a TOML file: `configs/loads/NAME.toml`, or any path that "
        "`--workload` names.",
        LoadFile,
    ),
    "paper-keys.md": (
        "Keys of a paper",
        "The [claims of a paper](../guide/claims-of-a-paper.md) are a TOML file: "
        "`configs/papers/NAME.toml`, or any path that `fscale reproduce` takes.",
        Paper,
    ),
    "machine-keys.md": (
        "Keys of a simulated machine",
        "A simulated machine is a TOML file: `configs/machines/NAME.toml`, or any path.",
        SimulatedMachine,
    ),
}
FIELDS: dict[str, Source] = {
    "run-fields.md": (
        "Fields of run.json",
        "Each results directory has a `run.json`. `fscale schema run` prints its JSON schema.",
        Run,
    ),
    "cell-fields.md": (
        "Fields of a cell",
        "Each cell is a file below `cells/`. `fscale schema cell` prints its JSON schema.",
        Cell,
    ),
}


def pages(sources: dict[str, Source]) -> dict[str, str]:
    """File name -> Markdown."""
    return {name: _page(*source) for name, source in sources.items()}


def _page(title: str, lead: str, model: type[BaseModel]) -> str:
    schema = model.model_json_schema(by_alias=True)
    parts = [f"# {title}", lead, *_fields(schema)]
    for name, inner in sorted(schema.get("$defs", {}).items()):
        if inner.get("properties"):
            parts += [f"## {name}", _described(inner), *_fields(inner)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _fields(schema: dict[str, Any]) -> list[str]:
    required = schema.get("required", [])
    return [
        f"`{name}` ({_type(field)}{_default(name, field, required)})\n: {_described(field) or '—'}"
        for name, field in schema.get("properties", {}).items()
    ]


def _described(schema: dict[str, Any]) -> str:
    return " ".join(str(schema.get("description", "")).split())


def _default(name: str, field: dict[str, Any], required: list[str]) -> str:
    if name in required:
        return ", required"
    default = field.get("default")
    return "" if default in (None, [], {}) else f", default `{default}`"


def _type(field: dict[str, Any]) -> str:
    """A few words: number, text, list of ..., or the name of a table below."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if values := field.get("enum") or ([field["const"]] if "const" in field else []):
        return " or ".join(f"`{value}`" for value in values)
    if alternatives := field.get("anyOf") or field.get("oneOf"):
        return " or ".join(dict.fromkeys(_type(one) for one in alternatives))
    return _plain_type(field)


def _plain_type(field: dict[str, Any]) -> str:
    kind = field.get("type", "any value")
    if kind == "array" and "items" in field:
        return f"list of {_type(field['items'])}"
    if kind == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"table of {_type(field['additionalProperties'])}"
    names = {
        "string": "text",
        "boolean": "true or false",
        "null": "nothing",
        "array": "list",
        "object": "table",
    }
    return names.get(str(kind), str(kind))
