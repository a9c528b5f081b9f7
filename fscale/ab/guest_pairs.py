# SPDX-License-Identifier: GPL-2.0-only
"""Two kernels, or two modules, in slices: pairs of boots, until it is decided.

The unit is a pair of boots with fresh file systems. Where counted work is judged, each pair has a
second one of guests that count instructions, and a side's cell carries both.
"""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from math import exp
from pathlib import Path
from typing import Any, Literal

from analysis.compare.pairs import SLICED, subject_of
from analysis.compare.sequential import growing
from analysis.compare.settings import COUNT, INSTRUCTIONS, METRICS, Judgement, Settings
from analysis.compare.sides import AB_FILE, AbRecord
from analysis.compare.sliced import LEAST_PAIRS, ratios_of
from analysis.compare.wording import change, interval, what
from fscale.ab import boots
from fscale.ab.guests import (
    Side,
    boot_directory,
    both,
    complete,
    merged,
    refuse_other_builds,
    relabelled,
)
from fscale.ab.measure import judged, undecided
from fscale.ab.plan import MOST_REPETITIONS
from fscale.ab.slices import SIDES, Slicing, excuse
from fscale.model.errors import FscaleError, Interrupted
from fscale.model.results import Cell, CellKey
from fscale.model.store import Store
from fscale.model.variant import Variant
from fscale.runner.progress import duration
from vm import foreign
from vm.held import Gone, Held
from vm.options import GuestOptions
from vm.place import Job
from vm.qemu import INSTRUCTIONS_A_SECOND, LINE_DEVICE, Qemu
from vm.steps import Steps

# An emulated guest translates code when it first runs, so it warms up for a second, after a pilot.
TIMED = Slicing(seconds=0.05, blocks=40, warmup=20)
# A counting cell, in seconds of 500 million instructions. It takes no turns: nothing that the host
# does is in the count.
COUNTED_SECONDS = 1.0
# The pilot, which says how much a workload will consume, runs cold: three times as slowly.
STOCK = 4
# A counting guest's clock goes on while it is idle. What it executes in a tick is less than this.
MOST_IDLE = 0.01
NOT_COUNTED = "not_counted"
COUNTED_BOOT = "-counted"


@dataclass(frozen=True)
class GuestPlan:
    """What is compared. `repetitions`: pairs of boots, or 0 until it is decided."""

    sides: Mapping[str, Side]
    emulator: Qemu
    arguments: Sequence[str]
    """of `fscale run`, the suite first"""
    files: Mapping[str, Path]
    output: Path
    seed: int
    settings: Settings
    repetitions: int
    timeout: float
    bisecting: bool = False
    """stop as soon as one thing is slower, too"""

    def name(self, key: CellKey) -> str:
        """A point by whatever side, however long its cells work.

        Sides that name their file system have one each.
        """
        update: dict[str, Any] = {"side": None, "duration": 1.0, "repetition": 1}
        if any(side.variant.name for side in self.sides.values()):
            update["filesystem"] = "named"
        return key.model_copy(update=update).point

    def recorded(self) -> dict[str, Any]:
        """What says in run.json that it is this comparison."""
        return {
            **dict(zip(("base", "new"), self.texts.values(), strict=True)),
            "arguments": list(self.arguments),
            "seed": self.seed,
        }

    @property
    def texts(self) -> dict[str, str]:
        """The sides as they were named."""
        return {name: side.variant.text for name, side in self.sides.items()}

    @property
    def looks(self) -> tuple[int, ...]:
        """Pairs after which the data are looked at; none where the number is fixed."""
        return () if self.repetitions else growing(LEAST_PAIRS, MOST_REPETITIONS)

    @property
    def kinds(self) -> dict[str, bool]:
        """The boots of a pair: what their sides' names end in, and whether they count."""
        counted = "count" in self.settings.metrics
        if set(self.settings.metrics) == {"count"}:
            return {"": True}
        return {"": False} | ({COUNTED_BOOT: True} if counted else {})


