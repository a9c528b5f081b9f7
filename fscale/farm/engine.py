# SPDX-License-Identifier: GPL-2.0-only
"""What an engine does for us, and which there are (`--on`)."""

import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from fscale.farm.answer import Answer
from fscale.farm.bootable import Bootable
from fscale.farm.controls import Controls
from fscale.farm.objects import Objects
from fscale.farm.task import Task
from fscale.model.errors import FscaleError

Say = Callable[[str], None]


class Engine(Protocol):
    """Hands tasks to machines. Plan, order, resume, progress and judgement are not its business.

    An engine is used as a context manager; at its end the tasks that have not been answered are
    cancelled, as after Ctrl-C.
    """

    @property
    def slots(self) -> int:
        """The number of tasks that it can run at the same time now; at least 1."""

    def submit(self, tasks: Sequence[Task], objects: Objects) -> None:
        """Accept tasks. `objects` has the input files that they name.

        Raises:
            FscaleError: the cluster cannot be reached, or none of its machines may be used.
        """

    def collect(self) -> Iterator[Answer]:
        """Yield an answer for each submitted task, in the order in which they end.

        A task of a machine that died is run again elsewhere, and yields once. An answer without
        cells and with an exit code says that the task failed.

        Raises:
            FscaleError: no machine is left that could run the rest.
        """


class NodeEngine(Engine, Protocol):
    """An engine that gives each task a machine for itself."""

    @property
    def shares_files(self) -> bool:
        """Whether its machines have the files of this one in the same places."""

    def cancel(self) -> list[Answer]:
        """Cancel the tasks that have not been answered, and wait until their machines are restored.

        Return the answers of those that had stored something before.
        """


class BootingEngine(NodeEngine, Protocol):
    """An engine of one machine, which boots the kernels that it is given.

    When it is opened, it restores what a killed command left.
    """

    @property
    def undone(self) -> list[str]:
        """What that was."""

    def use(self, controls: Controls) -> None:
        """Reset the machine, and read its console, by these commands."""

    def boot(self, kernel: Bootable) -> None:
        """Boot a kernel, and wait until the machine is back. At the end it boots its own kernel.

        Raises:
            Broken: the kernel did not come up; `collect` raises it if the kernel did not stay up.
                The machine can be used again.
            Lost: the connection broke, and not because of the kernel; likewise.
            FscaleError: the machine cannot boot it, or does not come back.
        """

    def evidence(self) -> str:
        """What the machine's console and pstore say about a kernel that was Broken."""


# By the scheme of --on: the module of the engine, which has `open_engine(on, say)`. It is imported
# when it is needed, because its libraries are optional.
ENGINES = {
    "dask": "fscale.farm.dask",
    "labgrid": "fscale.farm.labgrid",
    "slurm": "fscale.farm.slurm",
    "ssh": "fscale.farm.ssh",
    "tls": "fscale.farm.dask",
}
BOOTING = ("ssh", "labgrid")
"""engines of one machine, which boots kernels"""
WHOLE_NODES = ("slurm", *BOOTING)
"""engines that give a task a machine for itself"""


def name_of(on: str) -> str:
    """The name of the engine in a `--on`, such as dask.

    Raises:
        FscaleError: there is no such engine.
    """
    match = re.match(r"[a-z]+", on)
    if match is None or match[0] not in ENGINES:
        raise FscaleError(
            f"--on {on}: no such engine; give ssh:HOST, labgrid:PLACE, slurm[:PARTITION], "
            "dask://HOST:PORT or tls://HOST:PORT"
        )
    return match[0]


def open_engine(on: str, say: Say) -> AbstractContextManager[Engine]:
    """Open the engine that `--on` names; `say` prints a message for the user.

    Raises:
        FscaleError: there is no such engine, its library is missing, or it cannot be reached.
    """
    opened: Callable[[str, Say], AbstractContextManager[Engine]] = importlib.import_module(
        ENGINES[name_of(on)]
    ).open_engine
    return opened(on, say)
