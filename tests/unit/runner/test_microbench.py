# SPDX-License-Identifier: GPL-2.0-only
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from fscale.model.bench import CpuTimes
from fscale.model.errors import FscaleError
from fscale.model.histogram import summarise
from fscale.model.latency import quantile, why_none
from fscale.model.load import LoadSettings, Target
from fscale.model.paths import ROOT
from fscale.runner import microbench
from fscale.runner.cell import accounting
from fscale.runner.cell.measure import seed_of
from fscale.runner.latency import counts
from fscale.system import namespaces, processes
from tests.support import synthetic
from tests.support.namespaces import unshare
from tests.support.runner import fake_bench


def target(tmp_path: Path, **key: object) -> Target:
    fields = {"mode": "direct", "cores": 2, "duration": 0.05, "options": {"way": "b"}}
    return Target(
        key=synthetic.key(**(fields | key)),
        directory=tmp_path,
        cpus=[0, 2],
        seed=7,
        space=1 << 20,
        scratch=tmp_path,
        cgroup=Path("/cg"),
    )


def load(tmp_path: Path) -> microbench.Microbench:
    return microbench.find(fake_bench(tmp_path))[0]


def test_command_line(tmp_path: Path) -> None:
    settings = LoadSettings(warmup=0.5, interval=0.1, max_stock=9, latency=True)
    argv = load(tmp_path).command(target(tmp_path), settings, (3, 4))
    text = " ".join(argv[1:])
    assert text == (
        f"--workload DRBL --dir {tmp_path} --cpus 0,2 --mode direct --duration 0.05 --warmup 0.5 "
        f"--interval 0.1 --max-stock 9 --seed 7 --space 1048576 --option way=b --cgroup /cg "
        f"--latency {tmp_path} --sync-fds 3,4"
    )


def test_operations_that_arrive_have_latencies(tmp_path: Path) -> None:
    """Which no settings ask for."""
    settings = LoadSettings(warmup=0)
    for options, recorded in (({"rate": 5}, True), ({"rate": 0}, False), ({}, False)):
        argv = load(tmp_path).command(target(tmp_path, options=options), settings, (3, 4))
        assert ("--latency" in argv) is recorded


def test_workers_per_cpu_reach_the_benchmark(tmp_path: Path) -> None:
    argv = load(tmp_path).command(
        target(tmp_path, workers_per_cpu=3), LoadSettings(warmup=0.5), (3, 4)
    )
    assert argv[argv.index("--workers-per-cpu") + 1] == "3"


def test_what_it_prints_becomes_an_outcome(tmp_path: Path) -> None:
    printed = json.loads(_printed(tmp_path, "work"))
    outcome = load(tmp_path).parse(target(tmp_path), 0, json.dumps(printed), "")
    assert outcome.status == "ok"
    assert outcome.ops == printed["ops"] > 0
    assert outcome.own_cpu_seconds == 0.05
    assert outcome.others_cpu_seconds == 0


def _printed(tmp_path: Path, act: str) -> str:
    read, theirs = os.pipe()
    os.write(theirs, b"g")
    write = os.open(os.devnull, os.O_WRONLY)
    argv = [str(tmp_path / "fake-bench"), "--workload", "DRBL", "--dir", str(tmp_path)]
    argv += ["--cpus", "0", "--mode", "direct", "--seed", "1", "--duration", "0.05"]
    argv += ["--option", f"act={act}", "--sync-fds", f"{read},{write}"]
    fake_bench(tmp_path)
    done = subprocess.run(argv, pass_fds=(read, write), capture_output=True, text=True, check=False)
    for fd in (read, write, theirs):
        os.close(fd)
    return done.stdout


@pytest.mark.parametrize(
    ("act", "code", "status", "says"),
    [
        ("enospc", 1, "error", "pwrite {dir}/file: ENOSPC (No space left on device)"),
        ("nodirect", 77, "skipped", "open {dir}/file: EINVAL (Invalid argument)"),
        ("work", 1, "error", "exit code 1 "),
    ],
)
def test_failures_are_told(tmp_path: Path, act: str, code: int, status: str, says: str) -> None:
    outcome = load(tmp_path).parse(target(tmp_path), code, _printed(tmp_path, act), "")
    assert outcome.status == status
    assert outcome.reason is not None
    assert says.format(dir=tmp_path) in outcome.reason


@pytest.mark.parametrize(
    ("code", "out", "says"),
    [(139, "", "exit code 139"), (-9, "", "signal 9"), (0, '{"schema": 2}', "workload")],
)
def test_no_valid_json_is_an_error(tmp_path: Path, code: int, out: str, says: str) -> None:
    outcome = load(tmp_path).parse(target(tmp_path), code, out, "its last words")
    assert outcome.status == "error"
    assert outcome.reason is not None
    assert says in outcome.reason
    assert "its last words" in outcome.reason


