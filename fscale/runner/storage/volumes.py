# SPDX-License-Identifier: GPL-2.0-only
"""Makes and mounts the file systems of a cell: one, or one per partition of its medium."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fscale.model.config import FileSystem, resolve_size
from fscale.runner.machine import kernelsettings
from fscale.runner.machine.changes import Partitions, TempDir
from fscale.runner.machine.host import Cpus
from fscale.runner.machine.journal import Journal
from fscale.runner.storage import filesystem
from fscale.runner.storage.aged import Image
from fscale.runner.storage.disk import Disk
from fscale.runner.storage.medium import Ready

FILL = 0.6  # share of a medium that a load may fill, because a nearly full file system is slow


@dataclass(frozen=True)
class Volumes:
    """The file systems of a cell; `memory` is the machine's usable memory in bytes.

    `filled` is the largest part of a medium that files of aged file systems take in this run: all
    loads get equal space.
    """

    fs: FileSystem
    medium: Ready | None
    """None: a file system in memory"""
    memory: int
    journal: Journal
    filled: float = 0.0

    @property
    def size(self) -> int:
        """Bytes of all together; file systems in memory share them."""
        if self.medium:
            return self.medium.size
        return resolve_size(self.fs.size or 0, self.fs.max_size, self.memory)

    @property
    def space(self) -> int:
        """Bytes that a load may fill."""
        return int(self.size * FILL * (1 - self.filled))

    @cached_property
    def image(self) -> Image | None:
        """The image of an aged file system."""
        return Image(self.fs, self.fs.aged, self.size) if self.fs.aged else None

    @property
    def _partitions(self) -> Partitions:
        device = self.medium.device if self.medium else None
        return Partitions(device=device or "memory", count=self.fs.partitions, size=self.size)

    @contextlib.contextmanager
    def formatted(self, cpus: Cpus, beside: Sequence[Disk]) -> Iterator[list[str | None]]:
        """Format the medium, lent during the `with` block, and the devices `beside` it.

        Yields the devices of the file systems; None stands for one in memory.

        If mkfs sizes by online CPUs, all CPUs are online while it runs. So the file system is the
        same at all core counts, and the same that users of the whole machine get.
        """
        with contextlib.ExitStack() as stack:
            for disk in beside:
                stack.enter_context(disk.released())
            values = kernelsettings.of_machine(self.fs)
            stack.enter_context(kernelsettings.applied(self.fs.title, values, self.journal))
            if self.medium and self.medium.device and self.fs.sized_by_cpus:
                cpus.all()  # before the device is lent: this takes a while
            try:
                nodes = self._format_all(stack)
            finally:  # even a failed mkfs may have written
                for disk in beside:
                    disk.formatted()
            yield nodes

    def _format_all(self, stack: contextlib.ExitStack) -> list[str | None]:
        if self.medium is None or self.medium.device is None:
            return [None] * self.fs.partitions
        disk, whole = self.medium.disk, self.medium.part_of
        nodes = [self.medium.device]
        if disk:
            stack.enter_context(disk.released())
        if self.fs.partitions > 1:
            cut = self._partitions
            stack.enter_context(self.journal.change(cut))
            nodes = [cut.node(number + 1) for number in range(cut.count)]
        for node in nodes:
            if disk and node != self.medium.device:
                disk.confirm_partition(Path(node))
            if whole:
                whole.confirm_partition(Path(node))
            self._format(node, disk or whole)
        return [*nodes]

    def _format(self, node: str, disk: Disk | None) -> None:
        try:
            if image := self.image:
                image.restore(node, lambda: self._mounted_to_age(node), self.journal.do)
            else:
                filesystem.make(self.fs, node, self.journal.do)
        finally:  # even a failed mkfs may have written
            if disk:
                disk.formatted()

    @contextlib.contextmanager
    def _mounted_to_age(self, node: str) -> Iterator[Path]:
        target = self.journal.path.parent / "aging"
        with contextlib.ExitStack() as stack:
            self._mount(node, target, self.size, stack)
            yield target

    @contextlib.contextmanager
    def mounted(self, nodes: Sequence[str | None], target: Path) -> Iterator[Path]:
        """Mount the file systems during the `with` block, and yield the directory to work in.

        Several file systems are mounted at subdirectories 0, 1, ..., each with an empty directory
        `work`.
        """
        with contextlib.ExitStack() as stack:
            if len(nodes) == 1:
                self._mount(nodes[0], target, self.size, stack)
                yield target / "work"
                return
            stack.enter_context(self.journal.change(TempDir(path=target)))
            for number, node in enumerate(nodes):
                self._mount(node, target / str(number), self._partitions.each, stack)
                self.journal.do.mkdir(target / str(number) / "work")
            yield target

    def _mount(
        self, node: str | None, target: Path, size: int, stack: contextlib.ExitStack
    ) -> None:
        do = self.journal.do
        stack.enter_context(filesystem.checked(self.fs, node, do))
        made = filesystem.mount(self.fs, node, target, size)
        if node and not do.dry:
            made.options = filesystem.without_lazy_writes(self.fs, Path(node), made.options)
        stack.enter_context(self.journal.change(made))
        if node:
            values = kernelsettings.of_device(self.fs, node)
            stack.enter_context(kernelsettings.applied(self.fs.title, values, self.journal))
