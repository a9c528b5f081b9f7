# SPDX-License-Identifier: GPL-2.0-only
"""Reads command lines that other programs will run."""

import itertools
import shlex
from collections.abc import Iterator, Sequence

from fscale.model.errors import FscaleError


def values(arguments: Sequence[str], option: str) -> Iterator[str]:
    """Yield the values of an option, given as `--option VALUE` or `--option=VALUE`."""
    for argument, after in itertools.zip_longest(arguments, arguments[1:]):
        if argument == option and after is not None:
            yield after
        elif argument.startswith(f"{option}="):
            yield argument.removeprefix(f"{option}=")


def split(text: str, context: str) -> list[str]:
    """Split a text into words as a shell does.

    Raises:
        FscaleError: a quote is not closed; the message begins with `context`.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise FscaleError(f"{context}: {error}; quote it as in a shell") from None
