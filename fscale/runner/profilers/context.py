# SPDX-License-Identifier: GPL-2.0-only
"""The hook for profilers: they attach after set-up and before the timed window."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fscale.model.config import FileSystem
from fscale.model.results import Cell, CellKey


@dataclass(frozen=True)
class Context:
    """What a profiler may want to know about the cell that it looks at."""

    key: CellKey
    cpus: list[int]
    pid: int | None  # of the load; None where it is started after the profiler
    cgroup: Path | None
    directory: Path  # in the file system under test
    device: str | None  # the block device below it
    filesystem: FileSystem | None
    output: Path  # an existing directory for raw files: profiles/<cell id> of the run
    named: bool = True  # workers are known by their name, else by the cgroup: see Load


class Profiler(Protocol):
    """Looks at a cell. Such a cell has `key.profile == name` and is never scored."""

    name: str

    def start(self, context: Context) -> None:
        """Attach. Called when the load has set up; the load waits until this returns."""
        ...

    def stop(self) -> None:
        """Detach. Called when the load has ended, also when it failed."""
        ...

    def complete(self, cell: Cell) -> None:
        """Add `profiles`, `counts` or `extra` to a cell that is otherwise finished."""
        ...
