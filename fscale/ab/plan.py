# SPDX-License-Identifier: GPL-2.0-only
"""A paired run before it is measured: two checked sides, their points, and when to look."""

import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

from pydantic import ValidationError

from analysis.compare.repetitions import minimum_repetitions, tests_of
from analysis.compare.sequential import resumed, schedule
from analysis.compare.settings import SETTLED, Settings
from analysis.compare.sides import AB_FILE, AbRecord
from analysis.compare.sliced import FIRST_LOOK, LEAST_PAIRS
from fscale.ab.slices import DEFAULT, Slicing, settling, uncut
from fscale.model.errors import FscaleError
from fscale.model.results import CellKey, Run, all_boots
from fscale.model.store import Store, differences
from fscale.model.variant import Variant
from fscale.runner import host
from fscale.runner.prepare import Prepared, prepare
from fscale.runner.request import Request
from fscale.runner.session import Setup

MOST_REPETITIONS = 400


@dataclass(frozen=True)
class Pair:
    """A point on both sides; the repetition and the side of the keys are filled in later."""

    base: CellKey
    new: CellKey
    slicing: Slicing | None = None
    """None: whole repetitions"""

    @property
    def step(self) -> int:
        """Repetitions a round: one pair in slices, else two of each side."""
        return 1 if self.slicing else 2

    def key(self, side: str, repetition: int) -> CellKey:
        """The cell of side "A" or "B"."""
        key = self.base if side == "A" else self.new
        return key.model_copy(update={"side": side, "repetition": repetition})


@dataclass(frozen=True)
class Plan:
    """Everything that a paired run needs. `repetitions`: fixed, or 0 for sequential stopping."""

    setups: dict[str, Setup]
    run: Run
    store: Store
    pairs: list[Pair]
    settings: Settings
    repetitions: int
    looks: tuple[int, ...]
    pair_looks: tuple[int, ...] = ()

    def looks_of(self, pair: Pair) -> tuple[int, ...]:
        """After how many repetitions a point is looked at; none where `repetitions` are fixed."""
        return self.pair_looks if pair.slicing else self.looks

    def last(self, pair: Pair) -> int:
        """After how many repetitions a point is not measured any more, decided or not."""
        if self.repetitions:
            return self.repetitions + (0 if pair.slicing else self.repetitions % 2)
        return self.looks_of(pair)[-1]

    def order(self, pair: Pair, first: int) -> Iterator[CellKey]:
        """The four cells of repetitions `first` and `first` + 1: A B B A or B A A B.

        The coin comes from the seed, the point and the repetition, so that a run that goes on
        after an interruption keeps its order.
        """
        coin = random.Random(f"{self.run.seed} {pair.base.point} {first}").random() < 0.5
        outer, inner = ("A", "B") if coin else ("B", "A")
        yield pair.key(outer, first)
        yield pair.key(inner, first)
        yield pair.key(inner, first + 1)
        yield pair.key(outer, first + 1)

    def save(self) -> None:
        """Write run.json and ab.json."""
        self.store.save_run(self.run)
        record = AbRecord(
            base=str(self.run.suite["base"]),
            new=str(self.run.suite["new"]),
            looks=list(self.looks),
            pair_looks=list(self.pair_looks),
        )
        text = record.model_dump_json(by_alias=True, indent=1) + "\n"
        self.store.save(AB_FILE, text)


