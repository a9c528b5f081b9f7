# SPDX-License-Identifier: GPL-2.0-only
"""`fscale list`: shows workloads, file systems, media and suites."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from fscale.apps import adapter
from fscale.model import catalogue, paths
from fscale.model.config import Suite
from fscale.model.tables import Column, Row, Table
from fscale.model.terminal import only_ascii, terminal
from fscale.runner import microbench
from fscale.runner.storage import filesystem, medium

What = Literal["workloads", "filesystems", "media", "suites"]
Rows = list[dict[str, Any]]


_MOST_NAMES = 12  # of workloads that have an option


def _workloads(binary: Path) -> Rows:
    loads = [*microbench.find(binary), *adapter.loads()]
    return [load.descriptor.model_dump() | {"missing": load.missing()} for load in loads]


def _filesystems() -> Rows:
    rows = []
    for name in catalogue.names(paths.FILESYSTEMS):
        fs = catalogue.load_filesystem(name)
        rows.append({"name": name, **fs.model_dump(), "missing": filesystem.missing(fs)})
    return rows


def _media() -> Rows:
    rows = []
    for name in catalogue.names(paths.MEDIA):
        described = catalogue.load_medium(name)
        rows.append(
            {"name": name, **described.model_dump(), "missing": medium.missing(name, described)}
        )
    return rows


def _suites() -> Rows:
    rows = []
    for name in catalogue.names(paths.SUITES):
        suite = catalogue.load_toml(paths.SUITES / f"{name}.toml", Suite)
        rows.append({"name": name, **suite.model_dump()})
    return rows


_MISSING = Column("missing", 1, label="missing:")
_COLUMNS: dict[str, list[Column]] = {
    "workloads": [
        *(Column("id"), Column("title")),
        *(Column("operation", 2, label=""), Column("modes", 3), _MISSING),
    ],
    "filesystems": [Column("name"), Column("title"), Column("package", 2), _MISSING],
    "media": [Column("name"), Column("title"), _MISSING],
    "suites": [
        *(Column("name"), Column("title")),
        *(Column(key, 1) for key in ("filesystems", "media", "cores", "duration", "repetitions")),
    ],
}
_OPTIONS = (Column("option"), Column("meaning"), Column("workloads", 1))


def _cell(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return "" if value is None else str(value)


def _options(rows: Rows) -> list[tuple[str, str, str]]:
    """Each option once: NAME=DEFAULT, or its choices with the default first; help; workloads."""
    workloads: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for option in row["options"]:
            values = "|".join(dict.fromkeys([str(option["default"]), *option["choices"]]))
            workloads.setdefault((f"{option['name']}={values}", option["help"]), []).append(
                row["id"]
            )
    return [(*option, _enumerate(ids)) for option, ids in workloads.items()]


def _enumerate(ids: list[str]) -> str:
    return ", ".join(ids) if len(ids) <= _MOST_NAMES else f"{len(ids)} workloads (see --json)"


def _list(
    what: Annotated[What, typer.Argument(help="Kind of thing to list.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON instead of a table, with all fields.")
    ] = False,
    binary: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="Microbenchmark program whose workloads are listed.",
            show_default="build/microbench/fscale-bench",
        ),
    ] = paths.BENCH,
) -> None:
    """List workloads, file systems, media or suites, and what this machine lacks for each.

    Example: fscale list workloads

    Workloads are followed by their options, with defaults.
    """
    makers = {"filesystems": _filesystems, "media": _media, "suites": _suites}
    rows = _workloads(binary) if what == "workloads" else makers[what]()
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    console = terminal(ascii_only=only_ascii())
    columns = _COLUMNS[what]
    cells = ([_cell(row[column.title]) for column in columns] for row in rows)
    console.print(Table(columns, list(map(Row, cells))))
    if what == "workloads":
        console.print("\nOptions, set with --option NAME=VALUE or --option WORKLOAD.NAME=VALUE:\n")
        console.print(Table(_OPTIONS, list(map(Row, _options(rows)))))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("list")(_list)
