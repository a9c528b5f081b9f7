# SPDX-License-Identifier: GPL-2.0-only
"""The file of predictions in a results directory: predictions.json."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fscale.analysis.prediction.record import Target
from fscale.analysis.reader import LEAST, MOST
from fscale.model.bench import Plain, Strict
from fscale.model.results import CellKey

Figure = Annotated[float, Field(gt=LEAST, lt=MOST, allow_inf_nan=False)]
"""a positive number in the bounds of a measured one"""


class Range(Strict):
    """A figure and its interval."""

    value: Figure
    low: Figure
    high: Figure

    @model_validator(mode="after")
    def _ordered(self) -> "Range":
        if not self.low <= self.value <= self.high:
            raise ValueError("the value is not in its interval")
        return self


class StoredPrediction(Strict):
    """A point of a curve that nobody measured."""

    key: CellKey = Field(description="the key that a cell of the point would have")
    cells: str = Field(
        description="SHA-256 of the names, times and figures of the curve's cells, by which a "
        "prediction is known whose curve was measured again"
    )
    speedup: Range | None = Field(
        description="throughput over the base's; null if it cannot be told"
    )
    rate: Range | None = Field(description="operations per second; null if it cannot be told")
    target: Target = Field(description="where the cores are")
    recorded: bool = Field(description="whether predictions as far as this one were judged")
    base_cores: int = Field(ge=1, description="cores of the base")
    anchor_cores: int = Field(
        ge=1, description="measured cores at which the simulated curve meets the measured one"
    )
    measured_speedup: Figure = Field(
        description="measured throughput of the anchor over the base's"
    )
    simulated_anchor_speedup: Figure = Field(description="the same by the simulation")
    simulated_speedup: Figure = Field(description="speed-up by the simulation alone")
    limited_by: Plain = Field(
        description="measured point that limits the prediction, and why; empty: the record does"
    )

    @model_validator(mode="after")
    def _consistent(self) -> "StoredPrediction":
        if self.key.side is not None or self.key.profile is not None:
            raise ValueError("a side or a profile cannot be predicted")
        if (self.speedup is None) != (self.rate is None):
            raise ValueError("either both or none of speed-up and rate can be told")
        return self

    @property
    def reason(self) -> str:
        """Why it cannot be told, if it cannot: the speed-ups that disagree."""
        disagree = (
            f"at {self.anchor_cores} cores measured {self.measured_speedup:.2f}, "
            f"simulated {self.simulated_anchor_speedup:.2f}"
        )
        return f"{disagree}; {self.limited_by}" if self.limited_by else disagree


class StoredPredictions(Strict):
    """What the last `fscale predict` of a run found."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    run: Plain = Field(description="id of the measured run")
    kernel: Plain = Field(description="`uname -r` of the measured run")
    simulated_kernel: Plain = Field(description="`uname -r` of the simulation")
    simulated_machine: Plain = Field(description="the machine that the simulation is of")
    level: float = Field(
        gt=0, lt=1, description="share of the earlier predictions that the intervals hold"
    )
    points: list[StoredPrediction]
