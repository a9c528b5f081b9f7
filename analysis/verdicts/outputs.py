# SPDX-License-Identifier: GPL-2.0-only
"""Writes a comparison in the forms that were asked for."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from analysis.compare.settings import Comparison
from analysis.compare.sides import Sides
from analysis.report import comparison_page
from analysis.verdicts import junit, ktap, mail, markdown, table
from fscale.model.errors import FscaleError
from fscale.model.files import write_named
from fscale.model.terminal import terminal

TERMINAL = Path("-")
PIPE_COLUMNS = 200


@dataclass(frozen=True)
class Outputs:
    """Where each form goes; None: nowhere, `-`: standard output. `json` always goes there."""

    json: bool = False
    junit: Path | None = None
    markdown: Path | None = None
    mail: Path | None = None
    html: Path | None = None
    ktap: Path | None = None

    @property
    def to_terminal(self) -> bool:
        """Whether one of the forms goes to standard output, which then must hold nothing else."""
        return self.json or TERMINAL in (self.markdown, self.mail, self.html, self.ktap)


def write(comparison: Comparison, outputs: Outputs, sides: Sides) -> None:
    """Write every form that has a path; `sides` are what was judged.

    Raises:
        FscaleError: a file cannot be written.
    """
    texts: list[tuple[Path | None, Callable[[Comparison], str]]] = [
        (TERMINAL if outputs.json else None, to_json),
        (outputs.markdown, markdown.render),
        (outputs.mail, mail.render),
        (outputs.html, lambda judged: comparison_page.page(judged, sides)),
        (outputs.ktap, ktap.render),
    ]
    try:
        for path, form in texts:
            if path == TERMINAL:
                sys.stdout.write(form(comparison))
            elif path is not None:
                write_named(path, form(comparison))
        if outputs.junit is not None:
            write_named(outputs.junit, junit.render(comparison))
    except OSError as error:
        raise FscaleError(
            f"cannot write {error.filename}: {error.strerror}; give a file that you may write"
        ) from error


def give(comparison: Comparison, outputs: Outputs, sides: Sides, everything: bool = False) -> None:
    """Write what was asked for, and print the table unless one of the forms is printed.

    Raises:
        FscaleError: a file cannot be written.
    """
    write(comparison, outputs, sides)
    if not outputs.to_terminal:
        show(comparison, everything)


def to_json(comparison: Comparison) -> str:
    """The comparison as docs/schemas/compare.schema.json describes it."""
    return comparison.model_dump_json(by_alias=True, indent=1) + "\n"


def show(comparison: Comparison, everything: bool = False) -> None:
    """Print the table; into a pipe as wide as it needs to be."""
    terminal(width=PIPE_COLUMNS).print(table.render(comparison, everything))
