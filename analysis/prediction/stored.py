# SPDX-License-Identifier: GPL-2.0-only
"""Keeps the predictions of a run in its directory, and draws them beyond its curves.

They are in a file of their own and in no cell, so no statistic can take them for measured ones.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pydantic import ValidationError

from fscale.analysis.curves import Curve, Page, Panel
from fscale.analysis.prediction.curves import Interval, Prediction, Start, starts
from fscale.analysis.prediction.model import Range, StoredPrediction, StoredPredictions
from fscale.analysis.prediction.rule import LEVEL
from fscale.analysis.reader import Results, first_error
from fscale.model.errors import FscaleError
from fscale.model.files import Folder, printable
from fscale.model.results import CellKey
from fscale.model.store import PREDICTIONS_FILE, Store
from fscale.model.words import plural


def stored(results: Results, simulation: Results, made: Iterable[Prediction]) -> StoredPredictions:
    """The predictions in the form of their file.

    Raises:
        FscaleError: a figure is beyond all that is measured.
    """
    try:
        return StoredPredictions(
            run=printable(results.run.id),
            kernel=printable(results.run.machine.kernel),
            simulated_kernel=printable(simulation.run.machine.kernel),
            simulated_machine=printable(simulation.run.machine.cpu_model),
            level=LEVEL,
            points=[_point(one) for one in made],
        )
    except ValidationError as error:
        raise FscaleError(
            f"{simulation.path} predicts a figure that nothing can have ({first_error(error)}); "
            "simulate again"
        ) from None


def _point(made: Prediction) -> StoredPrediction:
    base = made.start.base
    return StoredPrediction(
        key=made.key,
        cells=_digest(made.start),
        speedup=_range(made.speedup) if made.can_tell else None,
        rate=_range(made.rate) if made.can_tell else None,
        target=made.target,
        recorded=made.recorded,
        base_cores=base,
        anchor_cores=made.at,
        measured_speedup=made.anchor.median / made.base.median,
        simulated_anchor_speedup=made.simulated[made.at] / made.simulated[base],
        simulated_speedup=made.simulated_speedup,
        limited_by=made.limit,
    )


def _range(of: Interval) -> Range:
    return Range(value=of.value, low=of.low, high=of.high)


def _digest(start: Start) -> str:
    cells = [
        (cell.id, cell.started, cell.ops_per_second, cell.disturbed)
        for point in start.points.values()
        for cell in point.cells
    ]
    return hashlib.sha256(json.dumps(sorted(cells)).encode()).hexdigest()


def keep(results: Results, predictions: StoredPredictions) -> None:
    """Write the file, in the place of that of an earlier prediction.

    Raises:
        OSError: it cannot be written.
    """
    text = predictions.model_dump_json(by_alias=True, indent=1) + "\n"
    Store(results.path).save(PREDICTIONS_FILE, text)


@dataclass(frozen=True)
class Kept:
    """The predictions in a results directory that hold for its cells."""

    file: StoredPredictions | None = None
    points: tuple[StoredPrediction, ...] = ()
    remark: str = ""
    """why others, or the whole file, are left out; empty if none are"""

    @property
    def sentences(self) -> list[str]:
        """What a reader of the points has to know."""
        said = [self.remark] if self.remark else []
        if self.file and self.points:
            said.append(
                "PREDICTED, not measured, beyond the measured cores: curves of "
                f"{self.file.simulated_machine}, simulated with Linux "
                f"{self.file.simulated_kernel} and scaled to the measured ones; intervals hold "
                f"about {self.file.level:.0%} of earlier predictions"
            )
        return said


def read(results: Results) -> Kept:
    """The predictions of a run. One whose curve is not among the cells is none of `results`.

    A file that cannot be used is a remark and no error.
    """
    name = printable(str(results.path / PREDICTIONS_FILE))
    try:
        file = StoredPredictions.model_validate_json(Folder(results.path).read(PREDICTIONS_FILE))
    except FileNotFoundError:
        return Kept()
    except OSError as error:
        return Kept(remark=f"{name} is left out, because it cannot be read: {error.strerror}")
    except ValidationError as error:
        return Kept(remark=f"{name} is left out: {printable(first_error(error))}")
    kernel = printable(results.run.machine.kernel)
    if file.run != printable(results.run.id):
        return Kept(remark=f"{name} is left out, because it is of the run {file.run}")
    if file.kernel != kernel:
        return Kept(remark=f"{name} is left out: it is of Linux {file.kernel}, not of {kernel}")
    measured = {_curve(start.key): start for start in starts(results) if start.refusal is None}
    digests = {curve: _digest(start) for curve, start in measured.items()}
    known = [one for one in file.points if _curve(one.key) in measured]
    good = {
        one.key.point: one
        for one in known
        if one.cells == digests[curve := _curve(one.key)]
        and one.anchor_cores in measured[curve].points
        and one.key.cores > max(measured[curve].points)
    }
    remark = ""
    if len(good) < len(known):
        count = plural(len(known) - len(good), "prediction")
        remark = f"left out of {name}: {count} from other cells than the run has now"
    return Kept(file, tuple(good.values()), remark)


def _curve(key: CellKey) -> str:
    """The part of a key that the points of a curve share."""
    return key.model_copy(update={"cores": 1, "repetition": 1}).point


def with_predicted(page: Page, kept: Mapping[str | None, Kept]) -> Page:
    """The page with the predicted points of its curves; `kept` is by the run's label."""
    points: dict[tuple[str | None, str], list[StoredPrediction]] = defaultdict(list)
    for run, of_run in kept.items():
        for one in of_run.points:
            points[run, _curve(one.key)].append(one)
    if not points:
        return page

    def extended(curve: Curve) -> Curve:
        own = points.get((curve.run, _curve(curve.points[0].key)), ())
        return replace(curve, predicted=tuple(sorted(own, key=lambda one: one.key.cores)))

    def drawn(panel: Panel) -> Panel:
        return replace(panel, curves=tuple(map(extended, panel.curves)))

    return page.changed(drawn)
