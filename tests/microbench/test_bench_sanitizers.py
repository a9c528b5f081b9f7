# SPDX-License-Identifier: GPL-2.0-only
"""No workload does what the address and undefined-behaviour sanitizers forbid."""

import pytest

from tests import bench_support as bench

pytestmark = pytest.mark.live


@pytest.mark.parametrize("workload", bench.WORKLOADS)
def test_sanitizers(workload, tmp_path, fast, monkeypatch):
    log = tmp_path / "sanitizer"
    monkeypatch.setenv("ASAN_OPTIONS", f"log_path={log}")
    monkeypatch.setenv("UBSAN_OPTIONS", f"log_path={log}:print_stacktrace=1")
    long = ("--duration", "0.3", "--warmup", "0.02")  # for an operation that takes this much longer
    code, out = bench.run(workload, fast, *long, binary=bench.SANITIZED)
    reports = [p.read_text() for p in tmp_path.glob("sanitizer.*")]
    assert (code, out.status, reports) == (0, "ok", [])
