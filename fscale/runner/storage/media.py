# SPDX-License-Identifier: GPL-2.0-only
"""Holds the media of a run, and the other devices that its file systems use."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from fscale.model.config import Medium
from fscale.runner.machine.changes import Partitions
from fscale.runner.machine.host import Cpus
from fscale.runner.machine.journal import Journal
from fscale.runner.storage import medium
from fscale.runner.storage.disk import CheckedDevice, Disk
from fscale.runner.storage.medium import Ready


class Media:
    """The media of a run: each is made when it is first used, and held until `close`."""

    def __init__(self, journal: Journal, cpus: Cpus, state: Path, tag: str) -> None:
        self._journal = journal
        self._cpus = cpus
        self._state = state
        self._tag = tag
        self._ready: dict[str, Ready] = {}
        self._disks: dict[str, Disk] = {}

    def provide(
        self, name: str, described: Medium, memory: int, checked: CheckedDevice | None
    ) -> Ready:
        """Return a medium, which is made or taken if it is not held yet.

        Raises:
            FscaleError: the medium cannot be made, or the device has changed.
        """
        if name not in self._ready:
            self._cpus.all()
            self._ready[name] = medium.prepare(
                name, described, memory, self._journal, self._state, self._tag, checked
            )
        return self._ready[name]

    def disks(self, devices: Sequence[CheckedDevice]) -> list[Disk]:
        """Return checked devices that a file system uses besides its medium; none in a dry run."""
        if self._journal.do.dry:
            return []
        for checked in devices:
            if checked.identity.number not in self._disks:
                self._disks[checked.identity.number] = Disk(checked)
        return [self._disks[checked.identity.number] for checked in devices]

    @contextlib.contextmanager
    def split(self, name: str, slots: Sequence[str]) -> Iterator[None]:
        """Split a medium into partitions, one medium `name` + slot each, in the `with` block."""
        whole = self._ready[name]
        self._cpus.all()  # before the device is lent: this takes a while
        with contextlib.ExitStack() as stack:
            if whole.disk:
                stack.enter_context(whole.disk.released())
            cut = Partitions(device=whole.device or name, count=len(slots), size=whole.size)
            stack.enter_context(self._journal.change(cut))
            for number, slot in enumerate(slots, 1):
                self._ready[name + slot] = Ready(cut.each, cut.node(number), part_of=whole.disk)
                stack.callback(self._ready.pop, name + slot)
            yield

    def close(self) -> None:
        """Close all block devices."""
        for ready in self._ready.values():
            if ready.disk:
                ready.disk.close()
        for disk in self._disks.values():
            disk.close()
