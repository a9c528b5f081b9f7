# SPDX-License-Identifier: GPL-2.0-only
"""Reads options out of a command line that another program will parse."""

import itertools
from collections.abc import Iterator, Sequence


def values(arguments: Sequence[str], option: str) -> Iterator[str]:
    """Yield the values of an option, given as `--option VALUE` or `--option=VALUE`."""
    for argument, after in itertools.zip_longest(arguments, arguments[1:]):
        if argument == option and after is not None:
            yield after
        elif argument.startswith(f"{option}="):
            yield argument.removeprefix(f"{option}=")
