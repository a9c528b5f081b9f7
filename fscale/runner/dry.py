# SPDX-License-Identifier: GPL-2.0-only
"""Prints the lines of `--dry-run`."""

import os
import sys

import typer


def print_line(line: str) -> None:
    """Print a line; if the reader has closed the pipe (`| head`), drop all further lines."""
    try:
        typer.echo(line)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
