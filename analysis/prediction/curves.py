# SPDX-License-Identifier: GPL-2.0-only
"""Predicts the curves of a measured run from the same curves of a simulation."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fscale.analysis import asked
from fscale.analysis.cells import marks
from fscale.analysis.prediction import rule
from fscale.analysis.prediction.record import Quantity, Record, Target, records
from fscale.analysis.reader import Results
from fscale.analysis.summary import Point, Ratio, summarise
from fscale.model import variant
from fscale.model.results import CellKey
from fscale.model.words import plural

Subject = tuple[object, ...]
"""the part of a cell's key that a measured and a simulated curve share"""


@dataclass(frozen=True)
class Start:
    """A measured curve: its points by core count. The first is the base of speed-ups."""

    points: Mapping[int, Point]
    base: int
    """the fewest cores with which the workload runs"""
    filesystem: str
    """as a command names it"""
    marks: tuple[str, ...] = ()
    """medium and mode, if the run has several"""

    @property
    def key(self) -> CellKey:
        """The key of one of its cells."""
        return next(iter(self.points.values())).key

    @property
    def name(self) -> str:
        """Workload, options, file system and marks, which no other curve of the run has."""
        marks = f" ({', '.join(self.marks)})" if self.marks else ""
        return f"{self.key.load} on {self.key.filesystem}{marks}"

    @property
    def rates(self) -> dict[int, float]:
        """Core count -> median throughput."""
        return {cores: point.median for cores, point in self.points.items()}

    @property
    def refusal(self) -> str | None:
        """Why nothing can be predicted from it, whatever is simulated; None if something can."""
        if crew := " ".join(f"{name}={value}" for name, value in self.key.crew.items()):
            return f"was measured with {crew}, which cannot be simulated"
        if self.key.open_loop:
            return "was measured at a rate of arrivals, which cannot be simulated"
        if variant.partitions_in(self.key.filesystem)[1] > 1:
            return "was measured on partitions, which cannot be simulated"
        if self.base not in self.points:
            return f"was not measured with {_cores(self.base)}"
        if len(self.points) < 2:
            return "was measured at one core count"
        return None


