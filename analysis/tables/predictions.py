# SPDX-License-Identifier: GPL-2.0-only
"""A row for each predicted curve and core count."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fscale.analysis.prediction.curves import Interval, Prediction
from fscale.analysis.prediction.rule import LEVEL
from fscale.analysis.reader import Results
from fscale.analysis.tables.column import PLACE, Column, Row, Value, figure, make_row
from fscale.model.results import CellKey


@dataclass(frozen=True)
class Predicted:
    """A prediction with the runs that it is made of."""

    results: Results
    simulation: Results
    made: Prediction

    @property
    def run(self) -> str:
        """The measured run."""
        return self.results.path.name

    @property
    def key(self) -> CellKey:
        """The key that a cell of the predicted point would have."""
        return self.made.key


def rows(results: Results, simulation: Results, made: Iterable[Prediction]) -> list[Row]:
    """The rows of all predictions, in their order."""
    return [make_row(COLUMNS, Predicted(results, simulation, one)) for one in made]


def _bound(of: Callable[[Prediction], Interval], bound: str) -> Callable[[Predicted], Value]:
    """A part of an interval; None where nothing can be told."""
    return lambda p: float(getattr(of(p.made), bound)) if p.made.can_tell else None


def _speedup(made: Prediction) -> Interval:
    return made.speedup


def _rate(made: Prediction) -> Interval:
    return made.rate


COLUMNS: tuple[Column[Predicted], ...] = (
    *PLACE,
    Column(
        "verdict",
        "string",
        "predicted; or cannot tell: simulation and measurement disagree about the measured cores",
        lambda p: "predicted" if p.made.can_tell else "cannot tell",
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
    figure("level", "share of the record's curves that the intervals hold", lambda _: LEVEL),
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
    Column("base_cores", "integer", "cores of the base", lambda p: p.made.start.base),
    Column(
        "anchor_cores",
        "integer",
        "measured cores at which the simulated curve meets the measured one",
        lambda p: p.made.at,
    ),
    figure(
        "measured_speedup",
        "measured throughput of the anchor over the base's",
        lambda p: p.made.anchor.median / p.made.base.median,
    ),
    figure(
        "simulated_anchor_speedup",
        "the same by the simulation",
        lambda p: p.made.simulated[p.made.at] / p.made.simulated[p.made.start.base],
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
        lambda p: p.made.limit,
    ),
    Column(
        "measured_kernel",
        "string",
        "`uname -r` of the run",
        lambda p: p.results.run.machine.kernel,
    ),
    Column(
        "simulated_kernel",
        "string",
        "`uname -r` of the simulation",
        lambda p: p.simulation.run.machine.kernel,
    ),
    Column(
        "simulated_machine",
        "string",
        "the machine that the simulation is of",
        lambda p: p.simulation.run.machine.cpu_model,
    ),
)