@dataclass
class State:
    """What has been measured."""

    cells: list[Cell] = field(default_factory=list)
    pairs: int = 0
    points: dict[str, CellKey] = field(default_factory=dict)
    """name -> side A's key of it"""
    closed: set[str] = field(default_factory=set)
    judgements: list[Judgement] = field(default_factory=list)
    given_up: dict[str, str] = field(default_factory=dict)
    out_of_time: bool = False

    @property
    def open(self) -> set[str]:
        """The names of the points that are to be measured on."""
        return self.points.keys() - self.closed


def make(
    base: Variant,
    new: Variant,
    arguments: Sequence[str],
    *,
    files: Mapping[str, Path],
    options: GuestOptions,
    output: Path,
    seed: int,
    settings: Settings,
    repetitions: int,
    steps: Steps,
    bisecting: bool = False,
) -> GuestPlan:
    """Check two sides, and build what they need; the `options` do not say which kernel.

    A step of a bisection waits for no more than it needs: where the guests are emulated and the
    `settings` name no metrics, instructions are counted and nothing is timed. Raises FscaleError.
    """
    if options.deterministic:
        raise FscaleError(
            "--slices counts instructions in guests of its own: leave --deterministic out, or give "
            "--metric count to have only those"
        )
    if any(argument.split("=")[0] == "--duration" for argument in arguments):
        raise FscaleError("in slices a cell works as long as its turns take: leave --duration out")
    if 0 < repetitions < LEAST_PAIRS:
        raise FscaleError(f"{repetitions} pairs are too few: give {LEAST_PAIRS} or more")
    sides, emulator = both(base, new, arguments, files=files, options=options, steps=steps)
    emulated = sides["A"].guest.accelerator != "kvm"  # as B's is
    if bisecting and emulated and settings.metrics == METRICS:
        steps.note("without KVM what is timed is the emulator: instructions are counted instead")
        settings = settings.model_copy(update={"metrics": ("count",)})
    return GuestPlan(
        sides,
        emulator,
        arguments,
        files,
        output.resolve(),
        seed,
        settings,
        repetitions,
        options.timeout,
        bisecting,
    )


def measure(plan: GuestPlan, seconds: float, steps: Steps) -> State:
    """Measure pairs of boots until every point is decided, or for at most so many seconds.

    What an earlier, interrupted call finished is not measured again.

    Raises:
        GuestError: a guest panicked, hung or ran out of time; earlier pairs are kept.
        FscaleError: a guest could not measure, or `output` holds another comparison.
        Interrupted: by the user.
    """
    state, end, slowest = State(), time.monotonic() + seconds, 0.0
    last = plan.repetitions or plan.looks[-1]
    stored = _stored(plan)
    while state.pairs < last and (state.open or not state.pairs):
        started = time.monotonic()
        number = state.pairs + 1
        cells = stored.get(number)
        if not cells:
            if started + slowest > end:
                state.out_of_time = True
                break
            steps.note(f"pair of boots {number}: {' against '.join(plan.texts.values())}")
            try:
                cells = _pair(plan, state, number, steps)
            except KeyboardInterrupt:
                raise Interrupted(
                    "the guests were ended; the pairs before are kept, and the same command with "
                    "the same --output goes on from there"
                ) from None
            _tell(plan, cells, end - time.monotonic(), steps)
            slowest = max(slowest, time.monotonic() - started)
            if number == 1 and LEAST_PAIRS * slowest > seconds:
                steps.note(
                    f"a pair takes {slowest:.0f} s and a judgement {LEAST_PAIRS} pairs, for which "
                    f"{seconds / 60:g} minutes are too few: give more --max-minutes"
                )
        _enter(plan, state, number, cells)
        if number in (plan.looks or (last,)) and state.open:
            _look(plan, state, steps)
        if plan.bisecting and any(j.verdict == "slower" for j in state.judgements):
            break
    if not any(cell.status == "ok" for cell in state.cells):
        reason = next((cell.reason for cell in state.cells), "no cell was offered")
        raise FscaleError(f"nothing could be measured: {reason}")
    _save(plan, state, "complete")
    return state


