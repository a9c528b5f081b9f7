# SPDX-License-Identifier: GPL-2.0-only
"""Measures cells on this machine one at a time, and restores the machine at the end."""

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fscale.model import seen
from fscale.model.config import FileSystem, Medium, resolve_size
from fscale.model.errors import FscaleError, Interrupted
from fscale.model.load import Load, Outcome, Settings, Target
from fscale.model.paths import TRACEFS
from fscale.model.results import Cell, CellKey, Control, Machine, Mounted
from fscale.model.runs import now
from fscale.model.store import Store
from fscale.runner import guard
from fscale.runner.cell.measure import Limits, measure, seed_of
from fscale.runner.machine import host, kernelsettings
from fscale.runner.machine.journal import Journal, exclusive, recover
from fscale.runner.machine.settings import Cgroup, Mount, NotUndone, Partitions, Processes, TempDir
from fscale.runner.profilers.context import Context, Profiler
from fscale.runner.signals import Signals
from fscale.runner.storage import filesystem, geometry, medium, mounted
from fscale.runner.storage.disk import CheckedDevice, Disk
from fscale.system import powers
from fscale.system.executor import CommandFailed, Executor

FILL = 0.6  # share of a medium that a load may fill, because a nearly full file system is slow
FILL_DIRECTORY = 0.25  # share of an existing directory's free space that a load may fill


SEVERAL = ("loop", "dir")  # media of which several instances can be made


class Stopped(FscaleError):  # noqa: N818 - it says what happened
    """The machine could not be restored after a cell, so the run cannot continue."""


@dataclass
class Setup:
    """What all cells of a run share."""

    machine: Machine
    filesystems: Mapping[str, FileSystem | None]  # None: the file system of the directory
    media: Mapping[str, Medium]
    loads: Mapping[str, Load]
    settings: Settings
    limits: Limits
    seed: int
    devices: Mapping[str, CheckedDevice] = field(
        default_factory=dict
    )  # medium -> block device of the user
    beside: Mapping[str, Sequence[CheckedDevice]] = field(
        default_factory=dict
    )  # file system -> devices
    existing: Mounted | None = None  # the mount below the directory, if that is the medium
    missing: Mapping[str, str] = field(
        default_factory=dict
    )  # file system, medium or workload -> why it is missing
    profilers: Mapping[str, Profiler] = field(default_factory=dict)
    fewest: int = 1
    """cores of the cell with the fewest cores"""
    control: Control | None = None
    """how the existing cells of a resumed run were restricted to their CPUs"""


