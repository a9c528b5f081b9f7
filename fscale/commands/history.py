# SPDX-License-Identifier: GPL-2.0-only
"""`fscale history`: keeps the index of runs, and shows trends."""

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from fscale.analysis.metrics import SHOWN, THROUGHPUT
from fscale.commands.options.kinds import output_directory
from fscale.commands.options.shared import HISTORY, HistoryOption, JsonFlag
from fscale.model.errors import FscaleError
from fscale.model.tables import Column, Row, Table
from fscale.model.terminal import only_ascii, say, terminal

MetricOption = Annotated[
    str, typer.Option(metavar="METRIC", help=f"Metric to show: {', '.join(SHOWN)}.")
]
MarginOption = Annotated[
    float,
    typer.Option(
        min=0.001,
        max=0.9,
        metavar="FRACTION",
        help="Ignore relative changes smaller than this.",
    ),
]
MOST_SHOWN = 8
_RANKS = dict.fromkeys(("run", "started", "tags"), 0)
_RANKS |= {"kernel": 1, "state": 2, "machine": 3, "values": 4, "path": 5}

_EPILOG = """
Examples:

    fscale history rebuild results
    fscale history tag results/today v6.18
    fscale compare v6.17 v6.18    # tags instead of directories
    fscale history trend --workload MWCM --fs ext4
    fscale history report --output site
"""
_REPORT_EPILOG = """
More examples:

    fscale history report results --output site --margin 0.03    # the runs below results, no index
"""


def register(app: typer.Typer) -> None:
    """Add the command with its subcommands."""
    history = typer.Typer(
        no_args_is_help=True, help="Index and tag runs; show trends and the runs that changed them."
    )
    for function in (_add, _rebuild, _list, _tag, _path, _trend):
        history.command(function.__name__.removeprefix("_"))(function)
    history.command("report", epilog=_REPORT_EPILOG)(_report)
    app.add_typer(history, name="history", epilog=_EPILOG)


def _add(
    runs: Annotated[list[Path], typer.Argument(help="Results directories to index.")],
    db: HistoryOption = HISTORY,
) -> None:
    """Add runs to the index; a run that is in it is indexed again.

    Example: fscale history add results/today results/yesterday
    """
    from fscale.analysis.history import index  # noqa: PLC0415

    with index.opened(db) as connection:
        for run in runs:
            row = index.add(connection, run)
            say(f"{row.name}: {row.values} values")
            for tag in row.refused:
                say(
                    f"{row.path} claims the tag {tag}, which stays with another run; "
                    f"move it with `fscale history tag`",
                    error=True,
                )


def _rebuild(
    roots: Annotated[
        list[Path] | None, typer.Argument(help="Directories to search for runs. Default: results.")
    ] = None,
    db: HistoryOption = HISTORY,
) -> None:
    """Create the index anew from the results below some directories.

    Example: fscale history rebuild results /srv/results
    """
    from fscale.analysis.history import index  # noqa: PLC0415

    roots = roots or [HISTORY.parent]
    _check_roots(roots)
    owned = index.owners(db)
    if db.exists() and not db.is_file():
        raise FscaleError(f"--db {db} is not a file; give another one")
    if not index.replaceable(db):
        raise FscaleError(
            f"--db {db} is not an index of runs and is not overwritten; give another file"
        )
    try:
        db.unlink(missing_ok=True)
    except OSError as error:
        raise FscaleError(
            f"cannot replace --db {db}: {error.strerror}; give another file"
        ) from None
    with index.opened(db) as connection:
        rows, problems = index.rebuild(connection, roots, owned)
        say(f"indexed {len(rows)} runs in {db}")
    _tell(problems)


def _check_roots(roots: list[Path]) -> None:
    for root in roots:
        if not root.is_dir():
            raise FscaleError(f"{root} is not a directory; give a directory that contains runs")


def _check_metric(metric: str) -> None:
    if metric not in SHOWN:
        raise FscaleError(f"--metric {metric}: no such metric; give one of {', '.join(SHOWN)}")


def _tell(problems: list[str]) -> None:
    for problem in problems:
        say(f"left out: {problem}", error=True)


def _list(db: HistoryOption = HISTORY, as_json: JsonFlag = False) -> None:
    """List all runs of the index, oldest first.

    Example: fscale history list
    """
    from fscale.analysis.history import index  # noqa: PLC0415

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
        typer.echo(
            "the index is empty; fill it with `fscale history add DIR` or `fscale history rebuild`"
        )
        return
    columns = [Column(name, _RANKS[name]) for name in rows[0]]
    listed = ({**row, "tags": ", ".join(row["tags"])} for row in rows)  # type: ignore[arg-type]
    cells = [Row(list(map(str, row.values()))) for row in listed]
    terminal(ascii_only=only_ascii()).print(Table(columns, cells))


