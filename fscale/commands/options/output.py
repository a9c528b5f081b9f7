# SPDX-License-Identifier: GPL-2.0-only
"""How a comparison is judged and written: to the terminal, to files, and as an exit code."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fscale.commands.options.helptext import JUDGING, OUTPUT
from fscale.commands.options.kinds import output_file
from fscale.commands.options.shared import JsonFlag
from fscale.commands.options.submission import SubmissionOptions
from fscale.commands.options.writable import TERMINAL, refuse_same
from fscale.model.errors import Exit

if TYPE_CHECKING:
    from fscale.analysis.compare.settings import Settings
    from fscale.analysis.compare.sides import Sides
    from fscale.analysis.formats.comparison import Outputs


@dataclass(frozen=True)
class _Files:
    """The files in which a comparison is written, and what its exit code counts."""

    as_json: JsonFlag = False
    junit: Annotated[
        Path | None,
        output_file(
            "Write JUnit XML to this file: one test case per verdict; - is standard output.", OUTPUT
        ),
    ] = None
    markdown: Annotated[
        Path | None,
        output_file(
            "Write Markdown for a pull request to this file; - is standard output.", OUTPUT
        ),
    ] = None
    mail: Annotated[
        Path | None,
        output_file(
            "Write plain text of 72 columns, for a mailing list, to this file; - is standard "
            "output.",
            OUTPUT,
        ),
    ] = None
    html: Annotated[
        Path | None,
        output_file(
            "Write a web page to this file: verdicts, a plot of the ratios, and the curves "
            "of both sides.",
            OUTPUT,
        ),
    ] = None
    ktap: Annotated[
        Path | None,
        output_file("Write KTAP to this file: one test per verdict; - is standard output.", OUTPUT),
    ] = None
    kcidb: Annotated[
        Path | None,
        output_file(
            "Write JSON for KernelCI to this file: one test per verdict; - is standard output.",
            OUTPUT,
        ),
    ] = None
    fail_undecided: Annotated[
        bool,
        typer.Option(
            "--fail-undecided",
            help="Exit with code 1 also when a point or a curve is undecided.",
            rich_help_panel=JUDGING,
        ),
    ] = False


@dataclass(frozen=True)
class OutputOptions(SubmissionOptions, _Files):
    """The files and formats of a comparison, and who submits it."""

    @property
    def outputs(self) -> "Outputs":
        """The formats with their files.

        Raises:
            FscaleError: two of them name the same file, or a submission is described and not
                written.
        """
        from fscale.analysis.formats.comparison import Outputs  # noqa: PLC0415 - imports the statistics

        named = {"--junit": self.junit, "--markdown": self.markdown, "--mail": self.mail}
        named |= {"--html": self.html, "--ktap": self.ktap, "--kcidb": self.kcidb}
        refuse_same(named | {"--json": TERMINAL if self.as_json else None})
        self.refuse_unwritten(self.kcidb is not None)
        return Outputs(
            json=self.as_json,
            junit=self.junit,
            markdown=self.markdown,
            mail=self.mail,
            html=self.html,
            ktap=self.ktap,
            kcidb=self.kcidb,
            fail_undecided=self.fail_undecided,
            submission=self.submission,
        )


def judge(sides: "Sides", settings: "Settings", outputs: "Outputs", everything: bool) -> None:
    """Judge two sides and write the outputs; exits with 1 if there is a regression.

    Raises:
        FscaleError: the sides cannot be compared.
    """
    from fscale.analysis.compare.compare import compare  # noqa: PLC0415 - imports the statistics
    from fscale.analysis.formats.comparison import write  # noqa: PLC0415

    comparison = compare(sides, settings)
    write(comparison, outputs, sides, everything)
    if comparison.regressed or (outputs.fail_undecided and comparison.count("undecided")):
        raise typer.Exit(Exit.FAILED)


def judge_paired(output: Path, settings: "Settings", outputs: "Outputs", everything: bool) -> None:
    """Judge the paired run in a results directory; see `judge`."""
    from fscale.analysis.compare.sides import open_sides  # noqa: PLC0415 - imports the statistics

    judge(open_sides(output, None), settings, outputs, everything)
