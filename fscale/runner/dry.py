# SPDX-License-Identifier: GPL-2.0-only
"""What `--dry-run` prints."""

import os
import sys

import typer


def tell(line: str) -> None:
    """Print a line; a reader that has seen enough (`| head`) is no error of the machine."""
    try:
        typer.echo(line)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
