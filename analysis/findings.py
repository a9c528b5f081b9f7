# SPDX-License-Identifier: GPL-2.0-only
"""Classifies curves by how they scale; the report prints the rules below the verdicts."""

from dataclasses import dataclass
from enum import Enum

from fscale.analysis.curves import Curve, Page, Panel
from fscale.analysis.summary import Ratio

SCALES_FROM = 0.8  # of linear
SUPERLINEAR_FROM = (
    1.15  # of one core per hardware thread: more than the noise of two undisturbed points
)
CLEAR_FROM = 0.05  # a ratio this close to 1 is not a practical change


class Scaling(Enum):
    """How a curve behaves at its highest core count, in a word."""

    SUPERLINEAR = "in doubt"
    SCALES = "scales"
    PARTLY = "gains"
    FLAT = "no change"
    FALLS = "falls"


@dataclass(frozen=True)
class CurveFinding:
    """The verdict on one curve."""

    panel: Panel
    curve: Curve
    ratio: Ratio
    verdict: Scaling

    @property
    def disturbed(self) -> bool:
        """Whether other processes' load was on either of the two points."""
        base = self.curve.base
        return bool(self.curve.top.disturbed or (base and base.disturbed))


def judge(ratio: Ratio, linear: float, most: float, kept: float = 1.0) -> Scaling:
    """Judge a speed-up against the linear one, by physical cores, and `most`, by hardware threads.

    The curve is flat if the interval from the two spreads includes 1, or if the ratio is within
    `CLEAR_FROM` of 1. Otherwise it falls (below 1, and clearly below `kept`, the share that the
    machine itself keeps), gains partly, scales (at least `SCALES_FROM`
    of linear) or gains more than the CPUs can give (at least `SUPERLINEAR_FROM` of `most`).
    """
    if ratio.low <= 1 <= ratio.high or abs(ratio.value - 1) <= CLEAR_FROM:
        return Scaling.FLAT
    if ratio.value < 1:
        falls = ratio.high < kept and ratio.value < (1 - CLEAR_FROM) * kept
        return Scaling.FALLS if falls else Scaling.FLAT
    if ratio.value >= SUPERLINEAR_FROM * most:
        return Scaling.SUPERLINEAR
    return Scaling.SCALES if ratio.value >= SCALES_FROM * linear else Scaling.PARTLY


def findings(page: Page) -> list[CurveFinding]:
    """One finding for each curve that has a base and a higher core count, in the page's order."""
    classified = []
    for panel, curve in page.curves:
        ratio = curve.top_speedup
        if ratio is not None:
            verdict = judge(ratio, curve.linear, curve.most, curve.kept)
            classified.append(CurveFinding(panel, curve, ratio, verdict))
    return classified