def _stored(plan: GuestPlan) -> dict[int, list[Cell]]:
    """The cells of each pair that an earlier call finished."""
    store = Store(plan.output)
    run = store.load_run()
    if run is None:
        return {}
    for part, asked in plan.recorded().items():
        if run.suite.get(part) != asked:
            raise FscaleError(
                f"{plan.output} holds another comparison: {part} was {run.suite.get(part)} and is "
                f"{asked}; give a new --output"
            )
    found: dict[int, list[Cell]] = defaultdict(list)
    for cell in store.cells():
        if cell.key.repetition <= run.suite["repetitions"]:
            found[cell.key.repetition].append(cell)
    return found


def _pair(plan: GuestPlan, state: State, number: int, steps: Steps) -> list[Cell]:
    """One repetition of all open points: of each, the cells of both sides."""
    whole: dict[tuple[str, str], Cell] = {}
    for ending, counts in plan.kinds.items():
        for name, side, cell in _boots(plan, state, number, ending, counts, steps):
            if counts:
                _count(cell)
            _join(whole.setdefault((name, side), cell), cell)
    for name in {name for name, _ in whole}:
        if not all((name, side) in whole for side in SIDES):
            raise FscaleError(f"the guests do not measure the same: only one has {name}")
        excuse([whole[name, side] for side in SIDES])
    return list(whole.values())


def _boots(
    plan: GuestPlan, state: State, number: int, ending: str, counts: bool, steps: Steps
) -> Iterator[tuple[str, str, Cell]]:
    """Boot both sides and let them measure; point, side and cell of what they measured."""
    directories = {}
    with ExitStack() as stack:
        held = {}
        for name, side in plan.sides.items():
            directory = directories[name] = boot_directory(plan.output, name + ending, number)
            foreign.remove(directory)
            guest = replace(side.guest, accelerator="tcg-icount") if counts else side.guest
            job = side.parts.added(_job(plan, side, directory, counts, number))
            log = directory.with_suffix(".log")
            held[name] = stack.enter_context(Held(guest, plan.emulator, job, log, steps))
        measured = [] if counts else _turns(plan, state, held, number)
        for one in held.values():
            one.ended()
    for name, directory in directories.items():
        if not complete(directory):
            raise FscaleError(f"`fscale run` failed in a guest; see {directory}.log")
        slices = {keys.keys[name].id: keys.slices[name] for keys in measured}
        for cell in Store(directory).cells():
            point = plan.name(cell.key)
            if counts and point not in state.closed:
                yield point, name, relabelled(cell, name, number)
            elif cell.id in slices:
                found = relabelled(cell, name, number)
                found.slices = slices[cell.id]
                yield point, name, found


def _turns(
    plan: GuestPlan, state: State, held: Mapping[str, Held], number: int
) -> list[boots.Measured]:
    try:
        return list(boots.measure(held, TIMED, plan.seed + number, plan.name, state.closed))
    except Gone:
        for guest in held.values():
            guest.explain()
        raise


def _job(plan: GuestPlan, side: Side, directory: Path, counts: bool, number: int) -> Job:
    turns = [
        *("--duration", f"{STOCK * TIMED.side_seconds:g}"),
        *("--turns", LINE_DEVICE, "--turn-seconds", str(TIMED.seconds)),
    ]
    return Job(
        argv=[
            *("python3", "-m", "fscale", "run", *plan.arguments),
            *(("--fs", side.variant.in_guest) if side.variant.in_guest else ()),
            *("--set", "control=0"),
            *("--output", "/results", "--repetitions", "1", "--seed", str(plan.seed + number)),
            *(("--duration", str(COUNTED_SECONDS)) if counts else turns),
        ],
        output=directory,
        modules=side.variant.modules,
        files=plan.files,
        timeout=plan.timeout,
    )


def _idle(cell: Cell) -> float:
    """The share of its windows that the CPUs under test were idle."""
    if not cell.cpu:
        return 0.0
    times = cell.cpu.model_dump()
    total = sum(times.values())
    return (cell.cpu.idle + cell.cpu.iowait) / total if total else 0.0


