# SPDX-License-Identifier: GPL-2.0-only
"""Options that several commands have in common, each with the same words in all of them."""

from pathlib import Path
from typing import Annotated

import typer

from fscale.commands.options.helptext import JUDGING, OUTPUT, PLACE, REPEATED
from fscale.commands.options.kinds import number
from fscale.commands.options.writable import results_directory
from fscale.model.limits import MOST_MINUTES, MOST_SECONDS, MOST_SEED

WHOLE_MINUTES = MOST_MINUTES // 1
"""the upper bound of minutes, without decimals in the help"""
ResultsOption = Annotated[
    Path,
    typer.Option(
        callback=results_directory,
        metavar="DIR",
        help="Results directory, created if missing. An interrupted run in it is resumed.",
    ),
]
RunSeedOption = Annotated[
    int | None,
    number(
        0,
        MOST_SEED,
        "Random seed for run order and workloads. Default: a random one, which a resumed run "
        "keeps.",
        REPEATED,
    ),
]
MinutesOption = Annotated[
    float,
    typer.Option(
        min=0.1,
        max=WHOLE_MINUTES,
        metavar="MINUTES",
        help="Stop measuring after this many minutes; points without a verdict are then undecided.",
        rich_help_panel=REPEATED,
    ),
]
WaitOption = Annotated[
    float,
    typer.Option(
        min=0,
        max=MOST_SECONDS,
        metavar="SECONDS",
        help="Wait up to this many seconds while another run uses the machine; 0 fails at once.",
        rich_help_panel=PLACE,
    ),
]
AllowOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-different",
        metavar="KEY",
        help="Compare although the runs differ in this key of the cells' definition, such as "
        "filesystems.ext4.mount_options, or in all keys that begin so; the refusal names the key. "
        "Repeatable.",
        rich_help_panel=JUDGING,
    ),
]
AllOption = Annotated[
    bool,
    typer.Option("--all", help="Also show points whose verdict is same.", rich_help_panel=OUTPUT),
]
JsonFlag = Annotated[
    bool,
    typer.Option("--json", help="Print JSON instead of a table.", rich_help_panel=OUTPUT),
]
HISTORY = Path("results/history.sqlite")
HistoryOption = Annotated[
    Path,
    typer.Option(
        "--db",
        envvar="FSCALE_HISTORY",
        metavar="FILE",
        help="Index of runs, a SQLite file.",
        show_default="results/history.sqlite",
    ),
]
