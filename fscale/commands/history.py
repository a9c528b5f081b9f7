# SPDX-License-Identifier: GPL-2.0-only
"""`fscale history`: the index of runs."""

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from analysis.compare.settings import CPU_EFFICIENCY, THROUGHPUT
from fscale.model import paths
from fscale.model.errors import FscaleError
from fscale.model.terminal import say, terminal
from fscale.system.outputs import directory_to_write

DbOption = Annotated[
    Path, typer.Option("--db", envvar="FSCALE_HISTORY", help="The index, a SQLite file.")
]
MetricOption = Annotated[str, typer.Option(help=f"{THROUGHPUT} or {CPU_EFFICIENCY}.")]
MarginOption = Annotated[
    float, typer.Option(min=0.001, max=0.9, help="Smallest step, as a fraction.")
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]
RESULTS = paths.ROOT / "results"
DB = RESULTS / "history.sqlite"
MOST_SHOWN = 8
PIPE_COLUMNS = 160

_EPILOG = """
Examples:\n\n
fscale history rebuild results   |   fscale history add results/today\n\n
fscale history tag results/today v6.18   |   fscale compare v6.17 v6.18\n\n
fscale history trend --workload MWCM --fs ext4\n\n
fscale history report --output site   |   fscale history report results --output site
"""
_REPORT_EPILOG = """
Examples:\n\n
fscale history report --output site   (all runs of the index)\n\n
fscale history report results --output site --margin 0.03   (the runs below results, no index)
"""


def register(app: typer.Typer) -> None:
    """Add the command with its subcommands."""
    history = typer.Typer(
        no_args_is_help=True, help="List and tag runs; show trends and their steps."
    )
    for function, example in (
        (_add, "add results/today results/yesterday"),
        (_rebuild, "rebuild results /srv/results"),
        (_list, "list --json"),
        (_tag, "tag results/today v6.18"),
        (_path, "path v6.18"),
        (_trend, "trend --workload MWCM --fs ext4 --margin 0.03"),
    ):
        name = function.__name__.removeprefix("_")
        history.command(name, epilog=f"Example: fscale history {example}")(function)
    history.command("report", epilog=_REPORT_EPILOG)(_report)
    app.add_typer(history, name="history", epilog=_EPILOG)


def _add(
    runs: Annotated[list[Path], typer.Argument(help="Results directories.")], db: DbOption = DB
) -> None:
    """Index runs, or index them again."""
    from analysis.history import index  # noqa: PLC0415

    with index.opened(db) as connection:
        for run in runs:
            row = index.add(connection, run)
            say(f"{row.name}: {row.values} values")
            for tag in row.refused:
                say(
                    f"{row.path} claims the tag {tag}, which stays where it is; "
                    f"`fscale history tag` moves it",
                    error=True,
                )


def _rebuild(
    roots: Annotated[
        list[Path] | None, typer.Argument(help="Directories to look for runs in (results/).")
    ] = None,
    db: DbOption = DB,
) -> None:
    """Make the index anew from the result files, which are the truth."""
    from analysis.history import index  # noqa: PLC0415

    roots = roots or [RESULTS]
    _check_roots(roots)
    owned = index.owners(db)
    if db.exists() and not db.is_file():
        raise FscaleError(f"{db} is not a file, so it is not an index; name another --db")
    if not index.replaceable(db):
        raise FscaleError(
            f"{db} is not an index of runs, so it is not replaced; name another --db, or remove it"
        )
    try:
        db.unlink(missing_ok=True)
    except OSError as error:
        raise FscaleError(f"{db} cannot be replaced: {error.strerror}") from None
    with index.opened(db) as connection:
        rows, problems = index.rebuild(connection, roots, owned)
        say(f"{len(rows)} runs are in {db}")
    _tell(problems)


def _check_roots(roots: list[Path]) -> None:
    for root in roots:
        if not root.is_dir():
            raise FscaleError(f"{root} is no directory; give the one that holds the runs")


def _check_metric(metric: str) -> None:
    if metric not in (THROUGHPUT, CPU_EFFICIENCY):
        raise FscaleError(f"--metric is {THROUGHPUT} or {CPU_EFFICIENCY}")


def _tell(problems: list[str]) -> None:
    for problem in problems:
        say(f"left out: {problem}", error=True)


