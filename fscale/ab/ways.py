# SPDX-License-Identifier: GPL-2.0-only
"""The ways to measure two sides: which options of a comparison and parts of a side each heeds."""

from collections.abc import Collection
from enum import Enum

import typer

from fscale.model.errors import FscaleError
from fscale.model.variant import BINARY, OF_FILESYSTEM, OF_GUEST, Variant

_ON_THIS_MACHINE = ("device", "directory", "yes_format", "binary", "wait", "dry_run")
_MEASURED = (
    *("suite", "workload", "cores", "media", "mode", "duration", "suite_keys", "max_minutes"),
    *("filesystem", *_ON_THIS_MACHINE),
)
_HERE = (*OF_FILESYSTEM, BINARY)
_GUESTS = (*OF_FILESYSTEM, *OF_GUEST)


class Way(Enum):
    """How two sides are measured: what it is called, the parameters that mean nothing in it, and
    the parts of a side that it heeds.
    """

    CELLS = (
        "whole repetitions on this machine",
        ("count_margin", "filesystem", "allow_different"),
        _HERE,
    )
    """also slices where they can be"""
    SLICES = "slices on this machine", ("duration", "count_margin"), _HERE
    BOOTS = (
        "guests that boot in turn",
        ("count_margin", *_ON_THIS_MACHINE),
        _GUESTS,
    )
    GUEST_SLICES = (
        "slices in guests",
        ("duration", "allow_different", *_ON_THIS_MACHINE),
        _GUESTS,
    )
    SIMULATED = "simulated guests", (), ("mount", "mkfs", *OF_GUEST)
    REFERENCE = "a run of the good commit and a command", _MEASURED, ()

    def __init__(self, title: str, unheeded: tuple[str, ...], parts: tuple[str, ...]) -> None:
        self.title = title
        self.unheeded = unheeded
        self.parts = parts

    def refuse_others(self, *sides: Variant) -> None:
        """FscaleError where a side has a part that is not heeded, or one kernel of two is named."""
        for side in sides:
            side.refuse_but(self.parts, self.title)
        lacking = [side for side in sides if not side.of_guest]
        if any(side.kernel for side in sides) or self is Way.SIMULATED:
            lacking = [side for side in sides if not side.kernel]
        if lacking and len(lacking) < len(sides):
            raise FscaleError(
                f"{lacking[0].text}: it names no kernel, and the other side is measured in a "
                f"guest; give each side its kernel, such as {lacking[0].name}:kernel=6.12"
            )


def way_of(*, in_guests: bool, slices: bool | None) -> Way:
    """How sides are measured that are judged at once."""
    if in_guests:
        return Way.GUEST_SLICES if slices else Way.BOOTS
    return Way.SLICES if slices else Way.CELLS


def refuse_here(*sides: Variant) -> None:
    """FscaleError where no side has to run in a guest."""
    if not any(side.of_guest for side in sides):
        raise FscaleError(
            f"{sides[0].text} and {sides[1].text} name no kernel and no module: give each side its "
            f"kernel, such as {sides[0].name}:kernel=6.12, or compare them here with `fscale ab`"
        )


def refuse_unheeded(context: typer.Context, way: Way) -> None:
    """FscaleError that names the options that were given and that a way does not heed."""
    refuse_given(context, way.unheeded, way.title)


def refuse_given(context: typer.Context, parameters: Collection[str], what: str) -> None:
    """FscaleError that names those of some parameters that were given and are not for `what`."""
    named = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in parameters and _is_given(context, parameter.name)
    ]
    if named:
        raise FscaleError(f"{', '.join(named)}: not for {what}; leave it out")


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")
