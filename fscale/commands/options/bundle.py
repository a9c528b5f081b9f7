# SPDX-License-Identifier: GPL-2.0-only
"""Shares options between commands: each field of a dataclass becomes an option."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

Command = Callable[..., None]


def bundle(
    parameter: str, options: type, *omitted: str, **defaults: Any
) -> Callable[[Command], Command]:
    """Give a command the fields of a dataclass as options, collected into one `parameter`.

    Each field becomes an option of the same name, described by its Annotated type. The command does
    not get the fields in `omitted`; `defaults` replace the defaults of the dataclass.

    Raises:
        ValueError: `omitted` or `defaults` names a field that the dataclass does not have.
    """
    names = {field.name for field in fields(options)}
    if unknown := {*omitted, *defaults} - names:
        raise ValueError(f"{parameter} has no field {', '.join(sorted(unknown))}")

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
            values = options(**{p.name: given.pop(p.name) for p in added})
            command(*args, **given, **{parameter: values})

        # typer takes the options from the signature.
        with_options.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*own, *added]
        )
        return with_options

    return decorate
