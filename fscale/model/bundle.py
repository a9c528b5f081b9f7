# SPDX-License-Identifier: GPL-2.0-only
"""Options that several commands have in common: the fields of a dataclass."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

Command = Callable[..., None]


def bundle(
    parameter: str, options: type, *omitted: str, **defaults: Any
) -> Callable[[Command], Command]:
    """Give a command the options of a dataclass, as one parameter of that name.

    A field is an option of the same name, with what its Annotated type says of it. Fields that are
    `omitted` are no options of the command; `defaults` are its own. ValueError for others.
    """
    names = {field.name for field in fields(options)}
    if unknown := {*omitted, *defaults} - names:
        raise ValueError(f"{parameter} has no {', '.join(sorted(unknown))}")

    def decorate(command: Command) -> Command:
        signature = inspect.signature(command)
        own = [p for p in signature.parameters.values() if p.name != parameter]
        added = [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=defaults.get(field.name, field.default),
                annotation=field.type,
            )
            for field in fields(options)
            if field.name not in omitted
        ]

        @functools.wraps(command)
        def with_options(*args: Any, **given: Any) -> None:
            found = options(**{p.name: given.pop(p.name) for p in added})
            command(*args, **given, **{parameter: found})

        # typer reads the signature.
        with_options.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*own, *added]
        )
        return with_options

    return decorate
