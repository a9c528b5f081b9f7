# SPDX-License-Identifier: GPL-2.0-only
"""Compares two kernels, or two modules of one kernel: the sides, and the results of their boots.

The boots are merged into one paired run in the form that `fscale compare` reads. A repetition is a
boot, or a pair of boots, so that the spread includes differences between boots.
"""

import itertools
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fscale.ab import record
from fscale.ab.loop import Aim, EveryPointAtOnce, Progress
from fscale.ab.point import SIDES, PairedPoint
from fscale.ab.record import Looks
from fscale.ab.slicing import Slicing
from fscale.analysis.compare.settings import Settings
from fscale.model import runs
from fscale.model.errors import FscaleError
from fscale.model.results import Cell, CellKey, Machine, Run, all_boots
from fscale.model.store import Store
from fscale.model.variant import Variant
from fscale.vm import guest as guests
from fscale.vm import kernel as kernels
from fscale.vm import rootfs
from fscale.vm.module_build import Parts, build_parts, check_user_files
from fscale.vm.place import Job
from fscale.vm.qemu import Guest, Qemu
from fscale.vm.request import GuestRequest
from fscale.vm.steps import Steps
from fscale.vm.tasks import GuestJob

DEFAULT_KERNEL = "bookworm"


@dataclass(frozen=True)
class BootedSide:
    """One side; its kernel is booted for each repetition."""

    variant: Variant


@dataclass(frozen=True)
class GuestSide(BootedSide):
    """One side, and its guest."""

    guest: Guest
    parts: Parts = field(default_factory=Parts)


def make_guests(
    base: Variant,
    new: Variant,
    of_suite: Sequence[str],
    *,
    files: Mapping[str, Path],
    options: GuestRequest,
    steps: Steps,
) -> tuple[dict[str, GuestSide], Qemu]:
    """Build what both sides need, and return their guests "A" and "B".

    `of_suite` are the file systems of the suite, which a side measures that names none.
    Raises FscaleError, also if only one of the two kernels boots under KVM.
    """
    user_files = [path for name, path in files.items() if name.startswith("filesystems/")]
    measured = {
        name: [variant.filesystem] if variant.name else of_suite
        for name, variant in (("A", base), ("B", new))
    }
    check_user_files(user_files, itertools.chain(*measured.values()))
    sides = {}
    # All boots use one state of this repository, even if it is edited meanwhile.
    images = rootfs.images(steps)
    for name, variant in (("A", base), ("B", new)):
        spec = variant.kernel or DEFAULT_KERNEL
        kernel = kernels.of_guest(spec, steps, modules=variant.kernel_modules)
        steps.note(f"side {name}, {variant.text}: kernel {spec} ({kernel.release})")
        parts = build_parts(measured[name], user_files, kernel, spec, None, steps, variant.modules)
        guest, emulator = guests.prepare(kernel, options, images, steps)
        sides[name] = GuestSide(variant, guest, parts)
    if sides["A"].guest.accelerator != sides["B"].guest.accelerator:
        raise FscaleError(
            "one kernel boots under KVM and the other does not, so their figures cannot be "
            "compared; give --accel tcg to emulate both"
        )
    return sides, emulator


def boot_directory(output: Path, side: str, repetition: int) -> Path:
    """The directory with the results of one boot."""
    return output / "boots" / f"{side}{repetition}"


def complete(directory: Path) -> bool:
    """Whether a boot measured all its planned cells."""
    run = Store(directory).load_run()
    return run is not None and run.state == "complete"


def refuse_other_builds(output: Path, boots: Sequence[tuple[str, int]]) -> None:
    """FscaleError when the boots of a side ran different builds of its kernel."""
    first: dict[str, str] = {}
    for name, repetition in boots:
        run = Store(boot_directory(output, name, repetition)).load_run()
        build = run.machine.build if run else None
        if build is None:
            continue  # an older fscale did not record it
        shown = f"{build.version} ({build.id})"
        if first.setdefault(name, shown) != shown:
            raise FscaleError(
                f"side {name} was booted with two builds of its kernel: {first[name]} and {shown}; "
                "give a new --output, so that all boots use the same build"
            )


