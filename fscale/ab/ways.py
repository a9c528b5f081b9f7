# SPDX-License-Identifier: GPL-2.0-only
"""The ways to measure two sides, and which options of a comparison each cannot heed."""

from enum import Enum

import typer

from fscale.model.errors import FscaleError

_ON_THIS_MACHINE = ("device", "directory", "yes_format", "binary", "wait", "dry_run")
_MEASURED = (
    *("suite", "workload", "cores", "media", "mode", "duration", "suite_keys", "max_minutes"),
    *("filesystem", *_ON_THIS_MACHINE),
)


class Way(Enum):
    """How two sides are measured: what it is called, and the parameters that mean nothing in it."""

    CELLS = "whole repetitions on this machine", ("count_margin", "filesystem", "allow_different")
    """also slices where they can be"""
    SLICES = "slices on this machine", ("duration", "count_margin")
    BOOTS = "guests that boot in turn", ("max_minutes", "count_margin", *_ON_THIS_MACHINE)
    UNJUDGED_BOOTS = (
        "guests that boot in turn, to be judged by `fscale compare`",
        ("max_minutes", "metric", "margin", "count_margin", "fdr"),
    )
    GUEST_SLICES = "slices in guests", ("duration", "allow_different", *_ON_THIS_MACHINE)
    REFERENCE = "a run of the good commit and a command", _MEASURED

    def __init__(self, title: str, unheeded: tuple[str, ...]) -> None:
        self.title = title
        self.unheeded = unheeded


def refuse_unheeded(context: typer.Context, way: Way) -> None:
    """FscaleError that names the options that were given and that a way does not heed."""
    named = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in way.unheeded and _is_given(context, parameter.name)
    ]
    if named:
        raise FscaleError(f"{', '.join(named)}: not for {way.title}; leave it out")


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")
