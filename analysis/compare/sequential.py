# SPDX-License-Identifier: GPL-2.0-only
"""The schedule of looks in a sequential comparison, and the error rate that each may spend."""

from collections.abc import Sequence

from fscale.analysis.compare.repetitions import repetitions_to_reach

GROWTH = 1.4
WHOLE_STEP = 2
"""repetitions per side in a round: A B B A"""


def weight(look: int) -> float:
    """The share of the error rate that look 1, 2, ... may spend: 1/2, 1/6, 1/12, ...

    The shares add up to one over any number of looks, so the smallest of p / weight so far is a
    p-value whenever one stops (a spending function as in Lan and DeMets, "Discrete sequential
    boundaries for clinical trials", Biometrika 70, 1983, made safe by the union bound; such
    always-valid p-values may enter Benjamini and Hochberg's procedure: Johari et al., "Always valid
    inference", Operations Research 70, 2022).
    """
    return 1 / (look * (look + 1))


def schedule(fdr: float, family: int, most: int) -> tuple[int, ...]:
    """Repetitions per side at which to look, up to `most`.

    The first look comes as soon as one changed test among `family` can be detected; each further
    look after about 40% more, always after a whole A B B A (an even number of repetitions per
    side).
    """
    first = repetitions_to_reach(fdr * weight(1) / max(1, family), blocked=True)
    first += first % WHOLE_STEP
    return growing(first, most, WHOLE_STEP) if first <= most else ()


def ended(looks: Sequence[int], last: int) -> tuple[int, ...]:
    """The looks of a run that reached its time limit after `last` rounds and looked once more.

    The time limit does not depend on the data, so this look is as valid as a planned one.
    """
    return (*(look for look in looks if look < last), last)


def resumed(looks: Sequence[int], most: int, step: int = 1) -> tuple[int, ...]:
    """The looks of a resumed run: the earlier ones, then each after about 40% more."""
    return (*looks[:-1], *growing(looks[-1], most, step)) if looks else ()


def growing(first: int, most: int, step: int = 1) -> tuple[int, ...]:
    """The looks at multiples of `step` from `first`, each after about 40% more."""
    looks = [first]
    while (n := max(looks[-1] + step, round(looks[-1] * GROWTH))) + -n % step <= most:
        looks.append(n + -n % step)
    return tuple(looks)
