# SPDX-License-Identifier: GPL-2.0-only
"""How often the history's steps are wrong, on made-up series: false ones, and ones not found.

.venv/bin/python -m tests.validation.steps

It measures nothing and takes a minute of CPU time. Each line is of `--series` series: noise of each
kind with the deviations of `NOISES`, then with a loss of 10% (noise of 1% and 3%) and of 20% (3%)
from the middle on, and from the third last run on. Found is one step, at most a run beside its
place.
"""

import argparse
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fscale.analysis.history.steps import edges

Array = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int, float], Array]
MARGIN = 0.05
NOISES = (0.01, 0.03, 0.06)
LOSSES = ((0.1, 0.01), (0.1, 0.03), (0.2, 0.03))  # of the rate, and the noise beside it


def _student(rng: np.random.Generator, count: int, sigma: float) -> Array:
    return np.asarray(rng.standard_t(3, count) * sigma / np.sqrt(3))


def _bad_runs(rng: np.random.Generator, count: int, sigma: float) -> Array:
    return np.where(rng.random(count) < 0.05, -0.3, 0) + rng.normal(0, sigma, count)


def _alike(rng: np.random.Generator, count: int, sigma: float) -> Array:
    own = rng.normal(0, sigma * np.sqrt(0.75), count)
    noise = np.zeros(count)
    for i in range(count):
        noise[i] = (0.5 * noise[i - 1] if i else 0) + own[i]
    return noise


KINDS: dict[str, Noise] = {
    "normal": lambda rng, count, sigma: rng.normal(0, sigma, count),
    "Student's t, 3 degrees": _student,
    "normal, 5% of runs lose a quarter": _bad_runs,
    "AR(1) of 0.5": _alike,
}


def _share_false(rng: np.random.Generator, noise: Noise, count: int, sigma: float, n: int) -> float:
    return sum(bool(edges(np.exp(noise(rng, count, sigma)), MARGIN)) for _ in range(n)) / n


def _share_found(
    rng: np.random.Generator,
    noise: Noise,
    count: int,
    place: int,
    loss: tuple[float, float],
    n: int,
) -> float:
    found = 0
    for _ in range(n):
        logs = noise(rng, count, loss[1])
        logs[place:] += np.log1p(-loss[0])
        seen = edges(np.exp(logs), MARGIN)
        found += len(seen) == 1 and abs(seen[0] - place) <= 1
    return found / n


def main() -> int:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=500)
    n = parser.parse_args().series
    rng = np.random.default_rng(1)
    print("| Noise | Runs | False at 1, 3, 6% | Found in the middle | Found 3 runs after |")
    print("|---|---|---|---|---|")
    for name, noise in KINDS.items():
        for count in (6, 10, 30, 100):
            false = [_share_false(rng, noise, count, sigma, n) for sigma in NOISES]
            columns = [
                [_share_found(rng, noise, count, place, loss, n) for loss in LOSSES]
                for place in (count // 2, count - 3)
            ]
            said = (", ".join(f"{100 * share:.1f}" for share in part) for part in (false, *columns))
            print(f"| {name} | {count} | {' | '.join(said)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
