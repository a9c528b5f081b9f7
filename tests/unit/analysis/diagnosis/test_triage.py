# SPDX-License-Identifier: GPL-2.0-only
"""The triage of one point: which profiles count, and what their figures add up to."""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fscale.analysis.diagnosis import lockprofile
from fscale.analysis.diagnosis.cpuprofile import CpuProfile, Spot
from fscale.analysis.diagnosis.lockprofile import Contended, LockProfile
from fscale.analysis.diagnosis.naming import By, Name, main_evidence
from fscale.analysis.diagnosis.offcpu import OffCpuProfile, Wait
from fscale.analysis.diagnosis.perfscript import StackSamples
from fscale.analysis.diagnosis.triage import (
    COUNTER,
    LOCK,
    WAIT,
    Suspect,
    Triage,
    _suspects,
    triage,
)
from fscale.analysis.diagnosis.verdict import Confidence, confidence_of, judge_point
from fscale.model.bench import CpuTimes
from fscale.model.results import Cell, CellKey
from tests.support import synthetic
from tests.support.synthetic import cell

INODE = Name("i_rwsem", "Directory", By.ADDRESS_AND_STACK)
MUTEX = Name("rename_mutex", "File system", By.STACK)
STACK, OTHER = ("path_openat", "do_filp_open"), ("do_renameat2",)


def key(repetition: int = 1, profile: str | None = "locks") -> CellKey:
    return synthetic.key(repetition, workload="MWCM", cores=2, profile=profile)


def maps(**values: Any) -> str:
    lines = [{"type": "stats", "data": {f"@{name}": value}} for name, value in values.items()]
    return "\n".join(map(json.dumps, lines))


def profiled(run: Path, repetition: int, profile: str, content: object, **changes: Any) -> Cell:
    """A cell with a profile of that content in `run`."""
    where = f"profiles/{profile}-{repetition}.json.gz"
    (run / "profiles").mkdir(exist_ok=True)
    (run / where).write_bytes(gzip.compress(json.dumps(content).encode()))
    return cell(key(repetition, profile), 100.0, profiles={profile: where}, **changes)


def locks(active: int, waited: int) -> dict[str, str]:
    wait = {"32,-131384255310000,__mutex_lock\nsomebody\n": {"count": 1, "total": waited}}
    return {"output": maps(wait=wait, active=active)}


def off_cpu(active: int, preempted: int) -> dict[str, str]:
    blocked = {"0,__schedule\nschedule\nsomebody\n": {"count": 1, "total": preempted}}
    return {"output": maps(blocked=blocked, active=active)}


def test_only_good_profiling_cells_count(tmp_path: Path) -> None:
    good = profiled(tmp_path, 2, "locks", locks(1000, 100))
    failed = profiled(tmp_path, 1, "locks", locks(9000, 100), status="error", disturbed="load")
    scored = cell(key(1, None), 100.0, disturbed="load", profiles=good.profiles)
    found = triage(tmp_path, [failed, scored, good])
    assert found.key == good.key
    assert found.profiles == {"locks": 1}
    assert [s.share for s in found.suspects] == [0.1]
    assert not found.disturbed


def test_without_a_good_profile_there_is_the_point_alone(tmp_path: Path) -> None:
    failed = profiled(tmp_path, 1, "locks", locks(1000, 100), status="error")
    assert triage(tmp_path, [failed]) == Triage(failed.key, [], {}, {})


def test_of_several_repetitions_the_longest_speaks(tmp_path: Path) -> None:
    cells = [
        profiled(tmp_path, n, "locks", locks(active, waited))
        for n, (active, waited) in enumerate([(1000, 100), (4000, 800), (2000, 1000)], 1)
    ]
    sample = "bench 7 1.5: {} cpu-clock:\n\tffffffff81001000 do_something\n\n"
    for n, periods in enumerate([5, 7, 6], 4):
        script = {"output": sample.format(periods), "comm": "bench"}
        cells.append(profiled(tmp_path, n, "cpu", script))
    found = triage(tmp_path, cells)
    assert found.profiles == {"locks": 3, "cpu": 3}
    assert [s.share for s in found.suspects] == [0.2]
    assert found.cpu is not None
    assert found.cpu.samples.total == 7


