# SPDX-License-Identifier: GPL-2.0-only
"""`fscale calibrate` on this machine's own CPUs."""

import os
import subprocess

import pytest

from fscale.model.paths import ROOT
from fscale.sim import calibration

pytestmark = pytest.mark.live


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < calibration.MIN_CPUS, reason="one CPU")
def test_transfers_take_longer_than_hits() -> None:
    subprocess.run(["make", "-s", "-C", str(ROOT / "fscale/calibrate")], check=True)
    cpus = sorted(os.sched_getaffinity(0))[:2]
    found = calibration.sample(cpus)
    times = found.nanoseconds_of_transfers
    for to in (0, 1):
        hit, dirty = times["hit"][to][1 - to], times["dirty"][to][1 - to]
        assert hit is not None
        assert dirty is not None
        assert 0 < hit < dirty
    assert set(found.crowds["add"]) == {"1", "2"}
    assert 0.05 < found.core["cycle_ns_alone"] < 5
