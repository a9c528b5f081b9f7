# SPDX-License-Identifier: GPL-2.0-only
"""A run on this machine: takes cells one at a time, and leaves the machine as it was."""

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

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
from fscale.runner.storage.disk import Checked, Disk
from fscale.system import powers
from fscale.system.executor import CommandFailed, Executor

FILL = 0.6  # share of a medium that a load may fill: file systems slow down when nearly full
FILL_DIRECTORY = 0.25  # share of the free space of somebody's directory


SEVERAL = ("loop", "dir")  # media that can be made several times


class Stopped(FscaleError):  # noqa: N818 - it says what happened
    """The machine could not be put back after a cell, so the run cannot go on."""


@dataclass
class Setup:
    """What the cells of a run have in common."""

    machine: Machine
    filesystems: Mapping[str, FileSystem | None]  # None: what is in the directory already
    media: Mapping[str, Medium]
    loads: Mapping[str, Load]
    settings: Settings
    limits: Limits
    seed: int
    devices: Mapping[str, Checked] = field(default_factory=dict)  # of the media that are others'
    beside: Mapping[str, Sequence[Checked]] = field(default_factory=dict)  # file system -> devices
    existing: Mounted | None = None  # below the directory, where the medium is one
    missing: Mapping[str, str] = field(default_factory=dict)  # name of anything -> why it lacks
    profilers: Mapping[str, Profiler] = field(default_factory=dict)
    fewest: int = 1
    """cores of the smallest cell"""
    control: Control | None = None
    """how the cells that a resumed run has already kept to their CPUs"""


