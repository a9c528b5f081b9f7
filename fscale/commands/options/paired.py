# SPDX-License-Identifier: GPL-2.0-only
"""Options of the commands that measure two sides in turn."""

from typing import TYPE_CHECKING, Annotated

import typer

from fscale.commands.options.helptext import REPEATED
from fscale.model.terminal import say

if TYPE_CHECKING:
    from fscale.ab.plan import Plan

BaseOption = Annotated[
    str,
    typer.Option(
        metavar="SIDE", help="Side A, the baseline, such as ext4; the syntax is described below."
    ),
]
NewOption = Annotated[
    str,
    typer.Option(metavar="SIDE", help="Side B, which is judged, such as ext4:mount=data=journal."),
]
SlicesOption = Annotated[
    bool | None,
    typer.Option(
        "--slices/--whole",
        help="--slices: mount both sides at once, or boot both guests at once, and alternate "
        "between them every few milliseconds, whatever --duration is. --whole: alternate whole "
        "repetitions, or boots. Default: slices where both sides support them, in guests boots.",
        rich_help_panel=REPEATED,
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Print the commands of the first round and exit.")
]


def warn_ignored_duration(plan: "Plan", duration: float | None) -> None:
    """Print which workloads ignore --duration because they are measured in slices."""
    sliced = dict.fromkeys(p.base.load for p in plan.points if p.slicing)
    if duration is not None and sliced:
        say(
            f"note: --duration has no effect on {', '.join(sliced)}, measured in slices; --whole "
            "measures whole repetitions",
            error=True,
        )
