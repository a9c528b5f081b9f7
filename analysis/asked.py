# SPDX-License-Identifier: GPL-2.0-only
"""What the command of a run named, as it named it."""

import shlex

from fscale.analysis.reader import as_typed
from fscale.model import variant
from fscale.model.argv import values
from fscale.model.catalogue import split_filesystems
from fscale.model.errors import FscaleError
from fscale.model.results import Run


def words(run: Run) -> list[str]:
    """The words of a run's command as its user typed them; empty if there are none."""
    try:
        return shlex.split(as_typed(run.command[0]))
    except (IndexError, ValueError):
        return []


def filesystem(run: Run, label: str) -> str:
    """The text by which `--fs` named a file system; the label, as far as that is not known.

    A label lacks the blanks of mkfs arguments and the directory of a TOML file.
    """
    for text in values(words(run), "--fs"):
        try:
            named = split_filesystems(text)
        except FscaleError:
            continue
        for one in named:
            if variant.label(one) == label:
                return one
    return label
