# SPDX-License-Identifier: GPL-2.0-only
"""`fscale compare`: is NEW slower than BASE?"""

from pathlib import Path
from typing import Annotated

import typer

from fscale.commands.options.bundle import bundle
from fscale.commands.options.formats import put
from fscale.commands.options.given import refuse_given
from fscale.commands.options.helptext import JUDGING
from fscale.commands.options.judge import JudgeOptions
from fscale.commands.options.kinds import number
from fscale.commands.options.output import OutputOptions, judge
from fscale.commands.options.shared import HISTORY, AllOption, AllowOption, HistoryOption
from fscale.commands.options.writable import TERMINAL
from fscale.model import filetest
from fscale.model.errors import Exit, FscaleError
from fscale.model.files import Folder
from fscale.model.limits import MOST_SEED
from fscale.model.store import MATRIX_FILE
from fscale.model.terminal import only_ascii, terminal

_EPILOG = """
More examples:

    fscale compare results/v6.17 results/v6.18 --junit fscale.xml
    fscale compare results/v6.17 results/v6.18 --html compare.html
    fscale compare results/ab-data-journal --mail -    # judge a run of `fscale ab` again
    fscale compare results/commute-6.1 results/commute-6.12    # of `fscale commute`
"""
_OF_RATES = {
    *("metric", "margin", "count_margin", "latency_margin", "fdr", "seed"),
    *("allow_different", "fail_undecided"),
}


def _directory(run: Path, db: Path) -> Path:
    """Find a results directory, also by its tag or name in the history."""
    if filetest.exists(run) or not filetest.exists(db):
        return run
    from fscale.analysis.history import index  # noqa: PLC0415

    with index.opened(db) as connection:
        return Path(index.find(connection, str(run)).path)


def _of_runs(context: typer.Context) -> set[str]:
    """The options that apply to runs only."""
    both = {"base", "new", "db", "as_json", "junit"}
    return {str(one.name) for one in context.command.params} - both


def _compare_conflicts(base: Path, new: Path | None, json: bool, junit: Path | None) -> None:
    from fscale.commute import compare as conflicts  # noqa: PLC0415
    from fscale.commute.store import Store  # noqa: PLC0415

    if new is None:
        raise FscaleError(f"{base} is a result of `fscale commute`; give another one as NEW")
    compared = conflicts.compare(Store(base), Store(new))
    if junit:
        from fscale.commute.junit import render_conflicts  # noqa: PLC0415

        put(junit, render_conflicts(compared))
    if json:
        put(TERMINAL, compared.text())
    elif junit != TERMINAL:
        console = terminal(ascii_only=only_ascii())
        for one in compared.compared:
            console.print(conflicts.summary(one), soft_wrap=True)
            if one.conflicting or one.free:
                console.print(conflicts.table(one))
    if compared.worse:
        raise typer.Exit(Exit.FAILED)


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("compare", epilog=_EPILOG)
    @bundle("judged", JudgeOptions)
    @bundle("written", OutputOptions)
    def compare(
        context: typer.Context,
        base: Annotated[
            Path,
            typer.Argument(
                help="Results directory of the baseline, or its tag in the history; or a run of "
                "`fscale ab` or `fscale gate`, which contains both sides."
            ),
        ],
        new: Annotated[
            Path | None,
            typer.Argument(
                help="Results directory to judge, or its tag; none when BASE contains both sides."
            ),
        ] = None,
        *,
        seed: Annotated[
            int,
            number(0, MOST_SEED, "Random seed of the bootstrap intervals.", JUDGING),
        ] = 0,
        allow_different: AllowOption = None,
        everything: AllOption = False,
        db: HistoryOption = HISTORY,
        judged: JudgeOptions,
        written: OutputOptions,
    ) -> None:
        """Judge for each point and curve whether NEW is slower, faster, the same or undecided.

        Example: fscale compare results/v6.17 results/v6.18

        docs/reference/comparison-outputs.md describes the outputs, docs/design/statistics.md the
        statistics.

        A run of `fscale ab` is judged by its own rules, but for those that are given.

        BASE and NEW may be results of `fscale commute`: their pairs of calls are then compared.

        Exit codes: 0: no regression. 1: a point is slower, fails in NEW only, or calls newly
        conflict. 2: wrong usage, or the runs cannot be compared or have too few repetitions.
        """
        from fscale.analysis.compare.sides import open_sides  # noqa: PLC0415

        outputs = written.outputs
        base, new = _directory(base, db), _directory(new, db) if new else None
        if any(Folder(one).exists(MATRIX_FILE) for one in (base, new) if one):
            refuse_given(context, _of_runs(context), "results of `fscale commute`")
            _compare_conflicts(base, new, outputs.json, outputs.junit)
            return
        sides = open_sides(base, new)
        if sides.counted:
            refuse_given(
                context, _OF_RATES, "a run of `fscale gate`, whose counts are judged by fixed rules"
            )
        settings = judged.over(sides.settings)
        own = {"seed": seed, "allow_different": tuple(allow_different or ())}
        judge(sides, settings.model_copy(update=own), outputs, everything)
