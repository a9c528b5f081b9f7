# SPDX-License-Identifier: GPL-2.0-only
"""Reads the histogram files of the microbenchmark."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np


def counts(files: Iterable[Path]) -> Iterator[tuple[int, int]]:
    """Yield nanoseconds and counts of all workers.

    A file contains pairs of little-endian uint64.
    """
    for file in files:
        for value, count in np.fromfile(file, dtype="<u8").reshape(-1, 2).tolist():
            yield int(value), int(count)


def by_turn(file: Path) -> dict[int, dict[int, int]]:
    """Return the number of a turn, from 1 -> nanoseconds -> operations of all workers.

    The file contains triples of little-endian uint64.
    """
    found: dict[int, dict[int, int]] = defaultdict(dict)
    for turn, value, count in np.fromfile(file, dtype="<u8").reshape(-1, 3).tolist():
        found[int(turn)][int(value)] = int(count)
    return dict(found)
