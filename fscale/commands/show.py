# SPDX-License-Identifier: GPL-2.0-only
"""`fscale show`: the curves and the matrix of a run in the terminal."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from analysis.reader import Results, load
from fscale.model.catalogue import suggest
from fscale.model.errors import FscaleError
from fscale.model.terminal import only_ascii, terminal

_EPILOG = """
Examples:\n\n
fscale show results/today\n\n
fscale show results/today --workload MWCL --fs ext4,xfs   (one plot, with its figures)\n\n
fscale show results/today | less\n\n
fscale show results/today --ascii   (of its own accord where the locale has no UTF-8)
"""


def _show(
    run: Annotated[Path, typer.Argument(help="A results directory.")],
    workload: Annotated[
        str | None, typer.Option(help="Workloads, comma-separated; all without it.")
    ] = None,
    fs: Annotated[
        str | None, typer.Option("--fs", help="File systems, comma-separated; all without it.")
    ] = None,
    ascii_only: Annotated[
        bool, typer.Option("--ascii", help="Draw with ASCII alone, as on a dumb terminal.")
    ] = False,
) -> None:
    """Draw the curves of a run, and which of its points scale, as text.

    Marks tell the file systems apart without colours; there are none with NO_COLOR or in a pipe.
    The lines are as long as the terminal is wide (COLUMNS in a pipe, else 80).
    """
    # Matplotlib takes a second to load.
    from analysis.report.members import Member  # noqa: PLC0415
    from analysis.report.section import Report  # noqa: PLC0415
    from analysis.show.run import drawn  # noqa: PLC0415

    results = _chosen(load(run), workload, fs)
    console = terminal(ascii_only=ascii_only or only_ascii())
    for part in drawn(Report((Member(results),), run), console.width, console.height):
        console.print(part)


def _chosen(results: Results, workload: str | None, fs: str | None) -> Results:
    """The results with the cells of these workloads and file systems alone.

    Raises:
        FscaleError: a name is not measured in the run, or nothing that is left has a figure.
    """
    cells = results.cells
    workloads = _names("workload", workload, (c.key.workload for c in cells))
    filesystems = _names("file system", fs, (c.key.filesystem for c in cells))
    left = tuple(
        c for c in cells if c.key.workload in workloads and c.key.filesystem in filesystems
    )
    chosen = replace(results, cells=left)
    if not chosen.scored:
        raise FscaleError(
            f"no cell of these in {results.path} has a figure; `fscale report {results.path}` "
            "lists what became of each"
        )
    return chosen


def _names(what: str, asked: str | None, measured: Iterable[str]) -> set[str]:
    known = dict.fromkeys(measured)
    if asked is None:
        return set(known)
    wanted = _split(asked, known)
    for name in wanted:
        if name not in known:
            raise FscaleError(f"the run has no {what} {name}{suggest(name, known)}")
    return set(wanted)


def _split(text: str, known: Iterable[str]) -> list[str]:
    """The names of a text with commas; a name that is known may have some itself."""
    names, words = set(known), [word.strip() for word in text.split(",")]
    found = []
    while words:
        ends = (n for n in range(len(words), 0, -1) if ",".join(words[:n]) in names)
        length = next(ends, 1)
        found.append(",".join(words[:length]))
        words = words[length:]
    return [name for name in found if name]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("show", epilog=_EPILOG)(_show)
