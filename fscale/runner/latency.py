# SPDX-License-Identifier: GPL-2.0-only
"""Reads the histogram files of the microbenchmark."""

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
