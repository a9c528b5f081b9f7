# SPDX-License-Identifier: GPL-2.0-only
"""How `--help` is laid out: the headings of groups of options, and paragraphs that wrap.

Options that nearly every command line needs have no heading; `--help` shows them first.
"""

import inspect
import io
import sys
import textwrap
from collections.abc import Callable
from copy import copy
from typing import Annotated, Any, get_args

from typer import Context
from typer._click.exceptions import UsageError
from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo

from fscale.model.terminal import only_ascii, say

MEASURED = "What is measured"
TESTED = "What is tested"
REPEATED = "Repetitions and order"
PLACE = "Where it is measured"
JUDGING = "Judging"
OUTPUT = "Output"
GUESTS = "Guests"
SIMULATION = "Simulation"
_ORDER = (MEASURED, TESTED, PLACE, REPEATED, SIMULATION, GUESTS, JUDGING, OUTPUT)
MAX_UNGROUPED = 12
"""up to this many options need no headings"""
INDENT = " " * 4
NOTE = "fscale.note"
"""what a callback of an option leaves in `Context.meta` for the user, if the command begins"""


_MISTAKES = {
    "Input should be a valid number, unable to parse string as a number": "give a number, without "
    "a unit",
    "Input should be a valid integer, unable to parse string as an integer": "give a whole number, "
    "without a unit",
    "Got unexpected extra argument": "separate several values of an option by commas; unexpected "
    "argument",
}


class _Help:
    """Shows flags without a value, and panels that a terminal without UTF-8 can draw."""

    def format_help(self, ctx: Context, formatter: Any) -> None:
        """Print the help; rich draws in ASCII where the stream says that it has nothing else."""
        for parameter in self.get_params(ctx):  # type: ignore[attr-defined]
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        if only_ascii() and isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="ascii", errors="replace")
        super().format_help(ctx, formatter)  # type: ignore[misc]

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse a command line; mistakes are told in the words of this command line."""
        try:
            return super().parse_args(ctx, args)  # type: ignore[misc, no-any-return]
        except UsageError as error:
            for theirs, ours in _MISTAKES.items():
                error.message = error.message.replace(theirs, ours)
            raise


class Command(_Help, TyperCommand):  # type: ignore[misc]  # typer hides its Context
    """A command."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command, whose command line has no mistakes, and print what was noted of it."""
        if note := ctx.meta.get(NOTE):
            say(note, error=True)
        return super().invoke(ctx)


class Group(_Help, TyperGroup):  # type: ignore[misc]
    """A command with subcommands."""


def group_options(command: Callable[..., Any]) -> None:
    """Give the options of a command the order of their headings, which is the same in all.

    A command with few options has no headings.
    """
    signature = inspect.signature(command)
    # By keyword: typer passes parameters so, and their order is then free.
    parameters = [
        p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in signature.parameters.values()
    ]
    if sum(any(isinstance(i, OptionInfo) for i in _infos(p)) for p in parameters) > MAX_UNGROUPED:
        parameters.sort(key=_place)
    else:
        parameters = [_without_heading(p) for p in parameters]
    command.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=parameters
    )


def _infos(parameter: inspect.Parameter) -> tuple[Any, ...]:
    return getattr(parameter.annotation, "__metadata__", ())


def _place(parameter: inspect.Parameter) -> int:
    headings = [h for i in _infos(parameter) if (h := getattr(i, "rich_help_panel", None))]
    return 1 + _ORDER.index(headings[0]) if headings else 0


def _without_heading(parameter: inspect.Parameter) -> inspect.Parameter:
    if not _place(parameter):
        return parameter
    infos = [copy(info) for info in _infos(parameter)]  # other commands have the same
    for info in infos:
        info.rich_help_panel = None
    hint: Any = Annotated
    return parameter.replace(annotation=hint[(get_args(parameter.annotation)[0], *infos)])


def laid_out(text: str) -> str:
    """A help text in which each paragraph is one line, for the terminal to wrap.

    Indented lines, such as examples, remain lines of their own, without the indentation.
    """
    paragraphs = (p for p in inspect.cleandoc(text).split("\n\n") if p.strip())
    return "\n\n".join(map(_joined, paragraphs))


def _joined(paragraph: str) -> str:
    lines = paragraph.strip("\n").splitlines()
    if all(line.startswith(INDENT) for line in lines):
        return textwrap.dedent("\n".join(lines))
    return " ".join(line.strip() for line in lines)
