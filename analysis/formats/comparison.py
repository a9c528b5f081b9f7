# SPDX-License-Identifier: GPL-2.0-only
"""The formats of a comparison."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fscale.analysis.compare.model import Comparison
from fscale.analysis.compare.sides import Sides
from fscale.analysis.formats import console, junit, kcidb, ktap, mail, markdown
from fscale.analysis.formats.submission import Submission
from fscale.analysis.formats.verdicts import measured_seconds
from fscale.analysis.report import comparison_page
from fscale.model.errors import FscaleError
from fscale.model.files import write_named
from fscale.model.terminal import only_ascii, terminal

TERMINAL = Path("-")


@dataclass(frozen=True)
class Outputs:
    """The file of each format; None: none, `-`: standard output. `json` always goes there."""

    json: bool = False
    junit: Path | None = None
    markdown: Path | None = None
    mail: Path | None = None
    html: Path | None = None
    ktap: Path | None = None
    kcidb: Path | None = None
    fail_undecided: bool = False
    """whether an undecided judgement is an error in JUnit, KTAP and KCIDB"""
    submission: Submission = field(default_factory=Submission)
    """who submits to KernelCI, and of which build"""

    @property
    def to_terminal(self) -> bool:
        """Whether a format goes to standard output, which then must hold nothing else."""
        files = (self.junit, self.markdown, self.mail, self.html, self.ktap, self.kcidb)
        return self.json or TERMINAL in files


def write(comparison: Comparison, outputs: Outputs, sides: Sides, everything: bool = False) -> None:
    """Write the requested formats; print the table unless a format goes to standard output.

    Raises:
        FscaleError: a file cannot be written.
    """
    seconds = measured_seconds(sides)
    undecided = outputs.fail_undecided
    architecture = sides.new_results.run.machine.architecture
    texts: list[tuple[Path | None, Callable[[Comparison], str]]] = [
        (TERMINAL if outputs.json else None, to_json),
        (outputs.markdown, markdown.render),
        (outputs.mail, mail.render),
        (outputs.html, lambda judged: comparison_page.page(judged, sides)),
        (outputs.ktap, lambda judged: ktap.render_comparison(judged, undecided)),
        (outputs.junit, lambda judged: junit.render_comparison(judged, undecided, seconds)),
        (
            outputs.kcidb,
            lambda judged: kcidb.render_comparison(
                judged,
                outputs.submission,
                architecture,
                fail_undecided=undecided,
                seconds=seconds,
            ),
        ),
    ]
    try:
        for path, render in texts:
            if path is not None:
                write_text(path, render(comparison))
    except OSError as error:
        raise FscaleError(
            f"cannot write {error.filename}: {error.strerror}; give a path that you can write to"
        ) from error
    if not outputs.to_terminal:
        print_table(comparison, everything)


def write_text(path: Path, text: str) -> None:
    """Write a file, or standard output for `-`; OSError if the file cannot be written."""
    if path == TERMINAL:
        sys.stdout.write(text)
    else:
        write_named(path, text)


def to_json(comparison: Comparison) -> str:
    """The comparison as `fscale schema compare` describes it."""
    return comparison.model_dump_json(by_alias=True, indent=1) + "\n"


def print_table(comparison: Comparison, everything: bool = False) -> None:
    """Print the answer and the table."""
    terminal(ascii_only=only_ascii()).print(console.render(comparison, everything))
