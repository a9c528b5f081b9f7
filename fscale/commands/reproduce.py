# SPDX-License-Identifier: GPL-2.0-only
"""`fscale reproduce`: measures what a paper claims, as far as this machine allows."""

import json
import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fscale.analysis.reader import Results, load
from fscale.apps.adapter import loads
from fscale.commands.options.completion import complete_papers
from fscale.commands.options.kinds import output_directory
from fscale.commands.options.shared import JsonFlag, WaitOption
from fscale.commands.options.writable import unused
from fscale.model.catalogue import split_names
from fscale.model.errors import Exit, FscaleError, MissingTool
from fscale.model.files import Folder
from fscale.model.paper import Claim, Paper, Question, choose, load_paper, questions
from fscale.model.tables import Column, Row, Table
from fscale.model.terminal import only_ascii, say, terminal
from fscale.runner.prepare import Prepared, prepare
from fscale.runner.progress import duration, estimate_seconds, format_estimate
from fscale.runner.remeasure import Choices
from fscale.runner.request import Request
from fscale.runner.run import execute
from fscale.runner.session import this_machine_held

if TYPE_CHECKING:
    from fscale.analysis.paper.judge import Answer

_EPILOG = """
More examples:

    fscale reproduce fxmark --list
    fscale reproduce fxmark --only 'DRB*,MRPH' --dry-run
    fscale reproduce spanfs --output results/spanfs    # the same command resumes it
    fscale reproduce fxmark --run results/simulated    # judges a run that there is
    fscale reproduce ./my-claims.toml --quick
"""
_ASKED = (
    Column("claim"),
    Column("workload"),
    Column("file system"),
    Column("theirs"),
    Column("place", 1),
)
_ANSWERED = (
    Column("claim"),
    Column("verdict"),
    Column("theirs"),
    Column("ours"),
    Column("asked of", 1, label=""),
    Column("why", 2, label=""),
)
_LEFT_OUT = (Column("cannot be asked here"), Column("theirs", 2), Column("ours", 2), Column("why"))
_TIMES = (Column("claim"), Column("cells", right=True), Column("time", right=True))


