# SPDX-License-Identifier: GPL-2.0-only
"""The ratio of a partitioned medium over a whole one."""

import pytest

from fscale.analysis.curves import arrange
from fscale.analysis.report.partitions import rows
from fscale.analysis.summary import summarise
from fscale.model.results import Cell
from tests.support import synthetic


def cell(filesystem: str, repetition: int, rate: float, cores: int = 2) -> Cell:
    key = synthetic.key(repetition, workload="exim", filesystem=filesystem, cores=cores, duration=5)
    return synthetic.bare_cell(key, rate, unit="messages")


def test_ratio_of_medians_with_the_interval_of_both_spreads() -> None:
    cells = [cell("ext4", r, rate) for r, rate in ((1, 100), (2, 110), (3, 90))]
    cells += [cell("ext4:8", r, rate) for r, rate in ((1, 150), (2, 140), (3, 160))]
    cells += [cell("xfs:8", 1, 100), cell("ext4:8", 1, 70, cores=1)]  # without a partner
    (page,) = arrange(summarise(cells), ["ext4", "ext4:8"], {})
    (row,) = rows(page, page.panels[0])
    assert (row.filesystem, row.partitions, row.whole.key.cores) == ("ext4", 8, 2)
    assert row.ratio.value == pytest.approx(1.5)
    assert row.ratio.low == pytest.approx(140 / 110)
    assert row.ratio.high == pytest.approx(160 / 90)
