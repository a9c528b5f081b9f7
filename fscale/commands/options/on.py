# SPDX-License-Identifier: GPL-2.0-only
"""`--on`: the option that hands cells to an engine."""

import contextlib
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
            f"--on {on}: what is measured needs a machine for itself; give --on ssh:HOST or --on "
            "slurm[:PARTITION]"
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
    if on is not None and name_of(on) != "ssh":
        raise FscaleError(f"--on {on}: not the name of one machine; give --on ssh:HOST")
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
        help="Boot two kernels in turn on the machine ssh:HOST, or guests that count instructions "
        "on the machines of a Dask scheduler: dask://HOST:PORT. Default: here.",
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
        "HOST`; slurm or slurm:PARTITION, nodes of a cluster. Default: here.",
        rich_help_panel=PLACE,
    ),
]
MachineOption = Annotated[
    str | None,
    typer.Option(
        "--on",
        callback=check_machine,
        metavar="ssh:HOST",
        help="The machine, with HOST as in `ssh HOST`. Default: this one.",
        rich_help_panel=PLACE,
    ),
]

BootingOption = Annotated[
    str | None,
    typer.Option(
        "--on",
        callback=check_machine,
        metavar="ssh:HOST",
        help="Boot the kernel of the side on that machine for each repetition, with HOST as in "
        "`ssh HOST`. Default: measure here, without boots.",
        rich_help_panel=PLACE,
    ),
]
AbOption = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="ENGINE",
        help="Measure on a node of a cluster, which it has for itself: slurm or slurm:PARTITION; "
        "boot two kernels in turn on the machine ssh:HOST; "
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
def nodes_of(on: str) -> Iterator[NodeEngine]:
    """The engine that the user named for what is measured, opened."""
    with open_engine(on, lambda text: say(text, error=True)) as engine:
        yield cast(NodeEngine, engine)


@contextlib.contextmanager
def booting(on: str) -> Iterator[BootingEngine]:
    """The machine that the user named for kernels, opened."""
    with nodes_of(on) as engine:
        yield cast(BootingEngine, engine)


@contextlib.contextmanager
def engine_of(on: str | None) -> Iterator[Engine | None]:
    """The engine that the user named for what is counted, opened; None for this machine."""
    if on is None:
        yield None
        return
    with open_engine(on, lambda text: say(text, error=True)) as engine:
        yield engine