def _tag(
    run: Annotated[str, typer.Argument(help="Run to tag: its directory, its name or another tag.")],
    name: Annotated[
        str, typer.Argument(help="Tag; `fscale compare` accepts it instead of a directory.")
    ],
    db: HistoryOption = HISTORY,
) -> None:
    """Give a run a tag; another run that has the tag loses it.

    Example: fscale history tag results/today v6.18
    """
    from fscale.analysis.history import index  # noqa: PLC0415

    if not index.is_tag(name):
        raise FscaleError(
            f"{name!r} cannot be a tag; give a name without a slash, of at most 100 characters"
        )
    with index.opened(db) as connection:
        if (Path(run) / "run.json").exists():
            row = index.add(connection, Path(run))
        else:
            row = index.find(connection, run)
        index.tag(connection, row, name)
        say(f"{name} is {row.path}")


def _path(
    tag: Annotated[str, typer.Argument(help="Tag of a run; not its name or directory.")],
    db: HistoryOption = HISTORY,
) -> None:
    """Print the directory of the run that has a tag.

    Example: fscale history path v6.18

    Exit codes: 0: printed. 2: wrong usage, or no run has the tag.
    """
    from fscale.analysis.history import index  # noqa: PLC0415

    with index.opened(db) as connection:
        run = index.tagged(connection, tag)
    if run is None:
        raise FscaleError(f"no run has the tag {tag}; `fscale history list` shows all tags")
    typer.echo(run.path)


def _trend(
    workload: Annotated[
        str | None, typer.Option(metavar="NAME", help="Show only this workload.")
    ] = None,
    fs: Annotated[
        str | None, typer.Option(metavar="NAME", help="Show only this file system.")
    ] = None,
    metric: MetricOption = THROUGHPUT,
    margin: MarginOption = 0.05,
    db: HistoryOption = HISTORY,
    as_json: JsonFlag = False,
) -> None:
    """Show how each point developed from run to run, and at which runs it changed in a step.

    Example: fscale history trend --workload MWCM --fs ext4 --margin 0.03
    """
    from dataclasses import asdict  # noqa: PLC0415

    from fscale.analysis.compare import wording  # noqa: PLC0415
    from fscale.analysis.history import index  # noqa: PLC0415
    from fscale.analysis.history.steps import FEWEST_RUNS  # noqa: PLC0415
    from fscale.analysis.history.trend import trends  # noqa: PLC0415

    _check_metric(metric)
    with index.opened(db) as connection:
        points = trends(connection, metric, workload, fs, margin)
    if as_json:
        typer.echo(json.dumps({"schema": 1, "trends": [asdict(t) for t in points]}, indent=1))
        return
    if not points:
        typer.echo("the index has no such point; `fscale history list` shows the runs")
        return
    rows = []
    for trend in points:
        values = [wording.figure(metric, v.median) for v in trend.values[-MOST_SHOWN:]]
        steps = [f"{wording.change(s.ratio)} at {s.first.run}" for s in trend.steps]
        few = len(trend.values) < FEWEST_RUNS
        none = f"too few runs (needs {FEWEST_RUNS})" if few else "none"
        counted = str(len(trend.values))
        rows.append(Row([trend.subject, counted, " ".join(values), "; ".join(steps) or none]))
    latest = f"latest {MOST_SHOWN} ({metric})"
    columns = (Column("point"), Column("runs", 3, True), Column(latest, 2), Column("steps", 1))
    terminal(ascii_only=only_ascii()).print(Table(columns, rows))


def _report(
    output: Annotated[
        Path,
        output_directory("Directory to write the pages to."),
    ],
    roots: Annotated[
        list[Path] | None,
        typer.Argument(help="Directories to search for runs, instead of reading the index."),
    ] = None,
    metric: MetricOption = THROUGHPUT,
    margin: MarginOption = 0.05,
    db: HistoryOption = HISTORY,
) -> None:
    """Write all trends as a static web site: recent changes, and a page for each curve.

    Example: fscale history report --output site

    The site needs no network and no server: open index.html, or keep the directory as a CI
    artefact.

    Exit codes: 0: written, also when a point changed. 2: wrong usage, or there is no run to show.
    """
    from fscale.analysis.history import index, site  # noqa: PLC0415

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