def _list(db: DbOption = DB, as_json: JsonFlag = False) -> None:
    """All runs, the oldest first."""
    from analysis.history import index  # noqa: PLC0415

    with index.opened(db) as connection:
        rows = [
            {
                "run": row.name,
                "started": row.started,
                "state": row.state,
                "machine": row.machine,
                "kernel": row.kernel,
                "values": row.values,
                "tags": row.tags,
                "path": row.path,
            }
            for row in index.runs(connection)
        ]
    if as_json:
        typer.echo(json.dumps({"schema": 1, "runs": rows}, indent=1))
        return
    if not rows:
        typer.echo("the index is empty; `fscale history add DIR` or `fscale history rebuild`")
        return
    table = Table(*rows[0], box=None, pad_edge=False)
    for row in rows:
        cells = {**row, "tags": ", ".join(row["tags"])}  # type: ignore[arg-type]
        table.add_row(*map(str, cells.values()))
    terminal(width=PIPE_COLUMNS).print(table)


def _tag(
    run: Annotated[str, typer.Argument(help="A run: its directory, its name or another tag.")],
    name: Annotated[str, typer.Argument(help="The tag; `compare` takes it for a directory.")],
    db: DbOption = DB,
) -> None:
    """Give a run a name; a run that had it before loses it."""
    from analysis.history import index  # noqa: PLC0415

    if not index.is_tag(name):
        raise FscaleError("a tag is a name without a slash, of at most 100 characters")
    with index.opened(db) as connection:
        if (Path(run) / "run.json").exists():
            row = index.add(connection, Path(run))
        else:
            row = index.find(connection, run)
        index.tag(connection, row, name)
        say(f"{name} is {row.path}")


def _path(
    tag: Annotated[str, typer.Argument(help="A tag; nothing else is taken for one.")],
    db: DbOption = DB,
) -> None:
    """Print the directory of the run that bears a tag; exit code 2 when none does."""
    from analysis.history import index  # noqa: PLC0415

    with index.opened(db) as connection:
        run = index.tagged(connection, tag)
    if run is None:
        raise FscaleError(f"no run has the tag {tag}; `fscale history list` shows what there is")
    typer.echo(run.path)


def _trend(
    workload: Annotated[str | None, typer.Option(help="A workload.")] = None,
    fs: Annotated[str | None, typer.Option(help="A file system.")] = None,
    metric: MetricOption = THROUGHPUT,
    margin: MarginOption = 0.05,
    db: DbOption = DB,
    as_json: JsonFlag = False,
) -> None:
    """How each point developed, and at which run it made a step."""
    from dataclasses import asdict  # noqa: PLC0415

    from analysis.compare import wording  # noqa: PLC0415
    from analysis.history import index  # noqa: PLC0415
    from analysis.history.steps import FEWEST_RUNS  # noqa: PLC0415
    from analysis.history.trend import trends  # noqa: PLC0415

    _check_metric(metric)
    with index.opened(db) as connection:
        found = trends(connection, metric, workload, fs, margin)
    if as_json:
        typer.echo(json.dumps({"schema": 1, "trends": [asdict(t) for t in found]}, indent=1))
        return
    if not found:
        typer.echo("no such point in the index; `fscale history list` shows the runs")
        return
    table = Table("point", "runs", f"latest {MOST_SHOWN} ({metric})", "steps", box=None)
    for trend in found:
        values = [wording.number(v.median) for v in trend.values[-MOST_SHOWN:]]
        steps = [f"{wording.change(s.ratio)} at {s.first.run}" for s in trend.steps]
        few = len(trend.values) < FEWEST_RUNS
        none = f"too few runs (from {FEWEST_RUNS})" if few else "none"
        table.add_row(
            trend.subject, str(len(trend.values)), " ".join(values), "; ".join(steps) or none
        )
    terminal(width=PIPE_COLUMNS).print(table)


def _report(
    output: Annotated[
        Path, typer.Option(callback=directory_to_write, help="The directory to write the pages to.")
    ],
    roots: Annotated[
        list[Path] | None,
        typer.Argument(help="Directories to look for runs in; the index is then left as it is."),
    ] = None,
    metric: MetricOption = THROUGHPUT,
    margin: MarginOption = 0.05,
    db: DbOption = DB,
) -> None:
    """Write all series as a static site: what moved lately, and a page for each curve.

    It needs no network and no server: open index.html, or keep the directory as an artefact of CI.
    Exit code 0 also when something moved.
    """
    from analysis.history import index, site  # noqa: PLC0415

    _check_metric(metric)
    problems: list[str] = []
    with (
        tempfile.TemporaryDirectory() as scratch,
        index.opened(Path(scratch) / "index.sqlite" if roots else db) as connection,
    ):
        if roots:
            _check_roots(roots)
            _, problems = index.rebuild(connection, roots, {})
            _tell(problems)
        path = site.write(connection, output, metric, margin, problems)
    typer.echo(path)
