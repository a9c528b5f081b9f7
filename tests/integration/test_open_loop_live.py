# SPDX-License-Identifier: GPL-2.0-only
"""A planted pause: an open loop shows the calculated p99.9, and a closed loop beside it nothing."""

import pytest

from tests.support import bench
from tests.validation.delay import rare
from tests.validation.openloop import NEAR, WORKLOAD, expected, measured

pytestmark = pytest.mark.live

PAUSE, EVERY, RATE = 0.02, 4000, 4000


def test_a_pause_is_found_by_the_open_loop_only() -> None:
    (cpu,) = bench.cpus(1)
    binary = rare(EVERY, round(1e9 * PAUSE), WORKLOAD)
    closed, tail = measured(binary, cpu, 2)
    each = 1 / closed.ops_per_second - PAUSE / EVERY
    assert tail["99.9"] < 0.1 * PAUSE
    assert 0 < RATE * each < 0.7
    opened, tail = measured(binary, cpu, 6, f"rate={RATE}")
    assert tail["99.9"] == pytest.approx(expected(PAUSE, EVERY, RATE, each), rel=NEAR)
    assert opened.ops_per_second == pytest.approx(RATE, rel=0.05)
