# SPDX-License-Identifier: GPL-2.0-only
"""Profiles of applications: whom they look at, and what is made of it."""

import gzip
import json
from pathlib import Path

import pytest

from fscale.analysis.diagnosis import cpuprofile, perfscript
from fscale.analysis.diagnosis.triage import triage
from fscale.apps.adapter import AppLoad
from fscale.apps.meter import Meter
from fscale.apps.registry import applications
from fscale.model.load import COMM
from fscale.model.results import Cell
from fscale.runner.profilers import locks
from fscale.runner.profilers import offcpu as offcpu_profiler
from fscale.runner.profilers.base import ProfilerError
from fscale.runner.profilers.context import Context
from fscale.runner.profilers.counts import Counts
from fscale.runner.profilers.workers import workers
from tests.support import synthetic

KEY = synthetic.key(workload="exim", cores=2, duration=2, profile="counts")
CGROUP = Path("/sys/fs/cgroup/fscale-x")

# A driver (100) with a daemon from before (90: its number came round), which forks in the window;
# the number 102 is that of a stranger afterwards. perf tells of what is there already at time 0.
SCRIPT = """\
exim4   90     0.000000: PERF_RECORD_FORK(90:90):(101:101)
taskset  101     0.000000: PERF_RECORD_FORK(101:101):(100:100)
bash   50     0.000000: PERF_RECORD_FORK(50:50):(1:1)
exim4   90     9.900000:    7000000 cpu-clock:
\tffffffff81009999 before_the_window

fscale-run   100    10.000000: PERF_RECORD_COMM: fscale-run:100/100
exim4   90    10.001000:    1000000 cpu-clock:
\tffffffff81001000 rwsem_spin_on_owner
\tffffffff81001100 rwsem_down_write_slowpath
\tffffffff81001200 down_write
\tffffffff81001300 path_openat

exim4  102    10.002000: PERF_RECORD_FORK(102:102):(90:90)
exim4  102    10.003000:    1000000 cpu-clock:
\tffffffff81002000 ext4_create

exim4  103    10.003100: PERF_RECORD_FORK(90:103):(90:90)
exim4  103    10.003200:    1000000 cpu-clock:
\tffffffff81002000 work_of_a_thread

exim4  102    10.004000: PERF_RECORD_EXIT(102:102):(90:90)
bash  102    10.005000: PERF_RECORD_FORK(102:102):(50:50)
bash  102    10.006000:    5000000 cpu-clock:
\tffffffff81002000 strangers_work

fscale-app   100    10.010000: PERF_RECORD_COMM: fscale-app:100/100
exim4   90    10.011000:    9000000 cpu-clock:
\tffffffff81009999 after_the_window
"""


def context(named: bool, cgroup: Path | None = CGROUP) -> Context:
    return Context(KEY, [0, 1], 100, cgroup, Path("/mnt"), None, None, Path("/tmp"), named)


def test_applications_are_not_known_by_name() -> None:
    assert all(not AppLoad(app).named for app in applications())


def test_bpftrace_looks_at_the_cgroup_in_the_window() -> None:
    text = offcpu_profiler.program(workers(context(named=False)))
    assert f'@open && !(args->prev_state & 48) && cgroup == cgroupid("{CGROUP}")' in text
    assert (
        f"""if (cgroup == cgroupid("{CGROUP}")) {{
			@open = nsecs;"""
        in text
    )
    assert "@active = sum((nsecs - @open) * 2)" in text
    assert "@on[" not in text


def test_bpftrace_looks_at_the_microbenchmark_by_name() -> None:
    text = offcpu_profiler.program(workers(context(named=True)))
    assert "if (@on[args->prev_pid])" in text
    assert "cgroup" not in text


def test_the_lock_profile_looks_at_the_cgroup_in_the_window(tmp_path: Path) -> None:
    told = locks.settings(context(named=False, cgroup=tmp_path), None)
    assert told["cgroup"] == tmp_path.stat().st_ino
    assert (told.get("pid"), told["cores"]) == (None, 2)