@pytest.mark.parametrize(
    ("profile", "content"),
    [
        ("locks", locks(0, 0)),
        ("offcpu", off_cpu(0, 0)),
        ("cpu", {"output": "other 7 1.5: 5 cpu-clock:\n\tffffffff81001000 do_something\n\n"}),
    ],
)
def test_a_profile_without_the_load_does_not_show_that_it_waits_for_nothing(
    tmp_path: Path, profile: str, content: dict[str, str]
) -> None:
    found = triage(tmp_path, [profiled(tmp_path, 1, profile, content)])
    assert list(found.unreadable.values()) == ["it does not contain a single sample of the load"]
    assert not found.sees_shares
    assert "no contention" not in judge_point(found, None).sentence


@pytest.mark.parametrize("symbol", ["do_something", "[unknown]"])
def test_a_profile_without_symbols_does_not_show_that_nothing_spins(
    tmp_path: Path, symbol: str
) -> None:
    script = f"fscale-run 7 1.5: 5 cpu-clock:\n\tffffffff81001000 {symbol}\n\n"
    found = triage(tmp_path, [profiled(tmp_path, 1, "cpu", {"output": script})])
    named = symbol != "[unknown]"
    assert found.sees_spinning == named
    assert ("no contention" in judge_point(found, None).sentence) == named
    with_locks = profiled(tmp_path, 2, "locks", locks(1000, 0))
    found = triage(tmp_path, [with_locks, profiled(tmp_path, 1, "cpu", {"output": script})])
    assert ("has no symbols" in judge_point(found, None).sentence) != named
    assert ("kptr_restrict" in " ".join(found.notes)) != named


def test_everything_that_profilers_recorded_is_there(tmp_path: Path) -> None:
    statistics = "x-W: 46 84 0.26 939.10 16371.53 194.90 47291 2922365 0.16 2.69 1746.32 5975.99\n"
    cells = [
        profiled(tmp_path, 1, "locks", locks(1000, 100)),
        profiled(tmp_path, 1, "offcpu", off_cpu(1000, 250)),
        profiled(tmp_path, 1, "hardware", {"output": "7,,cycles,,\n"}),
        profiled(tmp_path, 1, "lockstat", {"output": statistics}),
        profiled(tmp_path, 1, "perf-lock", {"output": "contended"}),
        profiled(tmp_path, 1, "c2c", {}),
        cell(key(1, "counts"), 100.0, counts={"alloc": 3.0, "free": 1.0}),
        cell(key(2, "counts"), 100.0, counts={"alloc": 5.0}, disturbed="load"),
    ]
    found = triage(tmp_path, cells)
    assert set(found.profiles) == {"locks", "offcpu", "hardware", "lockstat", "perf-lock", "c2c"}
    assert found.hardware == {"cycles": 7}
    assert [c.name for c in found.lock_classes] == ["x-W"]
    assert found.texts == {"perf-lock": "contended", "c2c": ""}
    assert found.counts == {"alloc": 4.0, "free": 0.5}
    assert found.preempted == 0.25
    assert found.offcpu is not None
    assert found.disturbed
    assert (found.cpu, found.incomplete, found.application) == (None, False, False)


def test_all_three_profiles_have_suspects(tmp_path: Path) -> None:
    blocked = {"2,__schedule\nschedule\nwait_for_disk\n": {"count": 1, "total": 300}}
    stack = "".join(f"\tffffffff81001000 {f}\n" for f in ("rwsem_spin_on_owner", "path_openat"))
    cells = [
        profiled(tmp_path, 1, "locks", locks(1000, 200)),
        profiled(tmp_path, 1, "offcpu", {"output": maps(blocked=blocked, active=1000)}),
        profiled(
            tmp_path, 1, "cpu", {"output": f"x 7 1.5: 9 cycles:\n{stack}\n", "comm": "x"},
            own_cpu_seconds=2.0,
        ),
    ]  # fmt: skip
    found = triage(tmp_path, cells).suspects
    assert [(s.sort, s.name.object, s.share) for s in found] == [
        (LOCK, "inode->i_rwsem of the shared directory", 1.0),
        (WAIT, "wait_for_disk", 0.3),
        (LOCK, "somebody (0xffff8881b8221750)", 0.2),
    ]


