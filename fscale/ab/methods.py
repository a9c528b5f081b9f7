# SPDX-License-Identifier: GPL-2.0-only
"""The ways to measure two sides, with the options and the parts of a side that each supports."""

from collections.abc import Collection
from enum import Enum

import typer

from fscale.model.errors import FscaleError
from fscale.model.variant import BINARY, OF_FILESYSTEM, OF_GUEST, Variant

_ON_THIS_MACHINE = ("device", "directory", "yes_format", "binary", "wait")
_MEASURED = (
    *("suite", "workload", "cores", "media", "mode", "duration", "suite_keys", "max_minutes"),
    *("filesystem", "on", "dry_run", *_ON_THIS_MACHINE),
)
_HERE = (*OF_FILESYSTEM, BINARY)
_GUESTS = (*OF_FILESYSTEM, *OF_GUEST)


class Method(Enum):
    """A way to measure two sides: its name, the parameters that it does not support, and the parts
    of a side that it supports.
    """

    CELLS = (
        "whole repetitions on this machine",
        ("count_margin", "filesystem", "allow_different"),
        _HERE,
    )
    """also covers slices, where they are possible"""
    SLICES = "slices on this machine", ("duration", "count_margin"), _HERE
    BOOTS = (
        "guests that boot in turn",
        ("count_margin", "on", *_ON_THIS_MACHINE),
        _GUESTS,
    )
    GUEST_SLICES = (
        "slices in guests",
        ("duration", "latency_margin", "allow_different", *_ON_THIS_MACHINE),
        _GUESTS,
    )
    SIMULATED = "simulated guests", (), ("mount", "mkfs", *OF_GUEST)
    REFERENCE = "a run of the good commit and a command", _MEASURED, ()

    def __init__(self, title: str, unsupported: tuple[str, ...], parts: tuple[str, ...]) -> None:
        self.title = title
        self.unsupported = unsupported
        self.parts = parts

    def refuse_others(self, *sides: Variant) -> None:
        """FscaleError if a side has an unsupported part, or only one side names a kernel."""
        for side in sides:
            side.refuse_but(self.parts, self.title)
        lacking = [side for side in sides if not side.of_guest]
        if any(side.kernel for side in sides) or self is Method.SIMULATED:
            lacking = [side for side in sides if not side.kernel]
        if lacking and len(lacking) < len(sides):
            raise FscaleError(
                f"{lacking[0].text} names no kernel, but the other side is measured in a guest; "
                f"give each side a kernel, such as {lacking[0].name}:kernel=6.12"
            )


def method_of(*, in_guests: bool, slices: bool | None) -> Method:
    """The way to measure sides that are judged against each other."""
    if in_guests:
        return Method.GUEST_SLICES if slices else Method.BOOTS
    return Method.SLICES if slices else Method.CELLS


def refuse_here(*sides: Variant) -> None:
    """FscaleError if no side needs a guest."""
    if not any(side.of_guest for side in sides):
        raise FscaleError(
            f"{sides[0].text} and {sides[1].text} name neither a kernel nor a module; give each "
            f"side a kernel, such as {sides[0].name}:kernel=6.12, or compare them on this machine "
            "with `fscale ab`"
        )


def refuse_unsupported(context: typer.Context, way: Method) -> None:
    """FscaleError if an option was given that the way does not support."""
    refuse_given(context, way.unsupported, way.title)


def refuse_given(context: typer.Context, parameters: Collection[str], what: str) -> None:
    """FscaleError if one of `parameters` was given, none of which `what` supports."""
    named = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in parameters and _is_given(context, parameter.name)
    ]
    if named:
        raise FscaleError(f"{', '.join(named)}: not supported with {what}; leave it out")


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")
