# SPDX-License-Identifier: GPL-2.0-only
"""Whether fscale takes a command line, without running it."""

import itertools
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from fscale.cli import command_tree

COMMAND = command_tree()
REFUSED = ("Missing ", "No such ", "Got unexpected ")
SUBSTITUTED = re.compile(r"\$\(.*?\)")
AFTER = "();<>|&"  # what a shell or a reader takes for something else


def leaves(command: Any = COMMAND, words: str = "fscale") -> Iterator[tuple[str, Any]]:
    """All commands that do something, by their words."""
    below = getattr(command, "commands", {})
    for word, inner in below.items():
        yield from leaves(inner, f"{words} {word}")
    if not below:
        yield words, command


def words_of(arguments: str) -> list[str]:
    """The words of a command line up to a comment, a remark or another command."""
    lexer = shlex.shlex(arguments, posix=True, punctuation_chars=AFTER)
    lexer.whitespace_split = True
    return list(itertools.takewhile(lambda word: word[0] not in AFTER, lexer))


def refusal(arguments: Sequence[str]) -> str | None:
    """Why not; None where it does, also where it would complain about a file that is not here."""
    words = list(arguments)
    command, context = COMMAND, typer.Context(COMMAND, info_name="fscale")
    while words and hasattr(command, "get_command"):
        name = words.pop(0)
        found = command.get_command(context, name)
        if found is None:
            return f"there is no `fscale {' '.join(arguments)}`"
        command, context = found, typer.Context(found, parent=context, info_name=name)
    if not words:
        return None  # a sentence names a command
    try:
        command.make_context(context.info_name, words, parent=context.parent)
    except typer.Exit:
        return None  # --help
    except typer.TyperException as error:
        if error.format_message().startswith(REFUSED):
            return f"{error.format_message()} (fscale {' '.join(arguments)})"
    return None
