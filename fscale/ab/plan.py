# SPDX-License-Identifier: GPL-2.0-only
"""A paired run before it is measured: two checked sides, their points, and when to look."""

import itertools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from analysis.compare.repetitions import minimum_repetitions, tests_of
from analysis.compare.sequential import resumed, schedule
from analysis.compare.settings import SETTLED, Settings
from analysis.compare.sliced import FIRST_LOOK, LEAST_PAIRS
from fscale.ab import record
from fscale.ab.loop import Aim
from fscale.ab.point import Point, place
from fscale.ab.record import Looks
from fscale.ab.slices import settling, uncut
from fscale.ab.slicing import DEFAULT, Slicing
from fscale.model import runs
from fscale.model.errors import FscaleError
from fscale.model.results import CellKey, Run
from fscale.model.store import Store
from fscale.model.variant import Variant
from fscale.runner.machine import host
from fscale.runner.prepare import Prepared, prepare
from fscale.runner.request import Request
from fscale.runner.session import Setup

MOST_REPETITIONS = 400


@dataclass(frozen=True)
class Plan:
    """Everything that a paired run here needs. `repetitions`: fixed, or 0 until it is decided."""

    setups: dict[str, Setup]
    run: Run
    store: Store
    points: list[Point]
    settings: Settings
    repetitions: int
    looks: Looks
    one_is_enough: bool = False
    """end as soon as something is slower"""

    @property
    def aim(self) -> Aim:
        """When it ends."""
        return Aim(self.settings, self.run.seed, self.repetitions, self.one_is_enough)

    def save(self, looks: Looks | None = None) -> None:
        """Write run.json and ab.json; `looks` where they turned out otherwise than planned."""
        self.store.save_run(self.run)
        base, new = (str(self.run.suite[side]) for side in ("base", "new"))
        record.save(self.store, base, new, looks or self.looks)


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
    points = [
        Point(_labelled(one, base), _labelled(other, new), cut[one.workload])
        for one, other in zip(*(sorted(p.cells, key=place) for p in (a, b)), strict=True)
    ]
    if not any(cut.values()):
        repetitions += repetitions % 2
    tests = tests_of([p.base for p in points], settings)
    if SETTLED in settings.metrics:
        tests += sum(p.slicing is not None and p.slicing.settle for p in points)
    if not tests:
        raise FscaleError(
            "nothing that is measured here has such a metric: counted work comes from profiled "
            "repetitions, which `fscale ab` does not make, and only what writes and takes turns is "
            "settled; give --metric throughput or per-cpu-second"
        )
    looks = Looks()
    needed = minimum_repetitions(settings, tests, interleaved=True)
    if all(cut.values()):
        needed = LEAST_PAIRS
    if not repetitions:
        looks = Looks(
            schedule(settings.fdr, tests, MOST_REPETITIONS),
            resumed(record.looked(store) or (FIRST_LOOK,), MOST_REPETITIONS),
        )
    elif repetitions < needed:
        raise FscaleError(
            f"{repetitions} repetitions a side are too few: a single change among {tests} tests is "
            f"found with {needed} or more; give --repetitions {needed}, or fewer workloads or cores"
        )
    run = runs.merge_sides(
        request.output,
        {"A": _with_label(a, base), "B": _with_label(b, new)},
        {"A": base.text, "B": new.text},
        repetitions=repetitions,
        planned_cells=2 * repetitions * len(points),
    )
    if any(cut.values()):
        run.suite["slices"] = {name: asdict(own) for name, own in sorted(cut.items()) if own}
    if old:
        runs.resume(old, run, request.output)
    return Plan(setups, run, store, points, settings, repetitions, looks)


def _refuse_one_name(base: Variant, new: Variant) -> None:
    if base.label == new.label and base.text != new.text:
        raise FscaleError(f"both sides would be called {base.label}; rename one of the files")


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


def _labelled(key: CellKey, side: Variant) -> CellKey:
    return key.model_copy(update={"filesystem": side.label})


def _setup(prepared: Prepared, side: Variant) -> Setup:
    (fs,) = prepared.setup.filesystems.values()
    beside = {side.label: tuple(itertools.chain(*prepared.setup.beside.values()))}
    return replace(prepared.setup, filesystems={side.label: fs}, beside=beside, profilers={})


def _with_label(prepared: Prepared, side: Variant) -> Run:
    """The run of a side, whose file system is called as the side is."""
    (described,) = prepared.run.filesystems.values()
    return prepared.run.model_copy(update={"filesystems": {side.label: described}})