def _count(cell: Cell) -> None:
    """Take a counting guest's seconds for what they are.

    Its clock also goes on while it is idle, and by as much as it has to wait: then there is no
    count. With several cores one may wait for another, so that only a single one can be checked.
    """
    if cell.key.cores == 1 and (idle := _idle(cell)) > MOST_IDLE:
        cell.extra[NOT_COUNTED] = f"{cell.key.workload}: the counting guest was idle for {idle:.0%}"
        return
    if cell.status == "ok" and cell.ops:
        each = cell.seconds * INSTRUCTIONS_A_SECOND / cell.ops
        cell.counts = {INSTRUCTIONS.removeprefix(COUNT): each}


def _join(timed: Cell, counted: Cell) -> None:
    """Enter what the counting guests did into the cell of those that were timed."""
    timed.counts = counted.counts
    timed.extra |= {k: v for k, v in counted.extra.items() if k == NOT_COUNTED}
    if timed.status == "ok" and counted.status != "ok":
        timed.status = counted.status
        timed.reason = f"in a guest that counts instructions: {counted.reason}"


def _enter(plan: GuestPlan, state: State, number: int, cells: Sequence[Cell]) -> None:
    """Add a pair to what was measured, and store it."""
    store = Store(plan.output)
    state.pairs = number
    for cell in cells:
        state.cells.append(cell)
        store.save_cell(cell)
        if cell.key.side == "A":
            state.points.setdefault(plan.name(cell.key), cell.key)
    for name in state.points:
        bad = [c for c in cells if c.status != "ok" and plan.name(c.key) == name]
        if bad and name not in state.closed:
            state.closed.add(name)
            state.given_up[name] = "; ".join(f"{c.id}: {c.status}: {c.reason}" for c in bad)
    _save(plan, state, "interrupted")


def _save(plan: GuestPlan, state: State, how: Literal["complete", "interrupted"]) -> None:
    numbers = range(1, state.pairs + 1)
    made = [(name + ending, n) for n in numbers for ending in plan.kinds for name in SIDES]
    refuse_other_builds(plan.output, made)
    run = merged(plan.output, plan.texts, made, len(state.cells))
    run.state = how
    run.suite |= plan.recorded()
    not_counted = [str(c.extra[NOT_COUNTED]) for c in state.cells if NOT_COUNTED in c.extra]
    run.warnings += [f"{text}: no instructions" for text in dict.fromkeys(not_counted)]
    store = Store(plan.output)
    store.save_run(run)
    record = AbRecord(
        base=plan.texts["A"],
        new=plan.texts["B"],
        looks=[],
        pair_looks=list(plan.looks),
    )
    store.save(AB_FILE, record.model_dump_json(by_alias=True, indent=1) + "\n")


def _tell(plan: GuestPlan, cells: Sequence[Cell], left: float, steps: Steps) -> None:
    """Say what a pair showed, before anything is judged."""
    points: dict[str, dict[str, Cell]] = defaultdict(dict)
    for cell in cells:
        points[plan.name(cell.key)][cell.key.side or ""] = cell
    for sides in points.values():
        shown = []
        for metric in SLICED:
            ratio = ratios_of({1: sides["A"]}, {1: sides["B"]}, metric).get(1)
            if ratio:
                shown.append(f"{metric.removeprefix(COUNT)} {change(exp(ratio.log))}")
        key = sides["A"].key
        steps.note(f"    {key.workload}, {key.cores} cores: {', '.join(shown) or 'no ratio'}")
    steps.note(f"    {duration(max(0.0, left))} left")


def _look(plan: GuestPlan, state: State, steps: Steps) -> None:
    """Judge, say it, and close the points that are decided."""
    state.judgements = judged(state.cells, plan.settings, pair_looks=plan.looks)
    still = undecided(state.judgements)
    state.closed |= {name for name, key in state.points.items() if subject_of(key) not in still}
    for one in state.judgements:
        if one.metric in SLICED:
            steps.note(
                f"{what(one)}: {one.metric.removeprefix(COUNT)} {change(one.ratio)} "
                f"{interval(one)}: {one.verdict}"
            )
