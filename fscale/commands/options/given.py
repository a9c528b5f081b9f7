# SPDX-License-Identifier: GPL-2.0-only
"""Which options a user gave: those that a command would ignore are refused."""

from collections.abc import Collection

import typer

from fscale.model.errors import FscaleError


def refuse_given(context: typer.Context, parameters: Collection[str], what: str) -> None:
    """Refuse the options among `parameters`, none of which `what` supports.

    Raises:
        FscaleError: at least one was given; the text names all of them.
    """
    named = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in parameters and is_given(context, parameter.name)
    ]
    if named:
        raise FscaleError(f"{', '.join(named)}: not supported with {what}; leave it out")


def is_given(context: typer.Context, parameter: str) -> bool:
    """Return whether the user gave an option, instead of leaving it at its default."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")
