# SPDX-License-Identifier: GPL-2.0-only
"""`--on`: the option that hands cells to an engine."""

import contextlib
import time
from collections.abc import Iterator
from typing import Annotated, cast

import typer

from fscale.commands.options.helptext import PLACE
from fscale.farm.engine import (
    BOOTING,
    WHOLE_NODES,
    BootingEngine,
    Engine,
    NodeEngine,
    name_of,
    open_engine,
)
from fscale.model.errors import FscaleError
from fscale.model.terminal import print_line, say

RETRY_SECONDS = 5.0


def check_workers(on: str | None) -> str | None:
    """Check an engine that is to run what is counted.

    Raises:
        FscaleError: there is no such engine, or it gives each task a machine for itself.
    """
    if on is not None and name_of(on) in WHOLE_NODES:
        raise FscaleError(
            f"--on {on}: a machine for itself is for cells that are measured; what is counted "
            "disturbs nobody, so give --on dask://HOST:PORT"
        )
    return on


def check_nodes(on: str | None) -> str | None:
    """Check an engine that is to measure.

    Raises:
        FscaleError: there is no such engine, or its machines may do other work meanwhile.
    """
    if on is not None and name_of(on) not in WHOLE_NODES:
        raise FscaleError(
            f"--on {on}: what is measured needs a machine for itself; give --on ssh:HOST, "
            "labgrid:PLACE or slurm[:PARTITION]"
        )
    return on


def refuse_machine(on: str | None) -> None:
    """Refuse a machine that boots kernels for a comparison of something else.

    Raises:
        FscaleError: `on` is such a machine.
    """
    if on is not None and name_of(on) in BOOTING:
        raise FscaleError(
            f"--on {on}: kernels are compared there, such as ext4:kernel=6.12 and ext4:kernel=DIR; "
            "for anything else run this command on that machine itself"
        )


def check_machine(on: str | None) -> str | None:
    """Check an engine that is to be one machine.

    Raises:
        FscaleError: there is no such engine, or it has several.
    """
    if on is not None and name_of(on) not in BOOTING:
        raise FscaleError(
            f"--on {on}: not the name of one machine; give --on ssh:HOST or --on labgrid:PLACE"
        )
    return on


OnOption = Annotated[
    str | None,
    typer.Option(
        "--on",
        callback=check_workers,
        metavar="ENGINE",
        help="Run on the machines of a cluster: dask://HOST:PORT, a Dask scheduler. Default: here.",
        rich_help_panel=PLACE,
    ),
]
BisectOption = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="ENGINE",
        help="Boot two kernels in turn on the machine ssh:HOST or labgrid:PLACE, or guests that "
        "count instructions on the machines of a Dask scheduler: dask://HOST:PORT. Default: here.",
        rich_help_panel=PLACE,
    ),
]
NodesOption = Annotated[
    str | None,
    typer.Option(
        "--on",
        callback=check_nodes,
        metavar="ENGINE",
        help="Measure on another machine, which it has for itself: ssh:HOST, with HOST as in `ssh "
        "HOST`; labgrid:PLACE, whose machine ssh reaches; slurm or slurm:PARTITION, nodes of a "
        "cluster. Default: here.",
        rich_help_panel=PLACE,
    ),
]
MachineOption = Annotated[
    str | None,
    typer.Option(
        "--on",
        callback=check_machine,
        metavar="MACHINE",
        help="The machine: ssh:HOST, with HOST as in `ssh HOST`, or labgrid:PLACE. Default: this "
        "one.",
        rich_help_panel=PLACE,
    ),
]

BootingOption = Annotated[
    str | None,
    typer.Option(
        "--on",
        callback=check_machine,
        metavar="MACHINE",
        help="Boot the kernel of the side on that machine for each repetition: ssh:HOST, with HOST "
        "as in `ssh HOST`, or labgrid:PLACE. Default: measure here, without boots.",
        rich_help_panel=PLACE,
    ),
]
AbOption = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="ENGINE",
        help="Measure on a node of a cluster, which it has for itself: slurm or slurm:PARTITION; "
        "boot two kernels in turn on the machine ssh:HOST or labgrid:PLACE; "
        "or boot guests that count instructions on the machines of a Dask scheduler: "
        "dask://HOST:PORT. Default: here.",
        rich_help_panel=PLACE,
    ),
]


def print_place(on: str | None, what: str) -> None:
    """Print where a dry run would run `what`; nothing if here."""
    if on is not None:
        print_line(f"# {what} would run on {on}; the plan is this machine's")


@contextlib.contextmanager
def nodes_of(on: str, wait: float = 0) -> Iterator[NodeEngine]:
    """The engine that the user named for what is measured, opened.

    A single machine that somebody else holds, or that boots, is waited for up to `wait` seconds.
    """
    deadline = time.monotonic() + wait * (name_of(on) in BOOTING)
    with contextlib.ExitStack() as stack:
        yield cast(NodeEngine, _entered(stack, on, deadline))


def _entered(stack: contextlib.ExitStack, on: str, deadline: float) -> Engine:
    told = False
    while True:
        try:
            return stack.enter_context(open_engine(on, _say))
        except FscaleError as error:
            left = deadline - time.monotonic()
            if left <= 0:
                raise
            if not told:
                _say(f"waiting up to {left:.0f} s: {error}")
                told = True
            time.sleep(min(left, RETRY_SECONDS))


@contextlib.contextmanager
def booting(on: str, wait: float = 0) -> Iterator[BootingEngine]:
    """The machine that the user named for kernels, opened; see `nodes_of`."""
    with nodes_of(on, wait) as engine:
        yield cast(BootingEngine, engine)


@contextlib.contextmanager
def engine_of(on: str | None) -> Iterator[Engine | None]:
    """The engine that the user named for what is counted, opened; None for this machine."""
    if on is None:
        yield None
        return
    with open_engine(on, _say) as engine:
        yield engine


def _say(text: str) -> None:
    say(text, error=True)
