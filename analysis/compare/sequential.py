# SPDX-License-Identifier: GPL-2.0-only
"""The schedule of looks in a sequential comparison, and the error rate that each may spend."""

from collections.abc import Sequence

from fscale.analysis.compare.repetitions import repetitions_to_reach

GROWTH = 1.4


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
    looks: list[int] = []
    n = repetitions_to_reach(fdr * weight(1) / max(1, family), blocked=True)
    while (n := n + n % 2) <= most:
        looks.append(n)
        n = round(n * GROWTH)
    return tuple(looks)


def ended(looks: Sequence[int], last: int) -> tuple[int, ...]:
    """The looks of a run that reached its time limit after `last` pairs and looked once more.

    The time limit does not depend on the data, so this look is as valid as a planned one.
    """
    return (*(look for look in looks if look < last), last)


def resumed(looks: Sequence[int], most: int) -> tuple[int, ...]:
    """The looks of a resumed run: the earlier ones, then each after about 40% more."""
    return (*looks[:-1], *growing(looks[-1], most))


def growing(first: int, most: int) -> tuple[int, ...]:
    """Pairs at which a sliced run looks: `first`, then each after about 40% more."""
    looks = [first]
    while (n := max(looks[-1] + 1, round(looks[-1] * GROWTH))) <= most:
        looks.append(n)
    return tuple(looks)
