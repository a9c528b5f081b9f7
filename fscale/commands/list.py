# SPDX-License-Identifier: GPL-2.0-only
"""`fscale list`: shows workloads, file systems, media and suites."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from fscale.apps import adapter
from fscale.model import catalogue, paths
from fscale.model.config import Suite
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


_COLUMNS: dict[str, list[str]] = {
    "workloads": ["id", "title", "operation", "modes", "missing"],
    "filesystems": ["name", "title", "package", "missing"],
    "media": ["name", "title", "missing"],
    "suites": ["name", "title", "filesystems", "media", "cores", "duration", "repetitions"],
}


def _cell(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return "" if value is None else str(value)


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


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
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = max(console.width, 160)
    columns = _COLUMNS[what]
    console.print(_table(columns, ([_cell(row[column]) for column in columns] for row in rows)))
    if what == "workloads":
        console.print("\nOptions, set with --option NAME=VALUE or --option WORKLOAD.NAME=VALUE:\n")
        console.print(_table(("option", "meaning", "workloads"), _options(rows)))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("list")(_list)