@pytest.mark.parametrize(("code", "blamed"), [(-11, "load"), (-9, "machine"), (1, "machine")])
def test_without_a_crash_it_is_the_place_of_its_output(
    tmp_path: Path, code: int, blamed: str
) -> None:
    """On a full disk it prints neither its result nor its last words."""
    assert load(tmp_path).parse(target(tmp_path), code, "", "").fault == blamed


def test_missing_and_broken_binaries(tmp_path: Path) -> None:
    with pytest.raises(FscaleError, match="does not exist"):
        microbench.find(tmp_path / "none")
    with pytest.raises(FscaleError, match="does not work"):
        microbench.find(Path("/bin/true"))


def test_seeds_are_the_same_for_every_file_system_and_differ_by_repetition(tmp_path: Path) -> None:
    key = target(tmp_path).key
    same = key.model_copy(update={"filesystem": "xfs", "cores": 1, "side": "B"})
    assert seed_of(key, 1) == seed_of(same, 1)
    assert seed_of(key, 1) != seed_of(key, 2)
    assert seed_of(key, 1) != seed_of(key.model_copy(update={"repetition": 2}), 1)


def test_latencies_become_a_histogram(tmp_path: Path) -> None:
    values = np.arange(1, 10001, dtype="<u8") * 1000
    pairs = np.stack([values, np.ones_like(values)], axis=1)
    pairs[:5000].tofile(tmp_path / "worker-0.hist")
    pairs[5000:].tofile(tmp_path / "worker-1.hist")
    files = [tmp_path / f"worker-{n}.hist" for n in (0, 1)]
    made = summarise(counts(files), dropped=3)
    assert made["count"] == 10000
    assert made["dropped"] == 3
    assert made["covered"] == pytest.approx(10000 / 10003)
    for percentile, expected in (("50", 5e6), ("99", 9.9e6), ("100", 1e7)):
        assert made["quantiles"][percentile] == pytest.approx(expected, rel=2e-3)
    again = HdrHistogram.decode(made["histogram"])
    assert again.get_total_count() == 10000
    assert again.get_value_at_percentile(50) == made["quantiles"]["50"]


@pytest.mark.parametrize(("count", "dropped"), [(0, 0), (0, 3_200_000), (900, 100)])
def test_latencies_of_a_part_of_the_operations_tell_nothing(
    count: int, dropped: int, tmp_path: Path
) -> None:
    file = tmp_path / "worker-0.hist"
    np.array([[5000, count]] if count else [], dtype="<u8").tofile(file)
    made = summarise(counts([file]), dropped)
    assert set(made["quantiles"].values()) == {None}
    assert made["mean"] is None
    assert made["covered"] == (count / (count + dropped) if count + dropped else None)
    # Such cells of older results have quantiles.
    old = {**made, "quantiles": {"50": 0, "99": 5000}}
    assert quantile(old, "p50") is None
    assert why_none(old, "p50")


def _snapshot(
    when: float, others: float, kernel: float = 0.0, sees_all: bool = True
) -> accounting.Snapshot:
    return accounting.Snapshot(when, {}, {2: kernel}, others, sees_all)


def _times(steal: float = 0.0) -> CpuTimes:
    return CpuTimes(user=1, system=0, idle=0, iowait=0, irq=0, softirq=0, steal=steal)


@pytest.mark.parametrize(
    ("others", "kernel", "processes", "steal", "marked"),
    [
        (0.0, 0.0, 0.0, 0.0, None),
        (0.9, 0.0, 0.01, 0.0, None),  # kernel threads that work for the cell and have ended
        (0.19, 0.18, 0.15, 0.0, None),  # kernel threads, and children of the cell that init reaped
        (0.01, 0.0, 0.9, 0.0, None),  # processes on CPUs that the cell does not feel
        (0.5, 0.0, 0.4, 0.0, "other processes took 0.40 CPUs"),
        (0.5, 0.2, 0.4, 0.0, "other processes took 0.30 CPUs"),
        (0.03, 0.0, 0.03, 0.0, "other processes took 0.03 CPUs"),
        (None, 0.2, 0.4, 0.0, "other processes took 0.40 CPUs"),
        (0.0, 0.0, 0.0, 0.3, "the hypervisor took 0.30 CPUs (steal)"),
    ],
)
def test_who_disturbs(
    others: float | None, kernel: float, processes: float, steal: float, marked: str | None
) -> None:
    before, after = _snapshot(10, 100, 5), _snapshot(11, 100 + processes, 5 + kernel)
    found = accounting.estimate_others(others, _times(steal), 1.0, before, after)
    assert found.disturb(accounting.disturbance_limit(1, 1.0)) == marked