def asleep(run: Path, event: str, active: int = 2_000_000_000, **changes: Any) -> Triage:
    """Two workers that sleep for 90% of 1 s, and of the rest spin for 30%."""
    spin = ("rwsem_spin_on_owner", "down_write", "path_openat")
    lines = [f"x {tid} 1.0: PERF_RECORD_COMM: x:{tid}/{tid}" for tid in (7, 8)]
    for frames, periods in ((spin, 60_000_000), (("memcpy",), 140_000_000)):
        lines += [f"x 7 1.5: {periods} {event}:", *(f"\tffffffff81001000 {f}" for f in frames), ""]
    lines += [f"x {tid} 2.0: PERF_RECORD_COMM: y:{tid}/{tid}" for tid in (7, 8)]
    blocked = {"2,__schedule\nschedule\nwait_for_disk\n": {"count": 1, "total": active * 9 // 10}}
    cells = [
        profiled(
            run, 1, "cpu", {"output": "\n".join(lines), "comm": "x", "event": event}, **changes
        ),
        profiled(run, 1, "offcpu", {"output": maps(blocked=blocked, active=active)}),
    ]
    return triage(run, cells)


def times(idle: float, steal: float = 0.0) -> CpuTimes:
    return CpuTimes(
        user=2 - idle - steal, system=0, idle=idle, iowait=0, irq=0, softirq=0, steal=steal
    )


@pytest.mark.parametrize(
    ("event", "changes"),
    [
        ("cpu-clock", {"own_cpu_seconds": None, "cpu": None}),
        ("cycles", {"own_cpu_seconds": 0.2, "seconds": 1.0}),
        ("cpu_core/cycles/P", {"own_cpu_seconds": 0.2, "seconds": 1.0}),
        ("cycles:u", {"own_cpu_seconds": None, "cpu": times(idle=1.8)}),
        ("cycles", {"own_cpu_seconds": None, "cpu": times(idle=1.0, steal=0.8)}),
    ],
)
def test_spinning_of_workers_that_sleep_is_a_share_of_all_their_time(
    tmp_path: Path, event: str, changes: dict[str, Any]
) -> None:
    found = asleep(tmp_path, event, **changes)
    shares = {s.name.object: s.share for s in found.suspects}
    assert shares == pytest.approx(
        {"inode->i_rwsem of the shared directory": 0.03, "wait_for_disk": 0.9}
    )
    assert found.cpu is not None
    assert found.cpu.share(found.cpu.leaves["memcpy"]) == pytest.approx(0.07)
    assert (found.notes == []) is (event == "cpu-clock")


def test_where_idle_time_is_not_recorded_shares_of_cycles_are_of_busy_time(tmp_path: Path) -> None:
    found = asleep(tmp_path, "cycles", own_cpu_seconds=None, cpu=None)
    assert found.cpu is not None
    assert (found.cpu.busy, found.cpu.cpu_share) == (None, 1.0)
    assert "upper bound" in found.notes[0]


def test_a_pmu_that_did_not_count_is_said(tmp_path: Path) -> None:
    rows = "7,,cpu_core/cycles/,,\n<not counted>,,cpu_atom/cycles/,0,\n"
    pmus = {"cpu_core": "0-1", "cpu_atom": "2-3"}
    for cpus, notes in (([0, 1], 0), ([0, 2], 1)):
        content = {"output": rows, "pmus": pmus, "cpus": cpus}
        found = triage(tmp_path, [profiled(tmp_path, 1, "hardware", content)])
        assert found.hardware == {"cycles": 7}
        assert len(found.notes) == notes


def test_a_lock_profile_without_addresses_says_so(tmp_path: Path) -> None:
    memory = {"direct_map": 1, "page_array": 1, "page_bits": 16, "page_size": 64}
    for where, notes in ((None, 1), (memory, 0)):
        content = locks(1000, 100) | {"memory": where}
        assert len(triage(tmp_path, [profiled(tmp_path, 1, "locks", content)]).notes) == notes


def test_what_cannot_be_read_is_said_and_the_rest_is_used(tmp_path: Path) -> None:
    damaged = profiled(tmp_path, 1, "cpu", [])
    good = profiled(tmp_path, 1, "locks", locks(1000, 100))
    found = triage(tmp_path, [damaged, good])
    assert found.unreadable == {"profiles/cpu-1.json.gz": "it is not a profile (a JSON object)"}
    assert found.profiles == {"locks": 1}


def test_a_full_table_and_an_application_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = profiled(tmp_path, 1, "locks", locks(1000, 100))
    assert not triage(tmp_path, [profile]).incomplete
    monkeypatch.setattr(lockprofile, "MAP_KEYS", 1)
    assert triage(tmp_path, [profile]).incomplete
    application = profiled(tmp_path, 1, "offcpu", off_cpu(0, 10) | {"named": False})
    assert triage(tmp_path, [application]).preempted == 0
    assert triage(tmp_path, [application, profile]).application
    assert not triage(tmp_path, [profile]).application


@pytest.mark.parametrize(
    ("profiles", "waiting", "spinning", "shares"),
    [
        ({"locks"}, True, False, True),
        ({"offcpu"}, True, False, True),
        ({"cpu"}, False, True, True),
        ({"lockstat", "c2c"}, False, False, False),
    ],
)
def test_what_a_profile_can_show(
    profiles: set[str], waiting: bool, spinning: bool, shares: bool
) -> None:
    found = Triage(key(), [], dict.fromkeys(profiles, 1), {})
    assert (found.sees_waiting, found.sees_spinning, found.sees_shares) == (
        waiting, spinning, shares,
    )  # fmt: skip


def lock_profile(*found: Contended, active: int = 1000) -> LockProfile:
    return LockProfile(active, list(found), Counter(), False)


def cpu_profile(spinning: list[Spot], atomics: list[Spot] | None = None) -> CpuProfile:
    """Of 2000 ns, in which the workers were idle for the half."""
    samples = StackSamples(workers=Counter({STACK: 1000}), active_ns=2000)
    spots, words = ({s.name.object: s for s in own} for own in (spinning, atomics or []))
    return CpuProfile("cpu-clock", samples, spots, words, Counter())


def off_profile(*waits: Wait, active: int = 1000) -> OffCpuProfile:
    return OffCpuProfile(active, list(waits), 0, Counter())


def test_a_lock_with_all_its_figures() -> None:
    lock = Contended(
        INODE, {"rwsem write", "rwsem read"}, {1, 2}, wait_ns=400, count=8, max_ns=3000,
        histogram=Counter({64: 6, 32: 2}), callers=Counter({STACK: 300, OTHER: 100}), one_in=2,
        variance=1600,
    )  # fmt: skip
    (found,) = _suspects(lock_profile(lock), None, None)
    assert found == Suspect(
        INODE, LOCK, "rwsem read, rwsem write", blocked=0.4, count=8, mean_us=0.05, max_us=3.0,
        addresses=2, histogram={32: 2, 64: 6}, callers=[(STACK, 0.75), (OTHER, 0.25)], one_in=2,
        error=0.1,
    )  # fmt: skip
    assert list(found.histogram) == [32, 64]
    assert found.sampling is not None
    assert found.sampling.startswith("i_rwsem ")
    assert "one wait in 2 " in found.sampling
    assert found.sampling.endswith("error of 10.0%")
    assert Suspect(INODE, LOCK, "mutex").sampling is None


def test_a_wait_with_all_its_figures() -> None:
    wait = Wait(INODE, False, wait_ns=500, count=2, callers=Counter({STACK: 500}))
    (found,) = _suspects(None, None, off_profile(wait))
    assert found == Suspect(
        INODE, WAIT, "blocked", blocked=0.5, count=2, mean_us=0.25, callers=[(STACK, 1.0)]
    )
    (never,) = _suspects(None, None, off_profile(Wait(INODE, False)))
    assert (never.mean_us, never.callers) == (None, [])


def test_unnamed_locks_are_told_apart_by_their_address() -> None:
    nobody = Name("somebody", None, By.NOTHING)
    locked = [Contended(nobody, {"mutex"}, {n, 99}, wait_ns=n) for n in (16, 32)]
    found = _suspects(lock_profile(*locked), None, None)
    assert [s.name for s in found] == [
        Name("somebody (0x20)", None, By.NOTHING),
        Name("somebody (0x10)", None, By.NOTHING),
    ]


def test_a_stack_that_names_on_other_kernels_is_a_hint(tmp_path: Path) -> None:
    wait = {"4,-131384255310000,down_write\npath_openat\n": {"count": 1, "total": 100}}
    for kernel, by, hint in (("6.18.1", By.STACK, False), ("7.0.0", By.NOTHING, True)):
        content = {"output": maps(wait=wait, active=1000), "kernel": kernel}
        (found,) = triage(tmp_path, [profiled(tmp_path, 1, "locks", content)]).suspects
        assert found.by is by
        assert (found.name.elsewhere is not None) is hint
        assert ("i_rwsem of the shared directory" in found.evidence) is hint
        assert ("i_rwsem" in found.name.object) is not hint


def test_the_five_callers_that_wait_longest_are_kept() -> None:
    callers: Counter[tuple[str, ...]] = Counter({(f"caller {n}",): n for n in range(1, 7)})
    (found,) = _suspects(
        lock_profile(Contended(INODE, {"mutex"}, {1}, wait_ns=21, callers=callers)), None, None
    )
    assert [stack for stack, _ in found.callers] == [(f"caller {n}",) for n in (6, 5, 4, 3, 2)]


def test_sleeping_in_a_lock_is_taken_from_the_lock_profile_where_there_is_one() -> None:
    sleeps = off_profile(Wait(MUTEX, True, wait_ns=300, count=1), Wait(INODE, False, wait_ns=200))
    lock = Contended(MUTEX, {"mutex"}, {1}, wait_ns=310)
    alone, both = _suspects(None, None, sleeps), _suspects(lock_profile(lock), None, sleeps)
    assert [(s.name, s.sort, s.share) for s in alone] == [(MUTEX, LOCK, 0.3), (INODE, WAIT, 0.2)]
    assert [(s.name, s.sort, s.share) for s in both] == [(MUTEX, LOCK, 0.31), (INODE, WAIT, 0.2)]


def test_spinning_counts_where_no_tracepoint_sees_it() -> None:
    """Reader-writer semaphores always, other locks without a lock profile."""
    cpu = cpu_profile(
        [
            Spot(INODE, "rwsem write", 200, Counter({OTHER: 200})),
            Spot(MUTEX, "mutex", 100, Counter({STACK: 50, OTHER: 50})),
        ],
        [Spot(INODE, "shared counter", 400)],
    )
    lock = Contended(INODE, {"rwsem write"}, {1}, wait_ns=300, callers=Counter({STACK: 300}))
    found = _suspects(lock_profile(lock), cpu, None)
    assert [(s.name, s.sort, s.blocked, s.spinning) for s in found] == [
        (INODE, LOCK, 0.3, 0.1),
        (INODE, COUNTER, 0.0, 0.2),
    ]
    assert found[0].callers == [(STACK, 1.0)]
    alone = _suspects(None, cpu, None)
    assert [(s.name, s.sort, s.kind, s.share) for s in alone] == [
        (INODE, COUNTER, "shared counter", 0.2),
        (INODE, LOCK, "rwsem write", 0.1),
        (MUTEX, LOCK, "mutex", 0.05),
    ]
    assert alone[2].callers == [(STACK, 0.5), (OTHER, 0.5)]


@pytest.mark.parametrize(
    ("waited", "by_stack", "spun", "addressed", "by"),
    [
        (400, 0, 0, 1.0, By.ADDRESS_AND_STACK),
        (400, 40, 0, 0.9, By.ADDRESS_AND_STACK),
        (400, 44, 0, 0.89, By.STACK),
        (400, 396, 0, 0.01, By.STACK),
        # Spinning has its own repetition, in which only stacks were seen.
        (360, 0, 40, 0.9, By.ADDRESS_AND_STACK),
        (4, 0, 396, 0.01, By.STACK),
        (400, 40, 80, 0.75, By.STACK),
        (400, 400, 80, 0.0, By.STACK),
    ],
)
def test_a_name_rests_on_what_most_of_its_time_rests_on(
    waited: int, by_stack: int, spun: int, addressed: float, by: By
) -> None:
    evidence = Counter({By.ADDRESS_AND_STACK: waited - by_stack, By.STACK: by_stack})
    name = Name("i_rwsem", "Directory", main_evidence(evidence))
    lock = Contended(name, {"rwsem write"}, {1}, wait_ns=waited, evidence=evidence)
    # Of 2000 ns, as of those of the on-CPU profile.
    cpu = cpu_profile([Spot(MUTEX, "rwsem write", spun, Counter())])
    cpu.spinning["rename_mutex"].name = Name("i_rwsem", "Directory", By.STACK)
    found = _suspects(lock_profile(lock, active=2000), cpu if spun else None, None)
    (suspect,) = found
    assert suspect.share == pytest.approx((waited + spun) / 2000)
    assert suspect.addressed == pytest.approx(addressed)
    assert suspect.by is by
    certain = confidence_of(suspect, [suspect], suspect.share) is Confidence.CERTAIN
    assert certain is (by is By.ADDRESS_AND_STACK)


def test_the_largest_share_is_first_and_names_decide_between_equals() -> None:
    waited = {"b": 10, "c": 20, "a": 10}
    locked = [
        Contended(Name(name, None, By.STACK), {"mutex"}, {1}, wait_ns=waited[name])
        for name in waited
    ]
    assert [s.name.object for s in _suspects(lock_profile(*locked), None, None)] == ["c", "a", "b"]


def test_profiles_without_a_window_say_nothing() -> None:
    lock = Contended(INODE, {"mutex"}, {1}, wait_ns=10)
    wait = Wait(MUTEX, False, wait_ns=10)
    assert _suspects(lock_profile(lock, active=0), None, off_profile(wait, active=0)) == []
    least = _suspects(lock_profile(lock, active=1), None, off_profile(wait, active=1))
    assert [s.share for s in least] == [10, 10]