class Session:
    """Measures cells while `opened` holds the machine."""

    def __init__(
        self, setup: Setup, store: Store, state: Path, do: Executor, signals: Signals
    ) -> None:
        self.setup = setup
        self.store = store
        self.state = state
        self.do = do
        self.tag = do.tag or "dry"
        self.journal = Journal(state / "journal", do, signals.deferred)
        self.cpus = host.Cpus(setup.machine, self.journal, setup.control)
        self.refused = False
        """whether the last cell failed only because the kernel refused CPU hotplug"""
        self._ready: dict[str, medium.Ready] = {}
        self._own_cgroup = host.own_cgroup()
        self._drops_caches = powers.no_drop_caches() is None
        self._beside: dict[str, Disk] = {}
        self.described: Mapping[str, str] = {}
        """the full description of the file system that was formatted last"""

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Prepare the machine, and restore it at the end of the `with` block in any case.

        Raises:
            Stopped: the machine could not be restored.
        """
        try:
            self.journal.apply(Processes(tag=self.tag))
            tracefs = self.setup.profilers and powers.no_mount() is None
            if tracefs and not seen.is_dir(TRACEFS / "events"):
                self.journal.apply(
                    Mount(source="tracefs", target=TRACEFS, fstype="tracefs", own=False)
                )
            self.cpus.settle(self.setup.fewest)
            yield
        finally:
            for ready in self._ready.values():
                if ready.disk:
                    ready.disk.close()
            for disk in self._beside.values():
                disk.close()
            failures = self.journal.undo_all()
            self.cpus.warnings += self.journal.warnings
            if failures:
                raise Stopped(
                    f"could not restore the machine's state: {'; '.join(failures)}. Remove the "
                    f"cause, then run `fscale restore`"
                )

    def cell(self, key: CellKey) -> Cell:
        """Measure one cell and store it.

        If the measurement fails, the cell's status and reason say so.

        Raises:
            Interrupted: the user stopped the run; the cell is stored with that status.
            Stopped: the machine could not be restored.
        """
        cell = new_cell(key)
        self.refused = False
        with self.recorded([cell]):
            cell.status, cell.reason = "skipped", self.lacking(key)
            if not cell.reason:
                cell.status = "error"
                try:
                    self._measure(cell)
                except host.Refused:
                    self.refused = True
                    raise
        return cell

    @contextlib.contextmanager
    def recorded(self, cells: Sequence[Cell]) -> Iterator[None]:
        """Record failures of the `with` block in the cells, and store these at its end.

        Raises:
            Interrupted: the user stopped the run. The cells are stored first.
            Stopped: the machine could not be restored. The cells are stored first.
        """
        clock = time.monotonic()
        self.do.log.clear()
        stop: FscaleError | None = None
        try:
            yield
        except NotUndone as error:
            stop = Stopped(str(error))
            _fail(cells, str(error), keep=True)
        except Interrupted as error:
            stop = error
            for cell in cells:
                cell.status, cell.reason = "interrupted", str(error)
        except (FscaleError, OSError) as error:
            _fail(cells, str(error))
        for cell in cells:
            cell.commands = list(self.do.log)
            cell.wall_seconds = round(time.monotonic() - clock, 3)
            if not self.do.dry:
                self.store.save_cell(cell)
        if stop:
            raise stop

    def look(self, key: CellKey) -> Cell | None:
        """Make and mount the file system of a cell without measuring; None if that fails.

        Raises:
            FscaleError: a mount option or setting has no effect.
            Stopped: the machine could not be restored.
        """
        cell = new_cell(key)
        if self.lacking(key):
            return None
        try:
            with self.placed(cell):
                return cell
        except NotUndone as error:
            raise Stopped(str(error)) from None
        except CommandFailed:
            return None

    def refuse_without_effect(self, keys: Sequence[CellKey]) -> None:
        """Check mount options and settings that the user gave, before the first cell is measured.

        Otherwise every cell would fail for the same reason.

        Raises:
            FscaleError: one of them has no effect.
        """
        by_hand = (":mount=", ":set=")
        asked = {
            key.filesystem: key
            for key in reversed(keys)
            if any(part in key.filesystem for part in by_hand)
        }
        for key in asked.values():
            self.look(key)

    def lacking(self, key: CellKey) -> str | None:
        """Return why a cell cannot be measured on this machine; None if it can."""
        for name in (key.filesystem, key.medium, key.workload):
            if name in self.setup.missing:
                return self.setup.missing[name]
        return None

    def _measure(self, cell: Cell) -> None:
        key = cell.key
        with self.placed(cell) as (target, device):
            profiler = self.setup.profilers[key.profile] if key.profile else None
            profile = self.store.profile_dir(key.id)
            if profiler and not self.do.dry:
                self.store.fresh_profile_dir(key.id)
            context = Context(
                key=key,
                cpus=cell.cpus,
                pid=None,
                cgroup=target.cgroup,
                directory=target.directory,
                device=device,
                filesystem=None if key.control else self.setup.filesystems[key.filesystem],
                output=profile,
            )
            settings = self.setup.settings
            outcome, cell.disturbed = measure(
                self.setup.loads[key.workload],
                target,
                replace(settings, latency=False) if key.control else settings,
                self.setup.limits,
                self.do,
                profiler,
                context,
            )
            copy_outcome(cell, outcome)
            if profiler and not self.do.dry:
                profiler.complete(cell)

    @contextlib.contextmanager
    def shared(self, name: str, slots: Sequence[str]) -> Iterator[None]:
        """Split a device into partitions, one medium per slot, while the `with` block runs.

        For directories and loop devices nothing is split: each slot makes a medium of its own.
        """
        if name == "none" or self.setup.media[name].kind in SEVERAL:
            yield
            return
        whole = self._medium(name, "")
        self.cpus.all()  # before the device is lent: this takes a while
        with contextlib.ExitStack() as stack:
            if whole.disk:
                stack.enter_context(whole.disk.released())
            cut = Partitions(device=whole.device or name, count=len(slots), size=whole.size)
            stack.enter_context(self.journal.change(cut))
            for number, slot in enumerate(slots, 1):
                part = medium.Ready(cut.each, cut.node(number), part_of=whole.disk)
                self._ready[name + slot] = part
                stack.callback(self._ready.pop, name + slot)
            yield

    @contextlib.contextmanager
    def placed(self, cell: Cell, slot: str = "") -> Iterator[tuple[Target, str | None]]:
        """Mount a fresh file system for a cell while the `with` block runs.

        Yields the target of the load, and the block device or None. `slot` distinguishes file
        systems that are mounted at the same time.
        """
        place = self._without_filesystem if cell.key.control else self._in_filesystem
        with place(cell, slot) as (target, device):
            yield target, device
            if cell.status == "ok" and (changed := self.cpus.changed()):
                cell.status, cell.reason = "invalid", changed

    @contextlib.contextmanager
    def _in_filesystem(self, cell: Cell, slot: str) -> Iterator[tuple[Target, str | None]]:
        key = cell.key
        with contextlib.ExitStack() as stack:
            ready = self._medium(key.medium, slot) if key.medium != "none" else None
            fs = self.setup.filesystems[key.filesystem]
            beside = self._lent_beside(key.filesystem, stack)
            if fs:
                values = kernelsettings.of_machine(fs)
                stack.enter_context(kernelsettings.applied(fs.title, values, self.journal))
            try:
                nodes = self._formatted(fs, ready, stack) if fs else []
            finally:  # even a failed mkfs may have written
                for disk in beside:
                    disk.formatted()
            if fs and nodes and nodes[0]:
                self.described = geometry.read(fs, nodes[0], self.do)
                cell.geometry = geometry.requested_values(fs, self.described)
            cell.cpu_control = self.cpus.control
            cell.cpus = self.cpus.select(key.cores)
            directory, size = self._mounted(fs, ready, nodes, stack, slot)
            self.do.mkdir(directory)
            if not self.do.dry:
                parts = fs is not None and fs.partitions > 1
                stack.enter_context(self._watched(cell, directory / "0" if parts else directory))
            if self._drops_caches:
                self.do.write(powers.DROP_CACHES, "3")
            cell.caches_dropped = self._drops_caches
            scratch, group = self._scratch(stack, slot)
            counters = fs.counter_files(nodes[0] if len(nodes) == 1 else None) if fs else []
            target = Target(
                key=key,
                directory=directory,
                cpus=cell.cpus,
                seed=seed_of(key, self.setup.seed),
                space=size,
                scratch=scratch,
                cgroup=group,
                counters=tuple(path for path in counters if Path(path).exists()),
                partitions=fs.partitions if fs else 1,
            )
            yield target, ready.device if ready else None

    @contextlib.contextmanager
    def _without_filesystem(self, cell: Cell, slot: str) -> Iterator[tuple[Target, str | None]]:
        """Provide an empty directory for a control cell, which touches no file."""
        with contextlib.ExitStack() as stack:
            cell.cpu_control = self.cpus.control
            cell.cpus = self.cpus.select(cell.key.cores)
            directory = self.state / f"control{slot}"
            stack.enter_context(self.journal.change(TempDir(path=directory)))
            scratch, group = self._scratch(stack, slot)
            target = Target(
                key=cell.key,
                directory=directory,
                cpus=cell.cpus,
                seed=seed_of(cell.key, self.setup.seed),
                space=1 << 20,
                scratch=scratch,
                cgroup=group,
            )
            yield target, None

    def _scratch(self, stack: contextlib.ExitStack, slot: str) -> tuple[Path, Path | None]:
        """Make a directory outside the file system under test, and a cgroup if possible."""
        # The random tag makes the name unpredictable, so that nothing that a stranger left in the
        # results directory is used.
        scratch = self.store.directory / f".scratch-{self.tag}{slot}"
        stack.enter_context(self.journal.change(TempDir(path=scratch)))
        group = None
        if self._own_cgroup:
            group = self._own_cgroup / f"fscale-{self.tag}{slot}"
            stack.enter_context(self.journal.change(Cgroup(path=group)))
        return scratch, group

    @contextlib.contextmanager
    def _watched(self, cell: Cell, directory: Path) -> Iterator[None]:
        """Record the mount below a cell; mark the cell invalid if the mount changes meanwhile.

        Raises:
            FscaleError: the mount is not as requested.
        """
        fs = self.setup.filesystems[cell.key.filesystem]
        cell.mount = mounted.read(directory)
        if fs is None:
            cell.geometry = geometry.of_directory(directory, cell.mount, self.do)
            if said := mounted.changed(self.setup.existing, cell.mount):
                raise FscaleError(
                    f"the mount of {directory.parent} has changed since the run began ({said}); "
                    "mount it as before, or begin another run"
                )
        elif cell.mount:
            filesystem.refuse_without_effect(fs, cell.mount)
        yield
        if cell.status == "ok" and (said := mounted.changed(cell.mount, mounted.read(directory))):
            cell.status = "invalid"
            cell.reason = f"the mount changed while the cell was measured ({said})"

    def _lent_beside(self, filesystem: str, stack: contextlib.ExitStack) -> list[Disk]:
        """Take the checked devices that a file system uses besides its medium."""
        disks = []
        for checked in self.setup.beside.get(filesystem, ()) if not self.do.dry else ():
            number = checked.identity.number
            if number not in self._beside:
                self._beside[number] = Disk(checked)
            stack.enter_context(self._beside[number].released())
            disks.append(self._beside[number])
        return disks

    def _formatted(
        self, fs: FileSystem, ready: medium.Ready | None, stack: contextlib.ExitStack
    ) -> list[str | None]:
        """Make fresh file systems and return their devices; None stands for one in memory.

        If mkfs sizes by online CPUs, all CPUs are online while it runs. So the file system is the
        same at all core counts, and the same that users of the whole machine get.
        """
        device = ready.device if ready else None
        disk = ready.disk if ready else None
        whole = ready.part_of if ready else None
        nodes: list[str | None] = [device] * fs.partitions
        if device and fs.sized_by_cpus:
            self.cpus.all()  # before the device is lent: this takes a while
        if disk:
            stack.enter_context(disk.released())
        if device and fs.partitions > 1:
            cut = self._cut(fs, ready)
            stack.enter_context(self.journal.change(cut))
            nodes = [cut.node(number + 1) for number in range(fs.partitions)]
        for node in nodes:
            if node:
                if disk and node != device:
                    disk.confirm_partition(Path(node))
                if whole:
                    whole.confirm_partition(Path(node))
                self._format(fs, node, disk or whole)
        return nodes

    def _mounted(
        self,
        fs: FileSystem | None,
        ready: medium.Ready | None,
        nodes: list[str | None],
        stack: contextlib.ExitStack,
        slot: str,
    ) -> tuple[Path, int]:
        """Mount the file systems; return the directory to work in and the bytes it may fill.

        Several file systems are mounted at subdirectories 0, 1, ..., each with an empty directory
        `work`; file systems in memory share the size.
        """
        if ready and ready.directory:
            directory = ready.directory / f"cell{slot}"
            stack.enter_context(self.journal.change(TempDir(path=directory)))
            return directory, int(ready.size * FILL_DIRECTORY)
        assert fs is not None
        size = self._size(fs, ready)
        target = self.state / f"mnt{slot}"
        if len(nodes) == 1:
            self._mount(fs, nodes[0], target, size, stack)
            return target / "work", int(size * FILL)
        stack.enter_context(self.journal.change(TempDir(path=target)))
        for number, node in enumerate(nodes):
            self._mount(fs, node, target / str(number), self._cut(fs, ready).each, stack)
            self.do.mkdir(target / str(number) / "work")
        return target, int(size * FILL)

    def _mount(
        self,
        fs: FileSystem,
        node: str | None,
        target: Path,
        size: int,
        stack: contextlib.ExitStack,
    ) -> None:
        stack.enter_context(filesystem.checked(fs, node, self.do))
        made = filesystem.mount(fs, node, target, size)
        if node and not self.do.dry:
            made.options = filesystem.without_lazy_writes(fs, Path(node), made.options)
        stack.enter_context(self.journal.change(made))
        if node:
            values = kernelsettings.of_device(fs, node)
            stack.enter_context(kernelsettings.applied(fs.title, values, self.journal))

    def _size(self, fs: FileSystem, ready: medium.Ready | None) -> int:
        if ready:
            return ready.size
        return resolve_size(fs.size or 0, fs.max_size, self.setup.machine.usable_memory)

    def _cut(self, fs: FileSystem, ready: medium.Ready | None) -> Partitions:
        device = ready.device if ready else None
        return Partitions(
            device=device or "memory", count=fs.partitions, size=self._size(fs, ready)
        )

    def _format(self, fs: FileSystem, node: str, disk: Disk | None) -> None:
        try:
            filesystem.make(fs, node, self.do)
        finally:  # even a failed mkfs may have written
            if disk:
                disk.formatted()

    def _medium(self, name: str, slot: str) -> medium.Ready:
        if name + slot not in self._ready:
            self.cpus.all()
            self._ready[name + slot] = medium.prepare(
                name + slot,
                self.setup.media[name],
                self.setup.machine.usable_memory,
                self.journal,
                self.state,
                self.tag,
                self.setup.devices.get(name),
            )
        return self._ready[name + slot]


def new_cell(key: CellKey) -> Cell:
    """Make a cell that has not been measured."""
    started = now()
    return Cell(id=key.id, key=key, status="error", started=started, wall_seconds=0)


def _fail(cells: Sequence[Cell], reason: str, keep: bool = False) -> None:
    """Set the status of cells to error. With `keep`, an earlier reason is kept instead."""
    for cell in cells:
        had = cell.reason if cell.status == "error" else None
        cell.reason = had if had and keep else "; ".join(filter(None, [had, reason]))
        cell.status = "error"


def copy_outcome(cell: Cell, outcome: Outcome) -> None:
    """Copy the outcome of a load into its cell."""
    cell.status, cell.reason, cell.unit = outcome.status, outcome.reason, outcome.unit
    cell.ops, cell.seconds = outcome.ops, outcome.seconds
    cell.ops_per_second = outcome.ops / outcome.seconds if outcome.seconds else 0
    cell.cpu, cell.bench, cell.latency = outcome.cpu, outcome.bench, outcome.latency
    cell.own_cpu_seconds = outcome.own_cpu_seconds
    cell.others_cpu_seconds = outcome.others_cpu_seconds
    cell.throttled_seconds = outcome.throttled_seconds
    cell.frequency_khz = outcome.frequency_khz
    cell.thermal_throttled = outcome.thermal_throttled
    cell.extra = outcome.extra


def new_tag() -> str:
    """Make a unique name for the processes, the cgroup and the directories of a run."""
    return uuid.uuid4().hex[:12]


@contextlib.contextmanager
def machine_held(state: Path, say: Callable[[str], None], wait: float = 0) -> Iterator[None]:
    """Hold the machine's lock, after undoing what an interrupted run left behind.

    A run is prepared inside this block, because only here all CPUs are certainly online. `wait` is
    in seconds.

    Raises:
        FscaleError: another run holds the lock, or the machine cannot be restored.
    """
    guard.check_proc()
    with exclusive(state, wait):
        undone, failures = recover(state)
        if undone:
            say(f"an earlier run was interrupted; restored: {', '.join(undone)}")
        if failures:
            raise FscaleError(
                f"an earlier run was interrupted, and its changes cannot be undone: "
                f"{'; '.join(failures)}. Remove the cause, then run `fscale restore`"
            )
        yield