@pytest.mark.parametrize(
    ("others", "processes", "seen", "taken"),
    [
        (0.9, 0.0, (False, False), "0.90"),  # a busy neighbour outside of the PID namespace
        (0.9, 0.0, (True, False), "0.90"),
        (0.01, 0.9, (False, False), None),  # those who are seen run on other CPUs
        (None, 0.4, (False, False), "0.40"),  # at least those who are seen
    ],
)
def test_who_disturbs_where_not_all_processes_are_seen(
    others: float | None, processes: float, seen: tuple[bool, bool], taken: str | None
) -> None:
    before, after = _snapshot(10, 0, sees_all=seen[0]), _snapshot(11, processes, sees_all=seen[1])
    found = accounting.estimate_others(others, _times(), 1.0, before, after)
    marked = found.disturb(accounting.disturbance_limit(1, 1.0))
    assert marked is None if taken is None else f"took {taken} CPUs" in (marked or "")


def test_kernel_threads_elsewhere_hide_no_neighbour() -> None:
    """A neighbour takes 0.3 of CPU 0; thread 2 works on CPU 1, thread 3 on CPU 0 for the cell."""

    def at(when: float, used: float, on: dict[int, int]) -> accounting.Snapshot:
        return accounting.Snapshot(
            when, {}, {2: 0.3 * used, 3: 0.1 * used}, 0.3 * used, ran_on={**on, 3: 0}
        )

    for places, taken in (({2: 1}, 0.3), ({2: 0}, 0.0)):
        before, after = at(10, 0, places), at(11, 1, places)
        found = accounting.estimate_others(0.4, _times(), 1.0, before, after, [0])
        assert found.taken == pytest.approx(taken)
    # One that came to the cell's CPU is taken for the cell's.
    moved = accounting.estimate_others(
        0.4, _times(), 1.0, at(10, 0, {2: 1}), at(11, 1, {2: 0}), [0]
    )
    assert moved.taken == pytest.approx(0)


@pytest.mark.parametrize(
    ("cores", "seconds", "cpus"), [(1, 10, 0.02), (16, 10, 0.32), (1, 0.1, 0.2)]
)
def test_the_bound_is_a_share_of_the_cell(cores: int, seconds: float, cpus: float) -> None:
    assert accounting.disturbance_limit(cores, seconds) == pytest.approx(cpus)


def test_the_other_thread_of_a_core_is_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounting, "CPUS", tmp_path)
    for cpu in range(8):
        directory = tmp_path / f"cpu{cpu}" / "topology"
        directory.mkdir(parents=True)
        (directory / "thread_siblings_list").write_text(f"{cpu % 4},{cpu % 4 + 4}\n")
    assert accounting.affected_cpus([0, 1]) == [0, 1, 4, 5]
    assert accounting.affected_cpus([0, 4]) == [0, 4]
    (tmp_path / "cpu6" / "topology" / "thread_siblings_list").unlink()
    assert accounting.affected_cpus([6]) == [6]

    def at(when: float, idle: float) -> accounting.Snapshot:
        times = {
            cpu: CpuTimes(
                user=0, system=0, idle=idle if cpu == 4 else 0, iowait=0, irq=0, softirq=0, steal=0
            )
            for cpu in (0, 4)
        }
        return accounting.Snapshot(when, times, {}, 0.0)

    # CPU 0 worked all the time, its sibling a tenth of it.
    assert accounting.busy_seconds(at(10, 5), at(12, 6.8), [0, 4]) == pytest.approx(2.2)
    assert accounting.busy_seconds(at(10, 5), at(12, 6.8), [0]) == pytest.approx(2.0)


def _namespaces(proc: Path, own: dict[str, int], init: dict[str, int] | None = None) -> Path:
    for pid, kinds in (("self", own), ("1", init or {})):
        directory = proc / pid / "ns"
        directory.mkdir(parents=True)
        for kind, number in kinds.items():
            (directory / kind).symlink_to(f"{kind}:[{number}]")
    (proc / "1" / "stat").write_text("1 (init) S 0")
    return proc


def test_which_namespaces_are_the_initial_ones(tmp_path: Path) -> None:
    fixed = {"cgroup": 4026531835, "ipc": 4026531839, "pid": 4026531836, "user": 4026531837}
    host = _namespaces(
        tmp_path / "host", {**fixed, "mnt": 4026531841, "net": 7}, {"mnt": 4026531841, "net": 8}
    )
    assert namespaces.read(host) == {
        "cgroup": True, "ipc": True, "mnt": True, "net": False, "pid": True, "user": True,
        "uts": None,
    }  # fmt: skip
    assert namespaces.all_processes_visible(host)
    (host / "1" / "stat").unlink()  # hidepid
    assert not namespaces.all_processes_visible(host)
    inside = _namespaces(tmp_path / "in", {**fixed, "pid": 4026532190, "mnt": 5}, {"mnt": 5})
    assert namespaces.initial("pid", inside) is False
    assert namespaces.initial("mnt", inside) is None  # its process 1 is the container's
    assert not namespaces.all_processes_visible(inside)


