# SPDX-License-Identifier: GPL-2.0-only
"""`fscale compare`: is NEW slower than BASE?"""

from pathlib import Path
from typing import Annotated

import typer

from fscale.ab.ways import refuse_given
from fscale.commands.history import DB, DbOption
from fscale.commands.options.judge import JudgeOptions
from fscale.commands.options.output import OutputOptions
from fscale.model.bundle import bundle
from fscale.model.errors import Exit
from fscale.model.limits import MOST_SEED

AllowOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-different",
        help="KEY of the cells' definition that may differ between the runs, as the refusal names "
        "it, such as filesystems.ext4.mount_options, or the front part of one; repeatable.",
    ),
]
SeedOption = Annotated[
    int, typer.Option(min=0, max=MOST_SEED, help="Random seed of the bootstrap.")
]
AllOption = Annotated[bool, typer.Option("--all", help="Also show points that are the same.")]


_OF_RATES = {"metric", "margin", "count_margin", "fdr", "seed", "allow_different", "fail_undecided"}


def _directory(run: Path, db: Path) -> Path:
    """A results directory, also by its tag or name in the history."""
    if run.exists() or not db.exists():
        return run
    from analysis.history import index  # noqa: PLC0415

    with index.opened(db) as connection:
        return Path(index.find(connection, str(run)).path)


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(
        epilog="Examples:  fscale compare results/v6.17 results/v6.18 --junit fscale.xml   |   "
        "fscale compare results/v6.17 results/v6.18 --html compare.html   |   "
        "fscale compare results/ab-data-journal --mail -"
    )
    @bundle("judged", JudgeOptions)
    @bundle("written", OutputOptions)
    def compare(
        context: typer.Context,
        base: Annotated[
            Path,
            typer.Argument(
                help="The run to compare with (directory, or tag in the history), or one of "
                "`fscale ab` or `fscale gate`."
            ),
        ],
        new: Annotated[
            Path | None, typer.Argument(help="The run to judge; not with one that has both sides.")
        ] = None,
        *,
        seed: SeedOption = 0,
        allow_different: AllowOption = None,
        everything: AllOption = False,
        db: DbOption = DB,
        fail_undecided: Annotated[
            bool,
            typer.Option("--fail-undecided", help="Exit with 1 when a cell is undecided, too."),
        ] = False,
        judged: JudgeOptions,
        written: OutputOptions,
    ) -> None:
        """Say for every cell and curve whether NEW is slower, faster, the same or undecided.

        Exit code 0: no regression; 1: something is slower, or failed in NEW and was good in BASE;
        2: the two cannot be compared, or have too few repetitions.
        docs/reference/comparison-outputs.md describes the outputs, docs/design/statistics.md the
        statistics.
        """
        from analysis.compare.compare import compare as compare_sides  # noqa: PLC0415
        from analysis.compare.sides import open_sides  # noqa: PLC0415
        from analysis.verdicts.outputs import give  # noqa: PLC0415

        outputs = written.outputs
        base, new = _directory(base, db), _directory(new, db) if new else None
        settings = judged.settings.model_copy(
            update={"seed": seed, "allow_different": tuple(allow_different or ())}
        )
        sides = open_sides(base, new)
        if sides.counted:
            refuse_given(context, _OF_RATES, "a run of `fscale gate`, whose counts have own rules")
        comparison = compare_sides(sides, settings)
        give(comparison, outputs, sides, everything)
        undecided = fail_undecided and comparison.count("undecided") > 0
        if comparison.regressed or undecided:
            raise typer.Exit(Exit.FAILED)