@dataclass(frozen=True)
class Interval:
    """A value and its interval: a predicted one (`rule.LEVEL`), or a rate and its spread."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Prediction:
    """A curve at a core count that nobody measured."""

    start: Start
    simulated: Mapping[int, float]
    """core count -> rate of the simulated curve"""
    at: int
    """the measured core count that both curves meet at"""
    cores: int
    target: Target

    @property
    def key(self) -> CellKey:
        """The key that a cell of it would have."""
        return self.start.key.model_copy(update={"cores": self.cores, "repetition": 1})

    @property
    def base(self) -> Point:
        """The point that speed-ups refer to."""
        return self.start.points[self.start.base]

    @property
    def anchor(self) -> Point:
        """The point that the simulated curve is scaled to."""
        return self.start.points[self.at]

    @property
    def misfit(self) -> float:
        """The logarithm of the measured speed-up at the anchor by the simulated one."""
        return rule.misfit(self.start.rates, self.simulated, self.at)

    @property
    def can_tell(self) -> bool:
        """Whether simulation and measurement agree as they do in the record."""
        return abs(self.misfit) <= self._record.misfit(self.at)

    @property
    def recorded(self) -> bool:
        """Whether the record has predictions from this anchor as far as this."""
        return self._record.width("speedup", self.at, self.cores).recorded

    @cached_property
    def speedup(self) -> Interval:
        """Throughput by that of the base."""
        value = rule.speedup(self.start.rates, self.simulated, self.at, self.cores)
        return self._interval("speedup", value, Ratio.of(self.anchor, self.base))

    @cached_property
    def rate(self) -> Interval:
        """Operations per second."""
        point = self.anchor
        value = rule.scaled(self.start.rates, self.simulated, self.at, self.cores)
        spread = Interval(point.median, point.spread.low, point.spread.high)
        return self._interval("rate", value, spread)

    @property
    def simulated_speedup(self) -> float:
        """The speed-up by the simulation alone."""
        return self.simulated[self.cores] / self.simulated[self.start.base]

    @property
    def limit(self) -> str:
        """What about the measurement limits the prediction; empty if the record does."""
        for point in (self.base, self.anchor):
            if point.disturbed == point.n:
                return f"disturbed at {_cores(point.key.cores)}"
        if self._deviation(Ratio.of(self.anchor, self.base)) > self._width("speedup"):
            wider = max((self.base, self.anchor), key=_range)
            return f"noise at {_cores(wider.key.cores)}"
        for point in (self.base, self.anchor):
            if point.n == 1:
                return f"one repetition at {_cores(point.key.cores)}"
        return ""

    @property
    def _record(self) -> Record:
        return records()[self.target]

    def _width(self, quantity: Quantity) -> float:
        return self._record.width(quantity, self.at, self.cores).log

    def _interval(self, quantity: Quantity, value: float, measured: Ratio | Interval) -> Interval:
        """The width of the record, or of the repetitions if they differ by more."""
        factor = math.exp(max(self._width(quantity), self._deviation(measured)))
        return Interval(value, value / factor, value * factor)

    @staticmethod
    def _deviation(of: Ratio | Interval) -> float:
        return math.log(max(of.high / of.value, of.value / of.low))


@dataclass(frozen=True)
class Predictions:
    """All predictions of a run, and the curves without one."""

    made: Sequence[Prediction]
    refused: Mapping[str, str]
    """curve -> why nothing was predicted"""


def starts(results: Results) -> list[Start]:
    """The measured curves, in the order of their names."""
    curves: dict[Subject, dict[int, Point]] = defaultdict(dict)
    for point in summarise(results.scored):
        curves[*_subject(point.key), point.key.medium][point.key.cores] = point
    keys = [next(iter(points.values())).key for points in curves.values()]
    made = []
    for key, marked, points in zip(keys, marks(keys), curves.values(), strict=True):
        described = results.descriptors.get(key.workload)
        base = max(1, described.min_cores) if described else 1
        filesystem = asked.filesystem(results.run, key.filesystem)
        made.append(Start(points, base, filesystem, marked))
    return made


def predict(
    results: Results, simulation: Results, counts: Collection[int] | None = None
) -> Predictions:
    """Predict the curves of a run at core counts beyond the measured ones.

    Without `counts` they are those of each simulated curve. More cores are on the same machine as
    far as it has them, and on another one beyond.
    """
    known: dict[Subject, dict[int, float]] = defaultdict(dict)
    for point in summarise(simulation.scored):
        known[_subject(point.key)][point.key.cores] = point.median
    made, refused = [], {}
    for start in starts(results):
        simulated = known.get(_subject(start.key), {})
        at = rule.anchor(start.rates, simulated) if start.base in simulated else None
        wanted = {n for n in counts or simulated if n > max(start.points)}
        missing = sorted(wanted - simulated.keys())
        if reason := start.refusal:
            refused[start.name] = reason
        elif not simulated:
            refused[start.name] = "is not in the simulation"
        elif start.base not in simulated:
            refused[start.name] = f"was not simulated with {_cores(start.base)}"
        elif at is None:
            refused[start.name] = "was measured and simulated at one core count only"
        elif not wanted:
            refused[start.name] = f"was not simulated with more than {_cores(max(start.points))}"
        else:
            made += [
                Prediction(start, simulated, at, n, _target(results, n))
                for n in sorted(wanted - {*missing})
            ]
            if missing:
                refused[start.name] = f"was not simulated with {', '.join(map(str, missing))} cores"
    return Predictions(made, refused)


def _target(results: Results, cores: int) -> Target:
    has = len(results.run.machine.topology)
    return "this machine" if cores <= has else "another machine"


def _subject(key: CellKey) -> Subject:
    crew = sorted(key.crew.items())
    return (key.workload, *sorted(key.options.items()), key.filesystem, key.mode, *crew)


def _cores(count: int) -> str:
    return plural(count, "core")


def _range(point: Point) -> float:
    return point.spread.high / point.spread.low
