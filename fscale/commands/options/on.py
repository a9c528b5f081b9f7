# SPDX-License-Identifier: GPL-2.0-only
"""`--on`: the option that hands cells to an engine."""

import contextlib
from collections.abc import Iterator
from typing import Annotated, cast

import typer

from fscale.farm.engine import WHOLE_NODES, Engine, NodeEngine, open_engine
from fscale.model.errors import FscaleError
from fscale.model.helptext import PLACE
from fscale.model.terminal import say

OnOption = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="ENGINE",
        help="Run on the machines of a cluster: dask://HOST:PORT, a Dask scheduler. Default: here.",
        rich_help_panel=PLACE,
    ),
]
NodesOption = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="ENGINE",
        help="Measure on nodes of a cluster, each of which it has for itself: slurm or "
        "slurm:PARTITION. Default: here.",
        rich_help_panel=PLACE,
    ),
]


@contextlib.contextmanager
def nodes_of(on: str) -> Iterator[NodeEngine]:
    """The engine that the user named, opened.

    Raises:
        FscaleError: its machines may do other work while they measure.
    """
    if not on.startswith(WHOLE_NODES):
        raise FscaleError(
            f"--on {on}: what is measured needs a machine for itself; give --on slurm[:PARTITION]"
        )
    with open_engine(on, lambda text: say(text, error=True)) as engine:
        yield cast(NodeEngine, engine)


@contextlib.contextmanager
def engine_of(on: str | None) -> Iterator[Engine | None]:
    """The engine that the user named, opened; None for this machine."""
    if on is None:
        yield None
        return
    with open_engine(on, lambda text: say(text, error=True)) as engine:
        yield engine
