# SPDX-License-Identifier: GPL-2.0-only
"""The formats of other programs in which a run is written."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from fscale.commands.options.helptext import OUTPUT
from fscale.commands.options.kinds import output_file
from fscale.commands.options.writable import TERMINAL, refuse_same
from fscale.model.errors import FscaleError
from fscale.model.files import write_named
from fscale.model.terminal import say

if TYPE_CHECKING:
    from fscale.analysis.formats.submission import Submission


class Format(StrEnum):
    """The formats, with the names of `fscale.analysis.formats.run.FORMATS`."""

    CSV = "csv"
    JSON = "json"
    GOOGLE_BENCHMARK = "google-benchmark"
    JUNIT = "junit"
    KCIDB = "kcidb"
    KTAP = "ktap"
    OPENMETRICS = "openmetrics"


@dataclass(frozen=True)
class CellOutputs:
    """The files in which `fscale run` reports its cells."""

    junit: Annotated[
        Path | None,
        output_file("Also write JUnit XML to this file: one test case per cell.", OUTPUT),
    ] = None
    ktap: Annotated[
        Path | None,
        output_file(
            "Also write KTAP to this file: one test per cell; - is standard output, and the "
            "summary then goes to standard error.",
            OUTPUT,
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


def write(
    run: Path, outputs: Mapping[Format, Path], submission: "Submission | None" = None
) -> None:
    """Write the run of a results directory in each format; `-` is standard output.

    `submission` is what KCIDB says about the submitter and its builds.

    Raises:
        FscaleError: there is no run, or a file cannot be written.
    """
    if not outputs:
        return
    from fscale.analysis.formats import kcidb  # noqa: PLC0415 - imports the statistics
    from fscale.analysis.formats.run import FORMATS  # noqa: PLC0415
    from fscale.analysis.reader import load  # noqa: PLC0415

    results = load(run)
    for form, output in outputs.items():
        text = kcidb.render(results, submission) if form == "kcidb" else FORMATS[form](results)
        if output == TERMINAL:
            sys.stdout.write(text)
            continue
        try:
            write_named(output, text)
        except OSError as error:
            raise FscaleError(
                f"cannot write {output}: {error.strerror}; give another file"
            ) from error
    absent = {"planned cells left no result": results.missing}
    absent["files of cells cannot be read"] = len(results.unreadable)
    for what, count in absent.items():
        if count:
            say(f"note: {count} {what}", error=True)