def test_the_lock_profile_looks_at_the_microbenchmark_by_name() -> None:
    told = locks.settings(context(named=True), None)
    bits = {"spin_bits": locks.SPIN_BITS, "sleep_bits": locks.SLEEP_BITS}
    turns = {"most_spun": 50, "turn_ms": 50, "pause_ms": 150}
    assert told == {**bits, **turns, "pid": 100}


def test_without_a_cgroup_there_is_no_profile_of_an_application() -> None:
    with pytest.raises(ProfilerError, match="no writable cgroup v2"):
        workers(context(named=False, cgroup=None))
    with pytest.raises(ProfilerError, match="no writable cgroup v2"):
        locks.settings(context(named=False, cgroup=None), None)


def test_perf_script_follows_the_family_in_the_window() -> None:
    samples = perfscript.parse_tree(SCRIPT, COMM, 100, cores=2)
    assert set(samples.workers) == {
        ("rwsem_spin_on_owner", "rwsem_down_write_slowpath", "down_write", "path_openat"),
        ("ext4_create",),
        ("work_of_a_thread",),
    }
    assert samples.total == 3_000_000
    assert samples.active_ns == pytest.approx(2 * 10e6)
    assert samples.others == {"exim4": 16_000_000, "bash": 5_000_000}


def test_the_cpu_profile_of_an_application() -> None:
    profile = {
        "output": SCRIPT, "comm": COMM, "pid": 100, "named": False, "cores": 2,
        "event": "cpu-clock",
    }  # fmt: skip
    found = cpuprofile.read(profile)
    spot = found.spinning["inode->i_rwsem of the shared directory"]
    assert found.share(spot.periods) == pytest.approx(1e6 / 20e6)


@pytest.mark.parametrize(
    ("window", "per_op"),
    [
        pytest.param(2.0, 2.0, id="the-window-of-the-figure"),
        pytest.param(1.0, 4.0, id="half-of-it-was-seen"),
        pytest.param(2.4, 2.0, id="the-program's-start-too"),
    ],
)
def test_counts_are_per_unit(
    window: float, per_op: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maps = {"@active": int(2 * window * 1e9), "@worker": {"kmem:kmem_cache_alloc": 800}}
    (tmp_path / "out").write_text(json.dumps({"type": "map", "data": maps}))
    counts = Counts()
    monkeypatch.setattr(counts, "run_tool", lambda _: None)
    monkeypatch.setattr(counts, "finish_tool", lambda: None)
    monkeypatch.setattr("fscale.runner.profilers.counts.needs_event", lambda _: None)
    monkeypatch.setattr(
        "fscale.runner.profilers.counts.bpftrace", lambda *_: (None, tmp_path / "out")
    )
    counts.attach(context(named=False))
    counts.detach()
    cell = synthetic.bare_cell(KEY, 200)
    counts.complete(cell)
    assert (cell.counts or {})["kmem:kmem_cache_alloc"] == pytest.approx(per_op)


def test_the_triage_knows_an_application_by_its_profile(tmp_path: Path) -> None:
    cell = Cell(
        id="x", key=KEY.model_copy(update={"profile": "offcpu"}), status="ok", started="",
        wall_seconds=1, profiles={"offcpu": "p.gz"},
    )  # fmt: skip
    for named in (True, False):
        profile = {"named": named, "output": '{"type": "map", "data": {"@active": 1000}}'}
        (tmp_path / "p.gz").write_bytes(gzip.compress(json.dumps(profile).encode()))
        assert triage(tmp_path, [cell]).application is not named


def test_the_driver_bears_the_name_in_the_window_only() -> None:
    comm = Path("/proc/self/comm")
    before = comm.read_text()
    try:
        meter = Meter([0], None)
        start = meter.open()
        assert comm.read_text().strip() == COMM
        end = meter.close()
        assert comm.read_text().strip() != COMM
        assert end.clock > start.clock
    finally:
        comm.write_text(before.strip())
