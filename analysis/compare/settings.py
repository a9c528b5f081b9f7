# SPDX-License-Identifier: GPL-2.0-only
"""The settings of a comparison."""

from pydantic import Field

from fscale.analysis.metrics import METRICS, Metric
from fscale.model.bench import Strict

DISTURBED_SHARE = 0.25
"""up to this share of disturbed repetitions, other load is no reason for doubt"""


class Settings(Strict):
    """The settings of a comparison; docs/design/statistics.md has the reasons for the defaults."""

    metrics: tuple[Metric, ...] = Field(
        default=METRICS, min_length=1, description="metrics to judge"
    )
    margin: float = Field(default=0.05, gt=0, lt=1, description="practical margin, as a fraction")
    slice_margin: float = Field(
        default=0.02, gt=0, lt=1, description="the same, for sides that took turns"
    )
    count_margin: float = Field(
        default=0.01, gt=0, lt=1, description="the same, for counts per operation"
    )
    latency_margin: float = Field(
        default=0.1, gt=0, lt=1, description="the same, for quantiles of the latency"
    )
    fdr: float = Field(
        default=0.01, gt=0, lt=1, description="false discovery rate over all tests together"
    )
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="confidence of intervals")
    power: float = Field(default=0.95, gt=0.5, lt=1, description="power of the smallest change")
    resamples: int = Field(default=4999, ge=999, le=99999, description="resamples of the bootstrap")
    seed: int = Field(default=0, ge=0)
    pause: float = Field(
        default=0.3,
        ge=0,
        description='longest pause of a worker, in seconds, that "same" excludes in slices; 0: '
        "however little work was done",
    )
    allow_different: tuple[str, ...] = Field(
        default=(), description="differences in the definition of the cells that are allowed"
    )
