# SPDX-License-Identifier: GPL-2.0-only
"""Numbers in sentences."""


def plural(count: int, noun: str) -> str:
    """ "1 cell", "2 cells"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
