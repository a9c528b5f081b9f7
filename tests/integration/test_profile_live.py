# SPDX-License-Identifier: GPL-2.0-only
"""Profiles of the running kernel: the microbenchmark on the tmpfs of /dev/shm, two workers."""

import json
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fscale.analysis.diagnosis import lockprofile, offcpu
from fscale.analysis.diagnosis.cpuprofile import read as read_cpu
from fscale.analysis.diagnosis.profile import load_profile
from fscale.model import paths
from fscale.model.bench import BenchOutput
from fscale.model.config import FileSystem
from fscale.model.maps import numbers, parse
from fscale.runner.profilers import PROFILERS, btf, locks, memory
from fscale.runner.profilers.context import Context
from tests.support.profiled import mount_tracefs, run_profiled

pytestmark = [
    pytest.mark.root,
    pytest.mark.live,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]
FS = FileSystem(
    title="tmpfs",
    kernel="tmpfs",
    nodev=True,
    size="25%",
    counts=["kmem:kmem_cache_alloc", "sched:sched_switch"],
    functions=["shmem_"],
    structs=["pid"],
    caches={"fs_cache": "fs_struct"},
)


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory in tmpfs."""
    directory = Path(tempfile.mkdtemp(prefix="fscale-test-", dir="/dev/shm"))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(autouse=True)
def _tracefs() -> Iterator[None]:
    with mount_tracefs():
        yield


def profiled(
    workload: str,
    name: str,
    place: Path,
    output: Path,
    seconds: float = 0.6,
    crew: str = "processes",
) -> tuple[BenchOutput, Path]:
    """Run a workload on CPUs 0 and 1 with a profiler attached between set-up and window."""
    load = [str(paths.BENCH), "--warmup", "0.05", "--option", f"workers={crew}"]
    out, _ = run_profiled(load, workload, seconds, name, place, FS, output)
    return BenchOutput.model_validate(json.loads(out)), output / f"{name}.json.gz"


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        ("MWRM", "sb->s_vfs_rename_mutex"),
        ("DWOM", "inode->i_rwsem of the shared file"),
        ("MWRL", "rename_lock"),
    ],
)
def test_the_lock_profile_names_what_theory_says(
    workload: str, expected: str, place: Path, tmp_path: Path
) -> None:
    bench, path = profiled(workload, "locks", place, tmp_path)
    found = lockprofile.read(load_profile(path))
    assert bench.status == "ok"
    names = [lock.name.object for lock in found.locks]
    # Wake-ups and timers contend as well; what file system code contends for comes first.
    own = [n for n in names if "rq->__lock" not in n and "RCU" not in n and "pi_lock" not in n]
    assert own[0] == expected, names
    lock = next(lock for lock in found.locks if lock.name.object == expected)
    assert lock.count > 0
    assert sum(lock.histogram.values()) == lock.count
    assert lock.max_ns <= lock.wait_ns <= found.active_ns
    if btf.VMLINUX.is_file():
        assert lock.name.by.value == "address and stack"
    seconds = bench.seconds + bench.warmup_seconds
    assert found.active_ns / 1e9 == pytest.approx(2 * seconds, rel=0.2)


def sampling_error(full: lockprofile.Contended, one_in: int) -> float:
    """The standard error of their sum if one wait in `one_in` is taken, as a share of the sum."""
    above, below = lockprofile.BUCKET_SQUARE
    squares = sum(n * least**2 for least, n in full.histogram.items()) * above / below
    return math.sqrt((one_in - 1) * squares) / full.wait_ns


@pytest.mark.parametrize(
    ("workload", "bits", "expected"),
    [("MWRM", "SLEEP_BITS", "sb->s_vfs_rename_mutex"), ("MWRL", "SPIN_BITS", "rename_lock")],
)
def test_a_sampled_profile_agrees_with_the_full_one_of_the_same_run(
    workload: str,
    bits: str,
    expected: str,
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Twice(locks.Locks):
        """Two programs on the same waits: one takes all, the other soon one in 2, 4, 8, ..."""

        def start(self, context: Context) -> None:
            self.full = locks.Locks()
            (tmp_path / "full").mkdir()
            # What is attached first runs first: its stacks must not be in the other's waits.
            monkeypatch.setattr(locks, bits, 60)
            self.full.start(replace(context, output=tmp_path / "full"))
            monkeypatch.setattr(locks, bits, 7)
            super().start(context)

        def stop(self) -> None:
            super().stop()
            self.full.stop()

    monkeypatch.setitem(PROFILERS, "locks", Twice)
    _, path = profiled(workload, "locks", place, tmp_path)
    found = [
        {lock.name.object: lock for lock in lockprofile.read(load_profile(one)).locks}[expected]
        for one in (path, tmp_path / "full" / "locks.json.gz")
    ]
    sampled, full = found
    assert full.one_in == 1
    assert sampled.one_in >= 4
    # The full one's work at the end of a wait is in the sampled one's: some 0.2 to 0.5 us.
    # A single wait of a millisecond among thousands of microseconds is seldom taken, and what was
    # not taken is not in the sample's own estimate of its error.
    tolerance = max(0.1, 4 * sampling_error(full, sampled.one_in))
    assert sampled.wait_ns > full.wait_ns * (1 - tolerance)
    assert sampled.wait_ns < (full.wait_ns + 1000 * full.count) * (1 + tolerance)
    assert sampled.count == pytest.approx(full.count, rel=0.25)


def shown(full: lockprofile.Contended, turn_ns: float) -> tuple[float, float]:
    """The least shares of all waits, and of their time, that turns show of a looked-at moment.

    A wait that crosses a turn's edge is not seen: one of w in 1 - w / turn of the cases, and one
    that is longer than a turn never. A wait is shorter than twice the lower bound of its bucket.
    """
    seen = {least: n * max(0, 1 - 2 * least / turn_ns) for least, n in full.histogram.items()}
    time = sum(n * least for least, n in full.histogram.items())
    return (
        sum(seen.values()) / sum(full.histogram.values()),
        sum(n * least for least, n in seen.items()) / time,
    )


def turned(monkeypatch: pytest.MonkeyPatch, turn: int, pause: int) -> None:
    """Turns of milliseconds, however little CPUs spin."""
    monkeypatch.setattr(locks, "MAX_SPUN", 0)
    monkeypatch.setattr(locks, "TURN_MS", turn)
    monkeypatch.setattr(locks, "PAUSE_MS", pause)


def test_what_turns_show_agrees_with_the_whole_of_the_same_run(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Twice(locks.Locks):
        """Two programs on the same waits: one looks all the time, the other in turns."""

        def start(self, context: Context) -> None:
            self.full = locks.Locks()
            (tmp_path / "full").mkdir()
            monkeypatch.setattr(locks, "PAUSE_MS", 0)
            self.full.start(replace(context, output=tmp_path / "full"))
            turned(monkeypatch, 10, 30)
            super().start(context)

        def stop(self) -> None:
            super().stop()
            self.full.stop()

    monkeypatch.setattr(locks, "SLEEP_BITS", 60)  # all are taken: chance would be in the sums
    monkeypatch.setitem(PROFILERS, "locks", Twice)
    _, path = profiled("MWRM", "locks", place, tmp_path, seconds=2)
    turns, full = (
        lockprofile.read(load_profile(one)) for one in (path, tmp_path / "full" / "locks.json.gz")
    )
    assert full.recorded_share == 1
    assert 0.1 < turns.recorded_share < 0.4
    assert turns.active_ns == pytest.approx(full.active_ns, rel=0.01)
    seen, all_of_it = (
        next(lock for lock in one.locks if lock.name.object == "sb->s_vfs_rename_mutex")
        for one in (turns, full)
    )
    # A turn has two programs' work in each wait, a pause one's: 0.7 of the waits, each longer.
    # Beside others' load a wait lasts until its holder runs again: for milliseconds, as a turn.
    waits, time = shown(all_of_it, 10e6)
    assert 0.5 * waits < seen.count / all_of_it.count < 1.1
    tolerance = max(0.3, 4 * sampling_error(all_of_it, round(1 / turns.recorded_share)))
    # What the second program costs between two waits is in no wait: there are fewer of them.
    fewer = min(1, seen.count / all_of_it.count / waits)
    # Idle, turns showed 0.66 to 0.72 of the time (n = 7).
    assert seen.wait_ns > all_of_it.wait_ns * time * fewer * (0.9 - tolerance)
    assert seen.wait_ns < (all_of_it.wait_ns + 1000 * all_of_it.count) * (1 + tolerance)
    assert turns.locks[0].name.object == full.locks[0].name.object


@pytest.mark.parametrize("crew", ["processes", "threads"])
def test_the_time_of_all_workers_is_counted(place: Path, tmp_path: Path, crew: str) -> None:
    # Both leave their window at the same moment, so an addition that is not atomic loses one.
    bench, path = profiled("DRBL", "locks", place, tmp_path, crew=crew)
    found = lockprofile.read(load_profile(path))
    window = (bench.seconds + bench.warmup_seconds) * 1e9
    # It would be half; beside others' load the edges of the window take some of it.
    assert found.active_ns == pytest.approx(2 * window, rel=0.25)


def test_private_reads_contend_for_nothing(place: Path, tmp_path: Path) -> None:
    _, path = profiled("DRBL", "locks", place, tmp_path)
    content = load_profile(path)
    # What the file system's own TOML file says of its functions and structs is there for the names.
    assert content["functions"] == {"tmpfs": ["shmem_"]}
    assert content["cache_structs"]["fs_cache"] == "fs_struct"
    if btf.VMLINUX.is_file():
        assert {"pid", "fs_struct", "super_block", "shmem_inode_info"} <= set(content["layouts"])
    found = lockprofile.read(load_profile(path))
    assert sum(lock.wait_ns for lock in found.locks) < 0.02 * found.active_ns


@pytest.mark.parametrize("crew", ["processes", "threads"])
def test_the_cpu_profile_holds_the_workers_alone(place: Path, tmp_path: Path, crew: str) -> None:
    bench, path = profiled("DRBL", "cpu", place, tmp_path, crew=crew)
    found = read_cpu(load_profile(path))
    used = sum(w.user_seconds + w.system_seconds for w in bench.workers)
    if found.event == "cpu-clock":
        assert found.samples.total / 1e9 == pytest.approx(used, rel=0.3)
    assert any("read" in leaf or "copy" in leaf for leaf in found.leaves)


def test_blocked_time_is_found_where_threads_sleep(place: Path, tmp_path: Path) -> None:
    _, path = profiled("MWRM", "offcpu", place, tmp_path)
    found = offcpu.read(load_profile(path))
    assert found.waits
    assert found.waits[0].name.object == "sb->s_vfs_rename_mutex"
    assert found.waits[0].lock


def test_counts_per_operation_do_not_depend_on_noise(place: Path, tmp_path: Path) -> None:
    ratios = []
    for name in ("a", "b"):
        directory, output = place / name, tmp_path / name
        directory.mkdir()
        output.mkdir()
        bench, path = profiled("MWCL", "counts", directory, output, seconds=0.3)
        worker = numbers(parse(load_profile(path)["output"])["@worker"])
        ratios.append(worker["kmem:kmem_cache_alloc"] / bench.executed_ops)
    assert ratios[0] == pytest.approx(ratios[1], rel=0.02)
    assert ratios[0] > 1


def test_preemption_by_a_neighbour_is_not_the_workers_work(place: Path, tmp_path: Path) -> None:
    with subprocess.Popen(["taskset", "--cpu-list", "0", "sh", "-c", "while :; do :; done"]) as hog:
        try:
            bench, path = profiled("DRBL", "counts", place, tmp_path)
        finally:
            hog.kill()
    # The hog takes the CPU many times a second; a reader of cached blocks never waits.
    assert sum(w.involuntary_switches for w in bench.workers) > 20
    counted = numbers(parse(load_profile(path)["output"]).get("@worker"))
    assert counted.get("sched:sched_switch", 0) < 10


def test_kernel_memory_is_found_twice_at_the_same_place(tmp_path: Path) -> None:
    types = btf.load()
    if types is None:
        pytest.skip("the kernel has no BTF")
    shape = memory.shape_of(types)
    assert shape is not None
    told = [f"{name}={value}" for name, value in shape.as_json().items() if value]
    output = tmp_path / "profile"
    found = []
    for settings in (told, told, []):
        subprocess.run([paths.LOCKS, output, *settings, "/bin/true"], check=True)
        found.append(json.loads(output.read_text())["memory"])
    assert found[0] == found[1]
    assert found[0]["direct_map"] % (1 << shape.page_bits) == 0
    assert found[0]["page_array"] % shape.page_size == 0
    assert found[2] is None


def test_offsets_of_the_running_kernel_are_in_order() -> None:
    types = btf.load()
    if types is None:
        pytest.skip("the kernel has no BTF")
    size = types.size("super_block")
    offset = types.offset("super_block", "s_inode_list_lock")
    assert size is not None
    assert offset is not None
    assert 0 < offset < size
