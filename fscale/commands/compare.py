# SPDX-License-Identifier: GPL-2.0-only
"""`fscale compare`: is NEW slower than BASE?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.compare.settings import METRICS, Metric, Settings
from fscale.commands.history import DB, DbOption, JsonFlag
from fscale.model.errors import Exit, FscaleError
from fscale.model.limits import MOST_SEED
from fscale.system.outputs import TERMINAL, file_to_write, refuse_same

if TYPE_CHECKING:
    from analysis.compare.outputs import Outputs

MarginOption = Annotated[
    float | None,
    typer.Option(
        min=0.001,
        max=0.9,
        help="Ignore relative changes up to this (default 0.05; in slices 0.02).",
    ),
]
CountMarginOption = Annotated[
    float,
    typer.Option(
        min=0.0001,
        max=0.9,
        help="Ignore relative changes of counted work per operation up to this.",
    ),
]
MetricOption = Annotated[
    list[str] | None,
    typer.Option("--metric", help=f"Judge only {' or '.join(METRICS)}; repeatable."),
]
FdrOption = Annotated[
    float, typer.Option(min=0.0001, max=0.5, help="False discovery rate over all tests.")
]
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
JunitOption = Annotated[Path | None, typer.Option(callback=file_to_write, help="Write JUnit XML.")]
MarkdownOption = Annotated[
    Path | None,
    typer.Option(
        callback=file_to_write, help="Write Markdown for a pull request; - is the terminal."
    ),
]
MailOption = Annotated[
    Path | None,
    typer.Option(
        callback=file_to_write,
        help="Write plain text of 72 columns for a mailing list; - is the terminal.",
    ),
]
KtapOption = Annotated[
    Path | None, typer.Option(callback=file_to_write, help="Write KTAP; - is the terminal.")
]
HtmlOption = Annotated[
    Path | None,
    typer.Option(
        callback=file_to_write, help="Write a page: verdicts, ratios drawn, curves of both."
    ),
]
AllOption = Annotated[bool, typer.Option("--all", help="Show what is the same, too.")]


def parse_metrics(names: list[str] | None) -> tuple[Metric, ...]:
    """The metrics to judge: all when none is named."""
    wrong = set(names or ()) - set(METRICS)
    if wrong:
        raise FscaleError(f"--metric {', '.join(sorted(wrong))}: there are {', '.join(METRICS)}")
    return tuple(m for m in METRICS if not names or m in names)


def settings_of(
    metric: list[str] | None, margin: float | None, count_margin: float, fdr: float
) -> Settings:
    """The rules that were asked for; one margin is that of whole repetitions and of slices."""
    given = {} if margin is None else {"margin": margin, "slice_margin": margin}
    return Settings(metrics=parse_metrics(metric), count_margin=count_margin, fdr=fdr, **given)


def outputs_of(
    as_json: bool,
    junit: Path | None,
    markdown: Path | None,
    mail: Path | None,
    html: Path | None,
    ktap: Path | None,
) -> "Outputs":
    """Where the forms of a comparison go; FscaleError where two go to the same place."""
    from analysis.compare.outputs import Outputs  # noqa: PLC0415 - it brings in the statistics

    named = {"--junit": junit, "--markdown": markdown, "--mail": mail}
    named |= {"--html": html, "--ktap": ktap, "--json": TERMINAL if as_json else None}
    refuse_same(named)
    return Outputs(as_json, junit, markdown, mail, html, ktap)


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
    def compare(
        base: Annotated[
            Path,
            typer.Argument(
                help="The run to compare with (directory, or tag in the history), or one of "
                "`fscale ab`."
            ),
        ],
        new: Annotated[
            Path | None, typer.Argument(help="The run to judge; not with a run of `fscale ab`.")
        ] = None,
        *,
        metric: MetricOption = None,
        margin: MarginOption = None,
        count_margin: CountMarginOption = 0.01,
        fdr: FdrOption = 0.01,
        seed: SeedOption = 0,
        allow_different: AllowOption = None,
        as_json: JsonFlag = False,
        junit: JunitOption = None,
        markdown: MarkdownOption = None,
        mail: MailOption = None,
        html: HtmlOption = None,
        ktap: KtapOption = None,
        everything: AllOption = False,
        db: DbOption = DB,
        fail_undecided: Annotated[
            bool,
            typer.Option("--fail-undecided", help="Exit with 1 when a cell is undecided, too."),
        ] = False,
    ) -> None:
        """Say for every cell and curve whether NEW is slower, faster, the same or undecided.

        Exit code 0: no regression; 1: something is slower, or failed in NEW and was good in BASE;
        2: the two cannot be compared, or have too few repetitions. docs/compare.md describes the
        outputs, docs/method.md the statistics.
        """
        from analysis.compare.compare import compare as compare_sides  # noqa: PLC0415
        from analysis.compare.outputs import show, write  # noqa: PLC0415
        from analysis.compare.sides import open_sides  # noqa: PLC0415

        outputs = outputs_of(as_json, junit, markdown, mail, html, ktap)
        base, new = _directory(base, db), _directory(new, db) if new else None
        settings = settings_of(metric, margin, count_margin, fdr).model_copy(
            update={"seed": seed, "allow_different": tuple(allow_different or ())}
        )
        sides = open_sides(base, new)
        comparison = compare_sides(sides, settings)
        write(comparison, outputs, sides)
        if not outputs.to_terminal:
            show(comparison, everything)
        undecided = fail_undecided and comparison.count("undecided") > 0
        if comparison.regressed or undecided:
            raise typer.Exit(Exit.FAILED)
