# SPDX-License-Identifier: GPL-2.0-only
"""The options of every command that boots a guest."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from fscale.model.limits import MOST_SECONDS

KernelTreeOption = Annotated[
    Path | None, typer.Option("--kernel-tree", help="A built kernel tree; instead of --kernel.")
]


@dataclass(frozen=True)
class GuestOptions:
    """Which kernel boots, in what guest. A field is an option of the same name."""

    kernel: Annotated[
        str,
        typer.Option(
            help="bookworm, trixie (or 6.1, 6.12), SUITE:PACKAGE, a .deb, a bzImage, a built tree."
        ),
    ] = "bookworm"
    modules: Annotated[
        Path | None,
        typer.Option(help="Of a bzImage: the directory with its lib/modules/RELEASE."),
    ] = None
    kernel_tree: KernelTreeOption = None
    module: Annotated[
        list[Path] | None, typer.Option(help="A .ko to load before the run; repeat for more.")
    ] = None
    smp: Annotated[int, typer.Option(min=1, max=255, help="Virtual CPUs.")] = 4
    memory: Annotated[str, typer.Option(help="The guest's memory, as 4G.")] = "4G"
    accel: Annotated[
        str, typer.Option(help="auto (KVM where it boots the kernel), kvm or tcg.")
    ] = "auto"
    deterministic: Annotated[
        bool,
        typer.Option(
            "--deterministic",
            help="Count instructions (icount, one thread): repeatable cost an operation, "
            "no scaling.",
        ),
    ] = False
    append: Annotated[str, typer.Option(help="More kernel parameters.")] = ""
    timeout: Annotated[
        float, typer.Option(min=1, max=MOST_SECONDS, help="Seconds after which the guest is ended.")
    ] = 3600
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print the commands; boot nothing. Set-up is still made."),
    ] = False


def guest_options(
    *omitted: str, **defaults: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a guest, as its parameter `guest: GuestOptions`.

    Fields that are `omitted` are no options of the command; `defaults` are its own.
    """

    names = {field.name for field in fields(GuestOptions)}
    if unknown := {*omitted, *defaults} - names:
        raise ValueError(f"a guest has no {', '.join(sorted(unknown))}")

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command)
        own = [p for p in signature.parameters.values() if p.name != "guest"]
        added = [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=defaults.get(field.name, field.default),
                annotation=field.type,
            )
            for field in fields(GuestOptions)
            if field.name not in omitted
        ]

        @functools.wraps(command)
        def with_options(*args: Any, **given: Any) -> None:
            guest = GuestOptions(**{p.name: given.pop(p.name) for p in added})
            command(*args, **given, guest=guest)

        # typer reads the signature.
        with_options.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*own, *added]
        )
        return with_options

    return decorate
