# SPDX-License-Identifier: GPL-2.0-only
"""The files in which `fscale run` reports its cells."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fscale.commands.export import Format
from fscale.model.helptext import OUTPUT
from fscale.system.outputs import file_to_write, refuse_same


@dataclass(frozen=True)
class CellOutputs:
    """The files in which `fscale run` reports its cells."""

    junit: Annotated[
        Path | None,
        typer.Option(
            callback=file_to_write,
            metavar="FILE",
            help="Also write JUnit XML to this file: one test case per cell.",
            rich_help_panel=OUTPUT,
        ),
    ] = None
    ktap: Annotated[
        Path | None,
        typer.Option(
            callback=file_to_write,
            metavar="FILE",
            help="Also write KTAP to this file: one test per cell; - is standard output, and the "
            "summary then goes to standard error.",
            rich_help_panel=OUTPUT,
        ),
    ] = None

    @property
    def files(self) -> dict[Format, Path]:
        """The formats with their files.

        Raises:
            FscaleError: both name the same file.
        """
        refuse_same({"--junit": self.junit, "--ktap": self.ktap})
        told = {Format.JUNIT: self.junit, Format.KTAP: self.ktap}
        return {form: path for form, path in told.items() if path is not None}
