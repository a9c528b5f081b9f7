# SPDX-License-Identifier: GPL-2.0-only
"""Plans a paired run: checks both sides, and determines their points and when to look."""

import itertools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from fscale.ab import record
from fscale.ab.loop import Aim
from fscale.ab.point import ONE_EACH, PairedPoint, place
from fscale.ab.record import Looks
from fscale.ab.slices import (
    add_settling,
    why_not_sliced,
    why_one_image,
    why_oversubscribed,
)
from fscale.ab.slicing import DEFAULT, Slicing
from fscale.analysis.compare.repetitions import minimum_repetitions, tests_of
from fscale.analysis.compare.sequential import WHOLE_STEP, resumed, schedule
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sliced import FIRST_LOOK, MIN_PAIRS
from fscale.analysis.metrics import SETTLED
from fscale.model import runs
from fscale.model.errors import FscaleError
from fscale.model.results import CellKey, Run
from fscale.model.store import Store
from fscale.model.variant import Variant
from fscale.runner.machine import host
from fscale.runner.prepare import Prepared, prepare
from fscale.runner.request import Request
from fscale.runner.setup import Setup

MOST_REPETITIONS = 400


@dataclass(frozen=True)
class Plan:
    """A planned run on this machine. `repetitions`: fixed number per side; 0: until decided."""

    setups: dict[str, Setup]
    run: Run
    store: Store
    points: list[PairedPoint]
    settings: Settings
    repetitions: int
    looks: Looks
    one_is_enough: bool = False
    """end as soon as one point is slower"""

    @property
    def aim(self) -> Aim:
        """When the run ends."""
        return Aim(self.settings, self.run.seed, self.repetitions, self.one_is_enough)

    def save(self, looks: Looks | None = None) -> None:
        """Write run.json and ab.json; `looks` replaces the planned ones if they differ."""
        self.store.save_run(self.run)
        base, new = (str(self.run.suite[side]) for side in ("base", "new"))
        record.save(self.store, base, new, looks or self.looks, self.settings)


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
    """Check both sides and plan the run. This changes nothing on the machine.

    `slices`: whether the sides take turns; None: if they can.

    Raises:
        FscaleError: a side cannot be measured here, the output contains another run, there is more
            than one medium, or `slices` is set and a side cannot take turns.
    """
    _refuse_one_name(base, new)
    store = Store(request.output)
    old = store.load_run()
    if request.seed is None and old:
        request = replace(request, seed=old.seed)
    a = _prepare(request, base, "a")
    b = _prepare(replace(request, seed=a.run.seed), new, "b")
    if len(a.run.media) > 1:
        raise FscaleError(
            f"`fscale ab` measures on one medium, not on {len(a.run.media)} "
            f"({', '.join(a.run.media)}); give one with --media"
        )
    if a.setup.devices != b.setup.devices:
        raise FscaleError(
            "the device changed while it was being checked; nothing was written to it"
        )
    measured_by = store.cpu_control()
    host.choose_cpu_control(a.setup.machine, measured_by)  # refuses what `Cpus` would refuse later
    setups = {
        name: replace(_setup(prepared, side), measured_by=measured_by)
        for name, prepared, side in (("A", a, base), ("B", b, new))
    }
    filled = max(setup.filled for setup in setups.values())
    setups = {name: replace(setup, filled=filled) for name, setup in setups.items()}
    cut = {
        name: _slicing(key, setups, slices, slicing, settings)
        for name, key in {key.load: key for key in a.cells}.items()
    }
    points = [
        PairedPoint(_labelled(one, base), _labelled(other, new), cut[one.load])
        for one, other in zip(*(sorted(p.cells, key=place) for p in (a, b)), strict=True)
    ]
    points = [continued_point(point, store) for point in points]
    if not any(cut.values()):
        repetitions += repetitions % 2
    tests = tests_of([p.base for p in points], settings)
    if SETTLED in settings.metrics:
        tests += sum(p.slicing is not None and p.slicing.settle for p in points)
    if not tests:
        raise FscaleError(
            "nothing that is measured here has the metrics of --metric: counts come from profiling "
            "repetitions, which `fscale ab` does not make, and settled exists only for workloads "
            "that write and take turns, and fairness only for two or more workers; give --metric "
            "throughput or per-cpu-second"
        )
    looks = Looks()
    needed = minimum_repetitions(settings, tests, interleaved=True)
    if all(cut.values()):
        needed = MIN_PAIRS
    if not repetitions:
        stored = record.stored_looks(store)
        planned = schedule(settings.fdr, tests, MOST_REPETITIONS)
        looks = Looks(
            resumed(stored.whole or planned, MOST_REPETITIONS, WHOLE_STEP),
            resumed(stored.pairs or (FIRST_LOOK,), MOST_REPETITIONS),
        )
    elif repetitions < needed:
        raise FscaleError(
            f"{repetitions} repetitions per side are too few: it takes at least {needed} to detect "
            f"a single change among {tests} tests; give --repetitions {needed}, or fewer workloads "
            "or cores"
        )
    run = runs.merge_sides(
        request.output,
        {"A": _with_label(a, base), "B": _with_label(b, new)},
        {"A": base.text, "B": new.text},
        repetitions=repetitions,
        planned_cells=2 * repetitions * len(points),
    )
    if any(cut.values()):
        run.suite["slices"] = {name: asdict(turns) for name, turns in sorted(cut.items()) if turns}
    if old:
        runs.resume(old, run, request.output)
    return Plan(setups, run, store, points, settings, repetitions, looks)


