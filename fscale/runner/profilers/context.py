# SPDX-License-Identifier: GPL-2.0-only
"""The protocol of profilers, which attach after set-up and before the timed window."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fscale.model.config import FileSystem
from fscale.model.results import Cell, CellKey


@dataclass(frozen=True)
class Context:
    """Information for a profiler about the cell that it observes."""

    key: CellKey
    cpus: list[int]
    pid: int | None  # of the load; None if it is started after the profiler
    cgroup: Path | None
    directory: Path  # in the file system under test
    device: str | None  # the block device below it
    filesystem: FileSystem | None
    output: Path  # an existing directory for raw files: profiles/<cell id> of the run
    named: bool = True  # whether workers are identified by their name, else by the cgroup: see Load


class CellProfiler(Protocol):
    """Observes a cell. Such a cell has `key.profile == name` and is never scored."""

    name: str

    def start(self, context: Context) -> None:
        """Attach. Called after the set-up of the load, which waits until this returns."""
        ...

    def stop(self) -> None:
        """Detach. Called when the load has ended or failed."""
        ...

    def complete(self, cell: Cell) -> None:
        """Add `profiles`, `counts` or `extra` to a cell that is otherwise finished."""
        ...
