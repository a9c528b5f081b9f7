# SPDX-License-Identifier: GPL-2.0-only
"""The kinds of options that many commands have: their form, and how they are checked."""

from typing import Any

import typer

from fscale.commands.options.writable import directory_to_write, file_to_write


def number(least: int, most: int, help_text: str, panel: str | None = None) -> Any:
    """An option with a whole number from `least` to `most`."""
    return typer.Option(min=least, max=most, metavar="N", help=help_text, rich_help_panel=panel)


def output_file(help_text: str, panel: str | None = None) -> Any:
    """An option with a file to write."""
    return typer.Option(
        callback=file_to_write, metavar="FILE", help=help_text, rich_help_panel=panel
    )


def output_directory(help_text: str, panel: str | None = None) -> Any:
    """An option with a directory to write to."""
    return typer.Option(
        callback=directory_to_write, metavar="DIR", help=help_text, rich_help_panel=panel
    )
