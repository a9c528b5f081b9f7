# SPDX-License-Identifier: GPL-2.0-only
"""The forms in which a comparison is written."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fscale.commands.history import JsonFlag
from fscale.system.outputs import TERMINAL, file_to_write, refuse_same

if TYPE_CHECKING:
    from analysis.verdicts.outputs import Outputs


@dataclass(frozen=True)
class OutputOptions:
    """The forms in which a comparison is written."""

    as_json: JsonFlag = False
    junit: Annotated[Path | None, typer.Option(callback=file_to_write, help="Write JUnit XML.")] = (
        None
    )
    markdown: Annotated[
        Path | None,
        typer.Option(
            callback=file_to_write, help="Write Markdown for a pull request; - is the terminal."
        ),
    ] = None
    mail: Annotated[
        Path | None,
        typer.Option(
            callback=file_to_write,
            help="Write plain text of 72 columns for a mailing list; - is the terminal.",
        ),
    ] = None
    html: Annotated[
        Path | None,
        typer.Option(
            callback=file_to_write, help="Write a page: verdicts, ratios drawn, curves of both."
        ),
    ] = None
    ktap: Annotated[
        Path | None, typer.Option(callback=file_to_write, help="Write KTAP; - is the terminal.")
    ] = None

    @property
    def outputs(self) -> "Outputs":
        """Where they go; FscaleError where two go to the same place."""
        from analysis.verdicts.outputs import Outputs  # noqa: PLC0415 - it brings in the statistics

        named = {"--junit": self.junit, "--markdown": self.markdown, "--mail": self.mail}
        named |= {"--html": self.html, "--ktap": self.ktap}
        refuse_same(named | {"--json": TERMINAL if self.as_json else None})
        return Outputs(self.as_json, self.junit, self.markdown, self.mail, self.html, self.ktap)