def _reproduce(
    paper: Annotated[
        Path,
        typer.Argument(
            metavar="PAPER",
            help="Paper: fxmark, spanfs, jbd2, scalelfs, or a TOML file with claims of your own.",
            autocompletion=complete_papers,
        ),
    ],
    output: Annotated[
        Path | None,
        output_directory(
            "Results directory, created if missing. An interrupted run in it is resumed. "
            "Default: results/DATE-PAPER."
        ),
    ] = None,
    *,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="CLAIM,...",
            help="Claims, separated by commas, by the names of --list; * stands for any text.",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Two short repetitions per point, instead of the paper's."),
    ] = False,
    listed: Annotated[bool, typer.Option("--list", help="Print the claims and exit.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print how long each claim takes and exit.")
    ] = False,
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Judge this run, such as one of `fscale simulate` or `fscale vm run`, and measure "
            "nothing. --output is then where the page is written; default: to it.",
        ),
    ] = None,
    measure_only: Annotated[
        bool,
        typer.Option(
            "--measure-only",
            help="Judge nothing, as in a guest, which has no libraries for it; --run does it then.",
        ),
    ] = False,
    wait: WaitOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Measure what a paper claims, as far as this machine allows, and judge each claim.

    Example: fscale reproduce fxmark --quick --only DWSL-tmpfs --output results/fxmark

    All claims are measured in one run, whose directory gets a page, reproduced.html: each claim
    with theirs, ours, and whether it holds here, or why it cannot be asked.

    Exit codes: 0: no claim fails. 1: a claim does not hold here. 2: wrong usage. 3: interrupted;
    the same command resumes. 77: nothing could be asked here.
    """
    described = load_paper(paper)
    claims = described.chosen(split_names(only or ""))
    asked = [one for one in claims if not one.cannot]
    place = output or run or unused(Path("results") / f"{time.strftime('%Y%m%d')}-{paper.stem}")
    request = Request(
        suite=paper,
        output=place,
        applications=loads,
        given=described.suite_of(asked, quick=quick),
        choose=partial(choose, asked),
    )
    if listed:

        def row(one: Question) -> tuple[str, ...]:
            theirs = described.theirs(one.claim)
            return one.claim.name, one.workload, one.filesystem, theirs, one.claim.where

        _print(_ASKED, map(row, questions(claims)))
        return
    if dry_run:
        _print_times(prepare(request) if asked else None, claims)
        return

    if run is None and asked and output is None:
        say(f"--output is {place}; give that to resume this run", error=True)
    if measure_only:
        if run is not None or not asked:
            raise FscaleError("--measure-only: these claims, or --run, need no measurement")
        _measure(request, wait)
        say(f"measured in {place}; fscale reproduce {paper} --run DIR judges it", error=True)
        return

    from fscale.analysis.remeasure import CHOICES  # noqa: PLC0415 - imports numpy

    results, why = None, ""
    if run is not None:
        results = load(run)
    elif asked:
        try:
            _measure(request, wait, lambda: CHOICES)
            results = load(place)
        except MissingTool as error:
            why = str(error)
    _judge(described, claims, results, why, place, as_json=as_json)


def _judge(
    paper: Paper,
    claims: Sequence[Claim],
    results: Results | None,
    why: str,
    place: Path,
    *,
    as_json: bool,
) -> None:
    """Write the page into `place` and print the answers; the exit code is theirs."""
    from fscale.analysis.paper.judge import CANNOT, answers, asked_first  # noqa: PLC0415 - numpy
    from fscale.analysis.report import reproduced  # noqa: PLC0415 - matplotlib takes a second

    found = answers(paper, claims, results, why)
    page = Folder(place).write("reproduced.html", reproduced.page(paper, found, results))
    if as_json:
        typer.echo(json.dumps([answer.row for answer in found], indent=1))
    else:
        _print_answers(*asked_first(found))
        for sentence in paper.stand_ins_of(claims):
            typer.echo(sentence)
        typer.echo(f"{reproduced.counted(found)}; {page}")
    verdicts = {answer.verdict for answer in found}
    if "does not hold" in verdicts:
        raise typer.Exit(Exit.FAILED)
    if verdicts == {CANNOT}:
        raise typer.Exit(Exit.SKIPPED)


def _measure(request: Request, wait: float, choices: Choices = tuple) -> None:
    with this_machine_held(wait) as signals:
        execute(prepare(request), signals, choices=choices)


def _print_answers(asked: Sequence["Answer"], others: Sequence["Answer"]) -> None:
    """Print what could be asked, and then the rest with its reasons."""
    if asked:
        rows = [
            (one.question.claim.name, one.verdict, one.theirs, one.ours, one.asked_of, one.why)
            for one in asked
        ]
        _print(_ANSWERED, rows)
        typer.echo()
    if others:
        _print(_LEFT_OUT, [(o.question.claim.name, o.theirs, o.ours, o.why) for o in others])
        typer.echo()


def _print(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    terminal(ascii_only=only_ascii()).print(Table(columns, list(map(Row, rows))))


def _print_times(prepared: Prepared | None, claims: Sequence[Claim]) -> None:
    """Print how long the cells of each claim take, and those of all together."""
    cells = prepared.measurable(prepared.cells) if prepared else []
    warmup = prepared.setup.settings.warmup if prepared else 0

    def row(one: Claim) -> tuple[str, str, str]:
        own = [key for key in choose([one], cells) if not key.control] if not one.cannot else []
        return one.name, str(len(own)), duration(estimate_seconds(own, warmup))

    _print(_TIMES, map(row, claims))
    typer.echo(f"all, and control cells: {format_estimate(cells, warmup)}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reproduce", epilog=_EPILOG)(_reproduce)