def continued_point(point: PairedPoint, store: Store) -> PairedPoint:
    """A point as an earlier call measured it: it may have left slices after its first pair."""
    first = store.load_cell(point.key("A", 1)) if point.slicing else None
    fell_back = first is not None and first.status == "ok" and first.slices is None
    return replace(point, slicing=None) if fell_back else point


def _refuse_one_name(base: Variant, new: Variant) -> None:
    if base.label == new.label and base.text != new.text:
        raise FscaleError(f"both sides would be named {base.label}; rename one of the files")


def _slicing(
    key: CellKey,
    setups: Mapping[str, Setup],
    slices: bool | None,
    slicing: Slicing,
    settings: Settings,
) -> Slicing | None:
    """How the workload of a cell is sliced; None if it is measured in whole repetitions.

    FscaleError if slices are required and the workload, or a metric, does not allow them.
    """
    if slices is False:
        return None
    reasons = (why_not_sliced(setup, key, settings.metrics) for setup in setups.values())
    both = why_oversubscribed(key.workers_per_cpu) or why_one_image(setups.values())
    reason = both or next(filter(None, reasons), None)
    if reason and slices:
        raise FscaleError(f"cannot measure in slices: {reason}; leave --slices out")
    if reason:
        return None
    return add_settling(slicing, setups.values(), key)


def _prepare(request: Request, side: Variant, name: str) -> Prepared:
    # The directory of a side is never created: the plan's store holds the paired run.
    one_side = replace(
        request,
        output=request.output / f"side-{name}",
        overrides=request.overrides | {"filesystems": [side.filesystem], **ONE_EACH},
        explicit=request.explicit | {side.filesystem},
        binary=side.binary or request.binary,
    )
    return prepare(one_side)


def _labelled(key: CellKey, side: Variant) -> CellKey:
    return key.model_copy(update={"filesystem": side.label})


def _setup(prepared: Prepared, side: Variant) -> Setup:
    (fs,) = prepared.setup.filesystems.values()
    beside = {side.label: tuple(itertools.chain(*prepared.setup.beside.values()))}
    return replace(
        prepared.setup,
        variants={side.label: side},
        filesystems={side.label: fs},
        beside=beside,
        profilers={},
    )


def _with_label(prepared: Prepared, side: Variant) -> Run:
    """The run of a side, with the side's label as the name of its file system."""
    (described,) = prepared.run.filesystems.values()
    return prepared.run.model_copy(update={"filesystems": {side.label: described}})