HIDDEN = (
    "mount --make-private /proc; mount -t proc -o hidepid=2,gid=65533 proc /proc;"
    'exec setpriv --bounding-set=-all "$@"'
)


@pytest.mark.root
@pytest.mark.parametrize(
    ("inside", "initial", "visible"),
    [
        ((), True, True),
        (unshare("--pid", "--fork", "--mount-proc"), False, False),
        ((*unshare(), "sh", "-ec", HIDDEN, "-"), True, False),
    ],
)
def test_a_pid_namespace_and_hidepid_are_noticed(
    inside: tuple[str, ...], initial: bool, visible: bool
) -> None:
    look = "from fscale.system.namespaces import *; print(initial('pid'), all_processes_visible())"
    argv = [*inside, sys.executable, "-c", look]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [str(initial), str(visible)], done.stderr


def _process(
    proc: Path,
    pid: int,
    parent: int,
    ticks: tuple[int, int],
    flags: int = 0,
    threads: dict[int, float] | None = None,
) -> None:
    """A /proc/<pid> with CPU time of its own and of its reaped children, and an odd name.

    `threads`: the seconds of its threads as the scheduler knows them.
    """
    directory = proc / str(pid)
    directory.mkdir(exist_ok=True)
    own, reaped = ticks
    alive = threads or {}
    fields = f"S {parent} 1 1 0 -1 {flags} 0 0 0 0 {own} 0 {reaped} 0 20 0 {len(alive) or 1} 0 99"
    fields += " 0" * 16 + " 3"
    (directory / "stat").write_text(f"{pid} (a) b) {fields}\n")
    for tid, seconds in alive.items():
        place = directory if len(alive) == 1 else directory / "task" / str(tid)
        place.mkdir(parents=True, exist_ok=True)
        (place / "schedstat").write_text(f"{round(seconds * 1e9)} 5 6\n")


def test_times_below_a_tick_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PROC", tmp_path)
    tick = 1 / os.sysconf("SC_CLK_TCK")
    for n in range(100):  # a desktop at rest
        _process(tmp_path, 1000 + n, 1, (100, 0), threads={1: 100.3 * tick})
    many = {1: 40 * tick, 2: 60.2 * tick}
    _process(tmp_path, 2000, 1, (100, 0), threads=many)
    before = accounting.snapshot(None)
    for n in range(100):
        _process(tmp_path, 1000 + n, 1, (100, 0), threads={1: 100.35 * tick})
    _process(tmp_path, 2000, 1, (103, 0), threads={**many, 1: 43 * tick})
    after = accounting.snapshot(None)
    assert after.other_processes - before.other_processes == pytest.approx(8 * tick)
    # A thread has ended: only the ticks have its time.
    _process(tmp_path, 2000, 1, (103, 0), threads={2: 60.2 * tick})
    ended = accounting.snapshot(None)
    assert ended.other_processes - after.other_processes == pytest.approx(-0.2 * tick)
    assert set(ended.ran_on.values()) == set()


def test_whose_cpu_time_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PROC", tmp_path)
    us, thread = os.getpid(), 0x00200000
    cgroup = tmp_path / "cgroup"
    cgroup.mkdir()
    (cgroup / "cgroup.procs").write_text("777777\n")
    _process(tmp_path, 1, 0, (100, 0))
    _process(tmp_path, us, 1, (100, 0))
    _process(tmp_path, 555555, 1, (0, 0))  # a make of others
    _process(tmp_path, 555556, 555555, (100, 0))  # its compiler
    _process(tmp_path, 666666, us, (0, 0))  # a profiler of ours
    _process(tmp_path, 777777, 1, (0, 0))  # a worker that was given away to init
    _process(tmp_path, 888888, 2, (0, 0), thread)
    before = accounting.snapshot(cgroup)
    _process(tmp_path, us, 1, (200, 300))
    _process(tmp_path, 666666, us, (400, 0))
    _process(tmp_path, 777777, 1, (500, 0))
    _process(tmp_path, 888888, 2, (600, 0), thread)
    (tmp_path / "555556" / "stat").unlink()  # the compiler has ended after 30 ticks more
    (tmp_path / "555556").rmdir()
    _process(tmp_path, 555555, 1, (5, 130))
    after = accounting.snapshot(cgroup)
    tick = os.sysconf("SC_CLK_TCK")
    assert after.other_processes - before.other_processes == pytest.approx(35 / tick)
    assert accounting.kernel_seconds(before, after) == pytest.approx(600 / tick)
    assert accounting.kernel_seconds(before, after, [3]) == pytest.approx(600 / tick)
    assert accounting.kernel_seconds(before, after, [0]) == 0
