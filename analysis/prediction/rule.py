# SPDX-License-Identifier: GPL-2.0-only
"""The rule of a prediction, and how wide its interval is.

The simulated curve is scaled so that it meets the measured one at its anchor, the most cores that
were measured. One core, whose throughput varies most, then has no part in the predicted rate. A
speed-up, in which it has, is at most linear.

An interval is a split conformal one: errors of earlier predictions, without their signs and on the
log scale, are sorted, and the half-width is one of them (Lei et al., "Distribution-Free Predictive
Inference for Regression", Journal of the American Statistical Association 113, 2018).
"""

import math
from collections.abc import Iterable

from fscale.analysis.skill import Curve

LEVEL = 0.8
"""share of the predictions whose interval contains the truth, if they err as those before them"""


def anchor(measured: Curve, simulated: Curve) -> int | None:
    """The most cores that were measured and simulated, beyond the base; None if there are none."""
    return max(measured.keys() & simulated.keys() - {min(measured)}, default=None)


def scaled(measured: Curve, simulated: Curve, at: int, cores: int) -> float:
    """The simulated curve at `cores`, scaled to meet the measured one at `at`."""
    return measured[at] * simulated[cores] / simulated[at]


def speedup(measured: Curve, simulated: Curve, at: int, cores: int) -> float:
    """The predicted throughput of `cores` by the measured one of the base, at most linear.

    The base has one worker; a background writer is not one.
    """
    base = min(measured)
    return min(scaled(measured, simulated, at, cores) / measured[base], cores - base + 1)


def misfit(measured: Curve, simulated: Curve, at: int) -> float:
    """The logarithm of the measured speed-up from the base to `at` by the simulated one."""
    base = min(measured)
    return math.log(measured[at] / measured[base] * simulated[base] / simulated[at])


def half_width(errors: Iterable[float], level: float = LEVEL) -> float:
    """The half-width of an interval around the next prediction; infinite for too few errors."""
    ordered = sorted(map(abs, errors))
    rank = math.ceil(level * (len(ordered) + 1) - 1e-9)
    return ordered[rank - 1] if rank <= len(ordered) else math.inf