def relabel(cell: Cell, side: str, repetition: int) -> Cell:
    """A guest's cell with the side and the repetition that it has in the paired run."""
    key = cell.key.model_copy(update={"side": side, "repetition": repetition})
    if Path(key.id).name != key.id:
        raise FscaleError(f"side {side}: the guest named a cell {key.id}, which is a path")
    return cell.model_copy(update={"key": key, "id": key.id})


def merge_boots(
    output: Path, texts: Mapping[str, str], boots: Sequence[tuple[str, int]], cells: int
) -> Run:
    """Merge the boots into one run; the first boots of sides "A" and "B" describe it."""
    first: dict[str, Run] = {}
    revisions: dict[str, None] = {}
    machines: list[Machine] = []
    stood_still = 0
    for name, repetition in boots:
        directory = boot_directory(output, name, repetition)
        run = Store(directory).load_run()
        if run is None:
            raise FscaleError(f"{directory} contains no results; start the comparison again")
        stood_still += (run.machine.guest or {}).get("stood_still", 0)
        first.setdefault(name, run)
        machines.append(run.machine)
        revisions[run.revision or "unknown"] = None
    whole = runs.merge_sides(
        output,
        first,
        texts,
        repetitions=max(repetition for _, repetition in boots),
        planned_cells=cells,
    )
    whole.finished = runs.now()
    if len(revisions) > 1:
        whole.warnings.append(f"the boots ran several revisions of fscale: {', '.join(revisions)}")
    if stood_still:
        whole.warnings.append(f"{stood_still} boots stalled and were repeated")
    if whole.machine.guest:
        both = {**whole.machine.guest, "B": first["B"].machine.guest}
        whole.machine.guest = {**both, "stood_still": stood_still}
    whole.machine.boots = all_boots(machines)
    return whole


@dataclass(frozen=True, kw_only=True)
class BootPlan:
    """A planned comparison. `repetitions`: boots per side, or pairs; 0: until decided."""

    sides: Mapping[str, BootedSide]
    arguments: Sequence[str]
    """arguments of `fscale run`, the suite first"""
    output: Path
    seed: int
    settings: Settings
    repetitions: int
    bisecting: bool = False
    """also stop as soon as one point is slower"""

    @property
    def aim(self) -> Aim:
        """When the comparison ends."""
        return Aim(self.settings, self.seed, self.repetitions, one_is_enough=self.bisecting)

    @property
    def texts(self) -> dict[str, str]:
        """The sides as the user named them."""
        return {name: side.variant.text for name, side in self.sides.items()}

    def name(self, key: CellKey) -> str:
        """The name of a cell's point, without its side and duration.

        If the sides name their file systems, the name leaves the file system out.
        """
        update: dict[str, Any] = {"side": None, "duration": 1.0, "repetition": 1}
        if any(side.variant.name for side in self.sides.values()):
            update["filesystem"] = "named"
        return key.model_copy(update=update).point

    def recorded(self) -> dict[str, Any]:
        """The entries of run.json that identify this comparison."""
        modules = {
            name: {path.name: runs.fingerprint(path) for path in side.variant.modules}
            for name, side in self.sides.items()
        }
        return {
            **dict(zip(("base", "new"), self.texts.values(), strict=True)),
            "arguments": list(self.arguments),
            "seed": self.seed,
            # A rebuilt module keeps its name, so only its fingerprint tells the builds apart.
            **({"modules": modules} if any(modules.values()) else {}),
        }


