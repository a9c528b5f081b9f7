# SPDX-License-Identifier: GPL-2.0-only
"""Measures cells on this machine one at a time, and restores the machine at the end."""

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fscale.model import fault, filetest, paths
from fscale.model.errors import FscaleError, Interrupted
from fscale.model.fault import Fault
from fscale.model.load import Outcome, Target
from fscale.model.results import Cell, CellKey
from fscale.model.runs import now
from fscale.model.store import Store
from fscale.model.terminal import say
from fscale.runner import guard
from fscale.runner.cell.measure import measure, seed_of
from fscale.runner.machine import host
from fscale.runner.machine.changes import Cgroup, Mount, NotUndone, RunProcesses, TempDir
from fscale.runner.machine.journal import Journal, exclusive, recover
from fscale.runner.profilers.context import Context
from fscale.runner.setup import Setup
from fscale.runner.signals import Signals
from fscale.runner.storage import filesystem, geometry, mounted
from fscale.runner.storage.media import Media
from fscale.runner.storage.medium import Ready
from fscale.runner.storage.volumes import Volumes
from fscale.system import powers
from fscale.system.executor import CommandFailed, Executor

SEVERAL = ("loop", "dir")  # media of which several instances can be made


class Stopped(FscaleError):  # noqa: N818 - it says what happened
    """The machine could not be restored after a cell, so the run cannot continue."""


class Session:
    """Measures cells while `opened` holds the machine."""

    def __init__(
        self, setup: Setup, store: Store, state: Path, do: Executor, signals: Signals
    ) -> None:
        self.setup = setup
        self.store = store
        self.state = state
        self.do = do
        self.signals = signals
        self.tag = do.tag or "dry"
        self.journal = Journal(state / "journal", do, signals.deferred)
        self.cpus = host.Cpus(setup.machine, self.journal, setup.measured_by)
        self.media = Media(self.journal, self.cpus, state, self.tag)
        self.refused = False
        """whether the last cell failed only because the kernel refused CPU hotplug"""
        self._own_cgroup = host.own_cgroup()
        self._drops_caches = powers.no_drop_caches() is None
        self.described: Mapping[str, str] = {}
        """the full description of the file system that was formatted last"""

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Prepare the machine, and restore it at the end of the `with` block in any case.

        Raises:
            Stopped: the machine could not be restored.
        """
        try:
            self.journal.apply(RunProcesses(tag=self.tag))
            tracefs = self.setup.profilers and powers.no_mount() is None
            if tracefs and not filetest.is_dir(paths.TRACEFS / "events"):
                self.journal.apply(
                    Mount(source="tracefs", target=paths.TRACEFS, fstype="tracefs", own=False)
                )
            self.cpus.settle(self.setup.fewest)
            yield
        finally:
            self.media.close()
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
                except host.HotplugRefused:
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
        stop: FscaleError | Interrupted | None = None
        try:
            yield
        except NotUndone as error:
            stop = Stopped(str(error))
            _fail(cells, str(error), error.fault, keep=True)
        except Interrupted as error:
            stop = error
            for cell in cells:
                cell.status, cell.reason = "interrupted", str(error)
        except (FscaleError, OSError) as error:
            _fail(cells, str(error), self._fault(error))
        for cell in cells:
            cell.commands = list(self.do.log)
            cell.wall_seconds = round(time.monotonic() - clock, 3)
            if not self.do.dry:
                self.store.save_cell(cell)
        if stop:
            raise stop

    def _fault(self, error: FscaleError | OSError) -> Fault:
        if isinstance(error, FscaleError):
            return error.fault
        existing = [Path(one.path or "") for one in self.setup.media.values() if one.kind == "dir"]
        return fault.of_os_error(error, [self.state / "mnt", *(one / "cell" for one in existing)])

    def look(self, key: CellKey) -> Cell | None:
        """Make and mount the file system of a cell without measuring; None if that fails.

        Raises:
            FscaleError: a mount option or setting has no effect, or mkfs or the kernel refuses the
                options that the user gave.
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
        except CommandFailed as error:
            if self._has_options(key.filesystem) and error.fault == "filesystem":
                raise FscaleError(
                    f"{key.filesystem} cannot be made and mounted as requested: {error}; correct "
                    "or leave out its options"
                ) from None
            return None

    def refuse_without_effect(self, keys: Sequence[CellKey]) -> None:
        """Check mount options and settings that the user gave, before the first cell is measured.

        Otherwise every cell would fail for the same reason.

        Raises:
            FscaleError: one of them has no effect, or is refused.
        """
        first = {key.filesystem: key for key in reversed(keys)}
        for name, key in first.items():
            if self._has_options(name):
                self.look(key)

    def _has_options(self, filesystem: str) -> bool:
        """Whether the user gave options, settings or an aging profile with the file system."""
        asked = self.setup.variants.get(filesystem)
        return asked is not None and asked.altered

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
            stops = self.signals.stops
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
            if self.signals.stops > stops:
                cell.disturbed = cell.disturbed or "fscale was stopped meanwhile (Ctrl-Z)"
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
        self._provide(name)
        with self.media.split(name, slots):
            yield

    def _provide(self, name: str, slot: str = "") -> Ready:
        described, checked = self.setup.media[name], self.setup.devices.get(name)
        memory = self.setup.machine.usable_memory
        return self.media.provide(name + slot, described, memory, checked)

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
            ready = self._provide(key.medium, slot) if key.medium != "none" else None
            fs = self.setup.filesystems[key.filesystem]
            nodes: list[str | None] = []
            if fs:
                memory = self.setup.machine.usable_memory
                volumes = Volumes(fs, ready, memory, self.journal, self.setup.filled)
                beside = self.media.disks(self.setup.beside.get(key.filesystem, ()))
                nodes = stack.enter_context(volumes.formatted(self.cpus, beside))
                if nodes[0]:
                    self.described = geometry.read(fs, nodes[0], self.do)
                    cell.geometry = geometry.requested_values(fs, self.described)
                if image := volumes.image:
                    cell.geometry = (cell.geometry or {}) | image.layout or None
            cell.cpu_control = self.cpus.control
            cell.cpus = self.cpus.select(key.cores)
            if fs:
                mounts = volumes.mounted(nodes, self.state / f"mnt{slot}")
                directory, space = stack.enter_context(mounts), volumes.space
            else:
                assert ready is not None
                assert ready.directory is not None
                directory, space = ready.directory / f"cell{slot}", ready.space
                stack.enter_context(self.journal.change(TempDir(path=directory)))
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
                space=space,
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


