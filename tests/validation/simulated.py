# SPDX-License-Identifier: GPL-2.0-only
"""Tables of simulated power and false alarms, as Markdown; parts of them are in docs/design.

.venv/bin/python -m tests.validation.simulated
.venv/bin/python -m tests.validation.simulated slices
"""

import sys
from collections import Counter

import numpy as np

from fscale.analysis.compare.ranktest import RankSamples, p_value
from fscale.analysis.compare.sequential import growing
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sliced import FIRST_LOOK
from tests.support.synthetic_sides import Noise, decided, interleaved_test, sliced_test, verdicts

TRIES = 300
FAMILY = 6
CHANGES = (0.05, 0.10, 0.20)
REPETITIONS = (8, 10, 14, 20)
NOISES = [
    Noise(0.01, 0.4),
    Noise(0.02, 0.4),
    Noise(0.04, 0.0),
    Noise(0.04, 0.4),
    Noise(0.04, 0.4, 0.02),
    Noise(0.06, 0.4),
    Noise(0.10, 0.4),
]
BLOCK_TRIES = 1000
BLOCK_LEVEL = 0.01 / 3
BLOCK_NOISES = [Noise(0.04), Noise(0.04, 0.4, 0.05), Noise(0.06, 0.8), Noise(0.12, 0.9)]
DEVIATIONS = (0.005, 0.01, 0.015, 0.02, 0.03)
PAIRS = 41
SLICED_FAMILY = 30  # twelve points of two rates, and the curves of six of them
SLICED_MARGIN = 0.01
ALARM_TRIES = 4000


def name(noise: Noise) -> str:
    """`4%, drift 40%, outliers 2%`."""
    parts = [f"{noise.cv:.0%}"]
    parts += [f"drift {noise.drift:.0%}"] if noise.drift else []
    parts += [f"outliers {noise.outliers:.0%}"] if noise.outliers else []
    return ", ".join(parts)


def blocks() -> None:
    """Print how the length of a block decides what is found: 10% at 10 against 10."""
    print("| noise | one block | blocks of 8 | blocks of 4 |\n|---|--:|--:|--:|")
    for noise in BLOCK_NOISES:
        rng = np.random.default_rng(1)
        found = np.zeros(3)
        for _ in range(BLOCK_TRIES):
            test = interleaved_test("cell", 10, noise, 0.1, rng)
            eights = test.samples()
            repetitions = np.array([*test.base.values, *test.new.values])
            whole, fours = (
                RankSamples(eights.value, eights.new, block)
                for block in (np.zeros(20, dtype=np.int64), (repetitions - 1) // 2)
            )
            found += [p_value(s) <= BLOCK_LEVEL for s in (whole, eights, fours)]
        row = " | ".join(f"{share:.0%}" for share in found / BLOCK_TRIES)
        print(f"| {name(noise)} | {row} |", flush=True)


def slices() -> None:
    """Print how many pairs find a change among many tests, and how often nothing is found."""
    looks = growing(FIRST_LOOK, PAIRS)
    among = Settings(fdr=Settings().fdr / SLICED_FAMILY, slice_margin=SLICED_MARGIN)
    print(f"| deviation | change | {' | '.join(map(str, looks))} | same |")
    print(f"|--:|--:|{'--:|' * len(looks)}--:|")
    for deviation in DEVIATIONS:
        for change in (0.0, 0.02, 0.05):
            rng = np.random.default_rng(2)
            ends = Counter(
                decided(sliced_test("cell", PAIRS, deviation, change, rng), looks, among)
                for _ in range(TRIES)
            )
            found = [
                sum(n for (v, at), n in ends.items() if v in ("slower", "faster") and at <= look)
                for look in looks
            ]
            same = sum(n for (verdict, _), n in ends.items() if verdict == "same")
            row = " | ".join(f"{share / TRIES:.0%}" for share in (*found, same))
            print(f"| {deviation:.1%} | {change:.0%} | {row} |", flush=True)
    alone = Settings(slice_margin=SLICED_MARGIN)
    rng = np.random.default_rng(3)
    alarms = sum(
        decided(sliced_test("cell", PAIRS, 0.05, 0.0, rng), looks, alone)[0] in ("slower", "faster")
        for _ in range(ALARM_TRIES)
    )
    print(f"\n{alarms} false alarms in {ALARM_TRIES} comparisons of one test, deviation 5%")


def repetitions() -> None:
    """Print a table of blocks, one of power and one of false alarms."""
    blocks()
    print()
    alone = Settings(resamples=999)
    among = Settings(resamples=999, fdr=alone.fdr / FAMILY)
    print(f"| noise | change | {' | '.join(f'{n} v {n}' for n in REPETITIONS)} |")
    print(f"|---|--:|{'--:|' * len(REPETITIONS)}")
    for noise in NOISES:
        for change in CHANGES:
            found = [
                verdicts(TRIES, n, noise, change, among)["slower"] / TRIES for n in REPETITIONS
            ]
            row = " | ".join(f"{share:.0%}" for share in found)
            print(f"| {name(noise)} | {change:.0%} | {row} |", flush=True)
    print("\n| noise | false alarms | same | undecided |\n|---|--:|--:|--:|")
    for noise in NOISES:
        found_ = verdicts(4 * TRIES, 10, noise, 0.0, alone)
        alarms = (found_["slower"] + found_["faster"]) / found_.total()
        rest = " | ".join(f"{found_[v] / found_.total():.0%}" for v in ("same", "undecided"))
        print(f"| {name(noise)} | {alarms:.2%} | {rest} |", flush=True)


if __name__ == "__main__":
    slices() if "slices" in sys.argv[1:] else repetitions()
