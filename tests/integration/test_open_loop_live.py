# SPDX-License-Identifier: GPL-2.0-only
"""A planted pause: an open loop shows the calculated p99.9, and a closed loop beside it nothing."""

import pytest

from tests.support import bench
from tests.validation.delay import rare
from tests.validation.openloop import NEAR, SHOWN, WORKLOAD, calculated, measured

pytestmark = pytest.mark.live

PAUSE, EVERY, RATE = 0.5, 2500, 1000


def test_a_pause_is_found_by_the_open_loop_only() -> None:
    (cpu,) = bench.cpus(1)
    binary = rare(EVERY, round(1e9 * PAUSE), WORKLOAD)
    closed, late = measured(binary, cpu, 3)
    opened, found = measured(binary, cpu, 8.7, f"rate={RATE}")
    assert late["99.9"] < 0.1 * PAUSE
    due = calculated(opened, closed, PAUSE, EVERY, RATE)
    for quantile in SHOWN:
        assert found[quantile] == pytest.approx(due[quantile], rel=NEAR)
    assert 0 < due["90"] < 0.8 * PAUSE
