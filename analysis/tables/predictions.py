# SPDX-License-Identifier: GPL-2.0-only
"""A row for each predicted curve and core count."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fscale.analysis.prediction.model import Range, StoredPrediction, StoredPredictions
from fscale.analysis.tables.column import PLACE, Column, Row, Value, figure, make_row
from fscale.model.results import CellKey


@dataclass(frozen=True)
class Predicted:
    """A prediction, and the file that it is in."""

    run: str
    file: StoredPredictions
    made: StoredPrediction

    @property
    def key(self) -> CellKey:
        """The key that a cell of the predicted point would have."""
        return self.made.key


def rows(run: str, file: StoredPredictions, points: Iterable[StoredPrediction]) -> list[Row]:
    """The rows of predictions of a file, in their order."""
    return [make_row(COLUMNS, Predicted(run, file, one)) for one in points]


def _bound(
    of: Callable[[StoredPrediction], Range | None], bound: str
) -> Callable[[Predicted], Value]:
    """A part of an interval; None where nothing can be told."""
    return lambda p: getattr(of(p.made), bound, None)


def _speedup(made: StoredPrediction) -> Range | None:
    return made.speedup


def _rate(made: StoredPrediction) -> Range | None:
    return made.rate


COLUMNS: tuple[Column[Predicted], ...] = (
    *PLACE,
    Column(
        "verdict",
        "string",
        "predicted; or cannot tell: simulation and measurement disagree about the measured cores",
        lambda p: "predicted" if p.made.rate else "cannot tell",
    ),
    figure("speedup", "predicted throughput over the base's", _bound(_speedup, "value")),
    figure("speedup_low", "lower end of its interval", _bound(_speedup, "low")),
    figure("speedup_high", "upper end of its interval", _bound(_speedup, "high")),
    figure(
        "per_second",
        "predicted throughput, if the predicted cores are as fast as the measured ones",
        _bound(_rate, "value"),
        "1/s",
    ),
    figure("per_second_low", "lower end of its interval", _bound(_rate, "low"), "1/s"),
    figure("per_second_high", "upper end of its interval", _bound(_rate, "high"), "1/s"),
    figure("level", "share of the record's curves that the intervals hold", lambda p: p.file.level),
    Column(
        "target",
        "string",
        "where the cores are: this machine, which the run measured, or another machine",
        lambda p: p.made.target,
    ),
    Column(
        "recorded",
        "boolean",
        "true if predictions as far as this one were judged; if not, the interval is extended",
        lambda p: p.made.recorded,
    ),
    Column("base_cores", "integer", "cores of the base", lambda p: p.made.base_cores),
    Column(
        "anchor_cores",
        "integer",
        "measured cores at which the simulated curve meets the measured one",
        lambda p: p.made.anchor_cores,
    ),
    figure(
        "measured_speedup",
        "measured throughput of the anchor over the base's",
        lambda p: p.made.measured_speedup,
    ),
    figure(
        "simulated_anchor_speedup",
        "the same by the simulation",
        lambda p: p.made.simulated_anchor_speedup,
    ),
    figure(
        "simulated_speedup",
        "speed-up by the simulation alone",
        lambda p: p.made.simulated_speedup,
    ),
    Column(
        "limited_by",
        "string",
        "measured point that limits the prediction, and why; empty: the record does",
        lambda p: p.made.limited_by,
    ),
    Column(
        "measured_kernel",
        "string",
        "`uname -r` of the run",
        lambda p: p.file.kernel,
    ),
    Column(
        "simulated_kernel",
        "string",
        "`uname -r` of the simulation",
        lambda p: p.file.simulated_kernel,
    ),
    Column(
        "simulated_machine",
        "string",
        "the machine that the simulation is of",
        lambda p: p.file.simulated_machine,
    ),
)
