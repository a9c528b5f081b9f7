# SPDX-License-Identifier: GPL-2.0-only
"""Chooses cells of a run by the names of workloads and file systems."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated

import typer

from fscale.analysis.reader import Results
from fscale.model import variant
from fscale.model.catalogue import split_filesystems, suggest
from fscale.model.errors import FscaleError

ChosenWorkloads = Annotated[
    str | None,
    typer.Option(metavar="NAME,...", help="Workloads, separated by commas. Default: all."),
]
ChosenFilesystems = Annotated[
    str | None,
    typer.Option("--fs", metavar="FS,...", help="File systems, separated by commas. Default: all."),
]


def choose(results: Results, workload: str | None, fs: str | None) -> Results:
    """Return the results with only the cells of these workloads and file systems.

    Raises:
        FscaleError: the run did not measure a name, or no selected cell has a result.
    """
    cells = results.cells
    workloads = _names("workload", workload, (c.key.workload for c in cells))
    filesystems = filesystems_of(fs, (c.key.filesystem for c in cells))
    left = tuple(
        c for c in cells if c.key.workload in workloads and c.key.filesystem in filesystems
    )
    chosen = replace(results, cells=left)
    if not chosen.scored:
        raise FscaleError(
            f"no selected cell in {results.path} has a result; `fscale report {results.path}` "
            "lists the reasons"
        )
    return chosen


def filesystems_of(asked: str | None, measured: Iterable[str]) -> set[str]:
    """The measured file systems that were asked for; None asks for all.

    Raises:
        FscaleError: one of them was not measured.
    """
    # As `fscale run` accepts them, so with braces and blanks, too.
    written = asked and ",".join(map(variant.label, split_filesystems(asked)))
    return _names("file system", written, measured)


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
    """Split names at commas; a known name may itself contain commas."""
    whole, words = set(known), [word.strip() for word in text.split(",")]
    prefixes = []
    while words:
        ends = (n for n in range(len(words), 0, -1) if ",".join(words[:n]) in whole)
        length = next(ends, 1)
        prefixes.append(",".join(words[:length]))
        words = words[length:]
    return [name for name in prefixes if name]