def new_cell(key: CellKey) -> Cell:
    """Make a cell that has not been measured."""
    started = now()
    return Cell(id=key.id, key=key, status="error", started=started, wall_seconds=0)


def _fail(cells: Sequence[Cell], reason: str, fault: Fault, keep: bool = False) -> None:
    """Set the status of cells to error.

    An earlier error keeps its fault, and with `keep` it keeps its reason, too.
    """
    for cell in cells:
        had = cell.reason if cell.status == "error" else None
        cell.reason = had if had and keep else "; ".join(filter(None, [had, reason]))
        cell.fault = cell.fault or fault
        cell.status = "error"


def copy_outcome(cell: Cell, outcome: Outcome) -> None:
    """Copy the outcome of a load into its cell."""
    cell.status, cell.reason, cell.unit = outcome.status, outcome.reason, outcome.unit
    cell.fault = outcome.fault if outcome.status == "error" else None
    cell.ops, cell.seconds = outcome.ops, outcome.seconds
    cell.ops_per_second = outcome.ops / outcome.seconds if outcome.seconds else 0
    cell.cpu, cell.bench, cell.latency = outcome.cpu, outcome.bench, outcome.latency
    cell.own_cpu_seconds = outcome.own_cpu_seconds
    cell.others_cpu_seconds = outcome.others_cpu_seconds
    cell.throttled_seconds = outcome.throttled_seconds
    cell.frequency_khz = outcome.frequency_khz
    cell.thermal_throttled = outcome.thermal_throttled
    cell.watts = outcome.watts
    cell.extra = outcome.extra


def new_tag() -> str:
    """Make a unique name for the processes, the cgroup and the directories of a run."""
    return uuid.uuid4().hex[:12]


@contextlib.contextmanager
def this_machine_held(wait: float = 0) -> Iterator[Signals]:
    """Catch signals, and hold this machine; see `machine_held`, also for its errors."""
    with (
        Signals().installed() as signals,
        machine_held(paths.state_dir(), lambda text: say(text, error=True), wait),
    ):
        yield signals


@contextlib.contextmanager
def machine_held(state: Path, show: Callable[[str], None], wait: float = 0) -> Iterator[None]:
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
            show(f"an earlier run was interrupted; restored: {', '.join(undone)}")
        if failures:
            raise FscaleError(
                f"an earlier run was interrupted, and its changes cannot be undone: "
                f"{'; '.join(failures)}. Remove the cause, then run `fscale restore`"
            )
        try:
            yield
        except Interrupted:
            # The signal may have arrived where the session was about to restore the machine. It
            # arrives only once, so nothing interrupts this.
            recover(state)
            raise
