# SPDX-License-Identifier: GPL-2.0-only
"""A paired run before it is measured: two checked sides, their points, and when to look."""

import itertools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

from analysis.compare.repetitions import minimum_repetitions, tests_of
from analysis.compare.sequential import resumed, schedule
from analysis.compare.settings import SETTLED, Settings
from analysis.compare.sliced import FIRST_LOOK, LEAST_PAIRS
from fscale.ab import record
from fscale.ab.loop import Aim
from fscale.ab.point import Point
from fscale.ab.record import Looks
from fscale.ab.slices import settling, uncut
from fscale.ab.slicing import DEFAULT, Slicing
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
        for one, other in zip(*(sorted(p.cells, key=_place) for p in (a, b)), strict=True)
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