class Session:
    """Holds the machine between `opened` and its end."""

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
        """whether the last cell failed only as CPUs could not be taken off or brought back"""
        self._ready: dict[str, medium.Ready] = {}
        self._own_cgroup = host.own_cgroup()
        self._drops_caches = powers.no_drop_caches() is None
        self._beside: dict[str, Disk] = {}
        self.described: Mapping[str, str] = {}
        """all that is said of the file system that was formatted last"""

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """The machine is put back at the end of the `with` block, whatever happens in it."""
        try:
            self.journal.apply(Processes(tag=self.tag))
            tracefs = self.setup.profilers and powers.no_mount() is None
            if tracefs and not (TRACEFS / "events").is_dir():
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
            if failures := self.journal.undo_all():
                raise Stopped(
                    f"could not restore the machine's state: {'; '.join(failures)}. When the cause "
                    f"is gone, run `fscale restore`"
                )

    def cell(self, key: CellKey) -> Cell:
        """Measure one cell and store it.

        What goes wrong with the cell is in the cell. Raises Interrupted (the cell is stored as
        such) and Stopped.
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
        """Enter into cells what goes wrong in the `with` block, and store them at its end.

        Raises Interrupted and Stopped once the cells are stored.
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
        """What a cell works on, with nothing measured; None where it cannot be made or mounted.

        FscaleError where a mount option has no effect; Stopped.
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
        """FscaleError where a mount option or setting that was asked for by hand has no effect.

        It is seen before the first cell is measured, and not from the reason of every cell.
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
        """Why a cell cannot be measured here; None when it can."""
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
            fill(cell, outcome)
            if profiler and not self.do.dry:
                profiler.complete(cell)

    @contextlib.contextmanager
    def shared(self, name: str, slots: Sequence[str]) -> Iterator[None]:
        """A device as one medium for each slot, while the `with` block runs: its partitions.

        Of what is no single device (directories, loop devices) each slot makes its own.
        """
        if name == "none" or self.setup.media[name].kind in SEVERAL:
            yield
            return
        whole = self._medium(name, "")
        self.cpus.all()  # before the device is lent: this takes a while
        with contextlib.ExitStack() as stack:
            if whole.disk:
                stack.enter_context(whole.disk.lent())
            cut = Partitions(device=whole.device or name, count=len(slots), size=whole.size)
            stack.enter_context(self.journal.change(cut))
            for number, slot in enumerate(slots, 1):
                part = medium.Ready(cut.each, cut.node(number), part_of=whole.disk)
                self._ready[name + slot] = part
                stack.callback(self._ready.pop, name + slot)
            yield

    @contextlib.contextmanager
    def placed(self, cell: Cell, slot: str = "") -> Iterator[tuple[Target, str | None]]:
        """A fresh file system for a cell, mounted while the `with` block runs; and its device.

        `slot` tells file systems that are mounted at the same time from one another.
        """
        place = self._nowhere if cell.key.control else self._in_filesystem
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
            finally:  # a mkfs that failed may have written, too
                for disk in beside:
                    disk.formatted()
            if fs and nodes and nodes[0]:
                self.described = geometry.read(fs, nodes[0], self.do)
                cell.geometry = geometry.kept(fs, self.described)
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
            scratch, group = self._aside(stack, slot)
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
    def _nowhere(self, cell: Cell, slot: str) -> Iterator[tuple[Target, str | None]]:
        """An empty directory for what touches no file."""
        with contextlib.ExitStack() as stack:
            cell.cpu_control = self.cpus.control
            cell.cpus = self.cpus.select(cell.key.cores)
            directory = self.state / f"control{slot}"
            stack.enter_context(self.journal.change(TempDir(path=directory)))
            scratch, group = self._aside(stack, slot)
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

    def _aside(self, stack: contextlib.ExitStack, slot: str) -> tuple[Path, Path | None]:
        """A directory outside of the file system under test, and a cgroup where there are any."""
        # A name that nobody could foresee: what a stranger left in the results is not used.
        scratch = self.store.directory / f".scratch-{self.tag}{slot}"
        stack.enter_context(self.journal.change(TempDir(path=scratch)))
        group = None
        if self._own_cgroup:
            group = self._own_cgroup / f"fscale-{self.tag}{slot}"
            stack.enter_context(self.journal.change(Cgroup(path=group)))
        return scratch, group

    @contextlib.contextmanager
    def _watched(self, cell: Cell, directory: Path) -> Iterator[None]:
        """Record the mount below a cell; the cell is invalid where it is another one at the end.

        FscaleError where it is not as it was asked for.
        """
        fs = self.setup.filesystems[cell.key.filesystem]
        cell.mount = mounted.read(directory)
        if fs is None:
            cell.geometry = geometry.of_directory(directory, cell.mount, self.do)
            if said := mounted.changed(self.setup.existing, cell.mount):
                raise FscaleError(
                    f"{directory.parent} is not mounted as it was when the run began ({said}); "
                    "mount it as before, or begin another run"
                )
        elif cell.mount:
            filesystem.refuse_without_effect(fs, cell.mount)
        yield
        if cell.status == "ok" and (said := mounted.changed(cell.mount, mounted.read(directory))):
            cell.status = "invalid"
            cell.reason = f"the mount changed while the cell was measured ({said})"

    def _lent_beside(self, filesystem: str, stack: contextlib.ExitStack) -> list[Disk]:
        """The devices that a file system has beside its medium, as they were checked."""
        disks = []
        for checked in self.setup.beside.get(filesystem, ()) if not self.do.dry else ():
            number = checked.identity.number
            if number not in self._beside:
                self._beside[number] = Disk(checked)
            stack.enter_context(self._beside[number].lent())
            disks.append(self._beside[number])
        return disks

    def _formatted(
        self, fs: FileSystem, ready: medium.Ready | None, stack: contextlib.ExitStack
    ) -> list[str | None]:
        """The devices of fresh file systems; None stands for one that lives in memory.

        All CPUs are online for a mkfs that may size by them: so the file system is the same one
        along a curve, and the one that users of the whole machine have.
        """
        device = ready.device if ready else None
        disk = ready.disk if ready else None
        whole = ready.part_of if ready else None
        nodes: list[str | None] = [device] * fs.partitions
        if device and fs.sized_by_cpus:
            self.cpus.all()  # before the device is lent: this takes a while
        if disk:
            stack.enter_context(disk.lent())
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
        """The directory to work in, and how many bytes may be used.

        Several file systems are mounted at its subdirectories 0, 1, ..., each with an empty
        directory `work`; those that live in memory share the size.
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
        finally:  # a mkfs that failed may have written, too
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
    """A cell that has not been measured."""
    started = now()
    return Cell(id=key.id, key=key, status="error", started=started, wall_seconds=0)


def _fail(cells: Sequence[Cell], reason: str, keep: bool = False) -> None:
    """Make cells errors; `keep`: a reason that is there already says more."""
    for cell in cells:
        had = cell.reason if cell.status == "error" else None
        cell.reason = had if had and keep else "; ".join(filter(None, [had, reason]))
        cell.status = "error"


def fill(cell: Cell, outcome: Outcome) -> None:
    """Enter what a load achieved."""
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
    """A name for a run's processes, cgroup and directories that no other run has."""
    return uuid.uuid4().hex[:12]


@contextlib.contextmanager
def machine_held(state: Path, say: Callable[[str], None], wait: float = 0) -> Iterator[None]:
    """Hold the lock, with all undone that an earlier run left behind.

    Only here are all CPUs online for sure, so a run is prepared inside of it.
    """
    guard.check_proc()
    with exclusive(state, wait):
        undone, failures = recover(state)
        if undone:
            say(f"an earlier run was cut off; put back: {', '.join(undone)}")
        if failures:
            raise FscaleError(
                f"an earlier run was cut off and cannot be undone: {'; '.join(failures)}. "
                f"Remove the cause and run `fscale restore`"
            )
        yield