@dataclass(frozen=True, kw_only=True)
class GuestPlan(BootPlan):
    """A planned comparison in guests."""

    sides: Mapping[str, GuestSide]
    emulator: Qemu
    files: Mapping[str, Path]
    timeout: float

    def job(self, side: GuestSide, directory: Path, number: int, *more: str) -> Job:
        """The job that runs `fscale run` for a side in a guest, with `more` options."""
        named = side.variant.in_guest
        return Job(
            argv=[
                *("python3", "-m", "fscale", "run", *self.arguments),
                *(("--fs", named) if named else ()),
                *("--set", "control=0", "--remeasure", "0"),
                *("--output", "/results", "--repetitions", "1", "--seed", str(self.seed + number)),
                *more,
            ],
            output=directory,
            modules=side.variant.modules,
            files=self.files,
            timeout=self.timeout,
        )


class Booted(EveryPointAtOnce, ABC):
    """The part that all ways of measuring kernels share; see fscale.ab.loop.Source."""

    slicing: Slicing | None = None

    def __init__(self, plan: BootPlan, steps: Steps) -> None:
        self.plan = plan
        self.steps = steps
        self.store = Store(plan.output)
        self.warnings: list[str] = []
        self._named: dict[str, PairedPoint] = {}
        self._finished = 0
        self.old = self.store.load_run()
        """the run that an interrupted call left"""
        self._recorded = plan.recorded()
        if self.old is None:
            return
        for part, asked in self._recorded.items():
            was = self.old.suite.get(part)
            if was != asked:
                raise FscaleError(
                    f"{plan.output} contains another comparison: {part} was {was} and is now "
                    f"{asked}; give a new --output"
                )

    @property
    def points(self) -> list[PairedPoint]:
        """The points that the boots have measured so far."""
        return list(self._named.values())

    @property
    @abstractmethod
    def looks(self) -> Looks:
        """See Source."""

    @abstractmethod
    def boots(self, last: int) -> list[tuple[str, int]]:
        """All boots up to a repetition: side (with the suffix of its directory), repetition."""

    @abstractmethod
    def round(self, first: int, wanted: Callable[[CellKey], bool]) -> list[Cell]:
        """Measure the round that begins with a repetition: the cells of both sides."""

    def measure(self, batch: Sequence[PairedPoint], first: int) -> list[tuple[PairedPoint, Cell]]:
        """See Source; the first round measures all points."""
        names = {self.plan.name(point.base) for point in batch}
        cells = self.round(first, lambda key: not names or self.plan.name(key) in names)
        sides: dict[str, dict[str, Cell]] = defaultdict(dict)
        for cell in cells:
            sides[self.plan.name(cell.key)][cell.key.side or ""] = cell
        for name, both in sides.items():
            if both.keys() != set(SIDES):
                raise FscaleError(f"the sides do not measure the same points: only one has {name}")
            plain = {"side": None, "repetition": 1}
            keys = [both[side].key.model_copy(update=plain) for side in SIDES]
            self._named.setdefault(name, PairedPoint(keys[0], keys[1], self.slicing))
        for cell in cells:
            self.store.save_cell(cell)
        self._finished = max([self._finished, *(cell.key.repetition for cell in cells)])
        return [(self._named[self.plan.name(cell.key)], cell) for cell in cells]

    def save(self, progress: Progress) -> None:
        """Write the run merged from the boots so far."""
        self._save(progress, "interrupted")

    def finish(self, progress: Progress) -> None:
        """Write the run and mark it complete."""
        self._save(progress, "complete")

    def _save(self, progress: Progress, how: runs.State) -> None:
        boots = self.boots(self._finished)
        refuse_other_builds(self.plan.output, boots)
        run = merge_boots(self.plan.output, self.plan.texts, boots, len(progress.cells))
        run.state = how
        run.suite |= self._recorded
        run.warnings += list(dict.fromkeys(self.warnings))
        self.store.save_run(run)
        base, new = (self.plan.texts[side] for side in SIDES)
        record.save(self.store, base, new, progress.looks, self.plan.settings)


class Guests(Booted):
    """The part that both ways of measuring in guests share."""

    plan: GuestPlan

    def __init__(self, plan: GuestPlan, steps: Steps) -> None:
        super().__init__(plan, steps)

    @abstractmethod
    def first_round(self) -> list[GuestJob]:
        """The boots of the first round, in their order."""