def make(
    request: Request,
    base: Variant,
    new: Variant,
    settings: Settings,
    repetitions: int,
    *,
    slices: bool | None = False,
    slicing: Slicing = DEFAULT,
) -> Plan:
    """Check both sides and plan the run. Nothing on the machine is changed.

    `slices`: whether sides take turns; None: where they can.

    Raises:
        FscaleError: a side cannot be measured here, the output holds another run, or there is
            more than one medium; or sides should take turns that cannot.
    """
    _refuse_one_name(base, new)
    store = Store(request.output)
    old = store.load_run()
    if request.seed is None and old:
        request = replace(request, seed=old.seed)
    a = _prepare(request, base, "a")
    b = _prepare(replace(request, seed=a.run.seed), new, "b")
    if len(a.run.media) > 1:
        raise FscaleError("`fscale ab` measures on one medium; give one with --media")
    if a.setup.devices != b.setup.devices:
        raise FscaleError("the device became another one while it was checked; it is left alone")
    control = store.control()
    host.control(a.setup.machine, control)
    setups = {
        name: replace(_setup(prepared, side), control=control)
        for name, prepared, side in (("A", a, base), ("B", b, new))
    }
    cut = {
        key.workload: _slicing(key, setups, slices, slicing)
        for key in {key.workload: key for key in a.cells}.values()
    }
    pairs = [
        Pair(_labelled(one, base), _labelled(other, new), cut[one.workload])
        for one, other in zip(*(sorted(p.cells, key=_place) for p in (a, b)), strict=True)
    ]
    if not any(cut.values()):
        repetitions += repetitions % 2
    tests = tests_of([p.base for p in pairs], settings)
    if SETTLED in settings.metrics:
        tests += sum(p.slicing is not None and p.slicing.settle for p in pairs)
    if not tests:
        raise FscaleError(
            "nothing that is measured here has such a metric: counted work comes from profiled "
            "repetitions, which `fscale ab` does not make, and only what writes and takes turns is "
            "settled; give --metric throughput or per-cpu-second"
        )
    looks: tuple[int, ...] = ()
    pair_looks: tuple[int, ...] = ()
    needed = minimum_repetitions(settings, tests, interleaved=True)
    if all(cut.values()):
        needed = LEAST_PAIRS
    if not repetitions:
        looks = schedule(settings.fdr, tests, MOST_REPETITIONS)
        pair_looks = resumed(_looked(store) or (FIRST_LOOK,), MOST_REPETITIONS)
    elif repetitions < needed:
        raise FscaleError(
            f"{repetitions} repetitions a side are too few: a single change among {tests} tests is "
            f"found with {needed} or more; give --repetitions {needed}, or fewer workloads or cores"
        )
    run = _run(request, a, b, base, new, repetitions)
    if any(cut.values()):
        run.suite["slices"] = {name: asdict(own) for name, own in sorted(cut.items()) if own}
    if old:
        if changed := differences(old, run):
            raise FscaleError(
                f"{request.output} holds another run ({'; '.join(changed)}); give a new --output"
            )
        run.started, run.command = old.started, [*old.command, *run.command]
        run.machine.boots = all_boots([old.machine, run.machine])
    return Plan(setups, run, store, pairs, settings, repetitions, looks, pair_looks)


def _refuse_one_name(base: Variant, new: Variant) -> None:
    if base.label == new.label and base.text != new.text:
        raise FscaleError(f"both sides would be called {base.label}; rename one of the files")


def _looked(store: Store) -> list[int]:
    """The looks at pairs of a run that goes on; it may have looked when its time was spent."""
    try:
        text = (store.directory / AB_FILE).read_text()
        return AbRecord.model_validate_json(text).pair_looks
    except (OSError, ValidationError):
        return []


def _slicing(
    key: CellKey, setups: Mapping[str, Setup], slices: bool | None, slicing: Slicing
) -> Slicing | None:
    """How the workload of a cell is cut; None where it is measured in whole repetitions.

    FscaleError where it is to be cut, and cannot.
    """
    if slices is False:
        return None
    reason = next(filter(None, (uncut(setup, key.workload) for setup in setups.values())), None)
    if reason and slices:
        raise FscaleError(f"this cannot be measured in slices: {reason}; leave --slices out")
    if reason:
        return None
    return settling(slicing, setups.values(), key)


def _prepare(request: Request, side: Variant, name: str) -> Prepared:
    # The directory of a side never exists: the store of the paired run is the plan's.
    own = replace(
        request,
        output=request.output / f"side-{name}",
        # Both sides have the same machine, so what it gives says nothing about them.
        overrides=request.overrides
        | {"filesystems": [side.filesystem], "repetitions": 1, "control": 0},
        explicit=request.explicit | {side.filesystem},
        binary=side.binary or request.binary,
    )
    return prepare(own)


def _place(key: CellKey) -> tuple[str, str, int]:
    return key.workload, key.mode, key.cores


def _labelled(key: CellKey, side: Variant) -> CellKey:
    return key.model_copy(update={"filesystem": side.label})


def _setup(prepared: Prepared, side: Variant) -> Setup:
    (fs,) = prepared.setup.filesystems.values()
    beside = {side.label: tuple(itertools.chain(*prepared.setup.beside.values()))}
    return replace(prepared.setup, filesystems={side.label: fs}, beside=beside, profilers={})


def _run(
    request: Request, a: Prepared, b: Prepared, base: Variant, new: Variant, repetitions: int
) -> Run:
    filesystems = {}
    for prepared, side in ((a, base), (b, new)):
        (filesystems[side.label],) = prepared.run.filesystems.values()
    run = a.run.model_copy()
    run.id = request.output.resolve().name
    run.started = datetime.now(UTC).isoformat(timespec="seconds")
    run.filesystems = filesystems
    run.media = a.run.media | b.run.media
    other = {
        f"{what} of B": v for what, v in b.run.versions.items() if a.run.versions.get(what) != v
    }
    run.versions = a.run.versions | other
    own = {"base": base.text, "new": new.text, "repetitions": repetitions}
    run.suite = a.run.suite | own | {"filesystems": [base.label, new.label]}
    run.planned_cells = 2 * repetitions * len(a.cells)
    return run
