# SPDX-License-Identifier: GPL-2.0-only
"""The readers of the three profiles: small outputs, with every figure that follows from them."""

import json
from collections import Counter
from typing import Any

import pytest

from fscale.analysis.diagnosis import cpuprofile, lockprofile, offcpu, perfscript
from fscale.analysis.diagnosis.cpuprofile import CpuProfile, kind_of_spin, kind_of_word
from fscale.analysis.diagnosis.lockprofile import Contended
from fscale.analysis.diagnosis.naming import By, LockPlace, Name
from fscale.analysis.diagnosis.offcpu import kind_of_sleep
from fscale.analysis.diagnosis.perfscript import StackSamples

KERNEL = "ffffffff81001000"


def maps(**values: Any) -> str:
    lines = [{"type": "stats", "data": {f"@{name}": value}} for name, value in values.items()]
    return "\n".join(map(json.dumps, lines))


@pytest.mark.parametrize(
    ("frames", "kind"),
    [
        ("rwsem_spin_on_owner rwsem_down_read_slowpath down_read", "rwsem write"),
        ("rwsem_down_read_slowpath down_read", "rwsem read"),
        ("rwsem_optimistic_spin down_write", "rwsem write"),
        ("osq_lock rwsem_down_write_slowpath", "rwsem write"),
        ("osq_lock mutex_optimistic_spin", "mutex"),
        ("mutex_spin_on_owner", "mutex"),
        ("native_queued_spin_lock_slowpath _raw_spin_lock f", "spinlock"),
        ("queued_read_lock_slowpath _raw_read_lock", "rwlock read"),
        ("native_queued_spin_lock_slowpath queued_write_lock_slowpath", "spinlock"),
        ("queued_write_lock_slowpath", "rwlock write"),
        ("_raw_spin_lock f", None),
        ("osq_lock f rwsem_down_write_slowpath", None),
        ("f queued_write_lock_slowpath", None),
        ("", None),
    ],
)
def test_the_kind_of_lock_that_is_spun_on(frames: str, kind: str | None) -> None:
    assert kind_of_spin(tuple(frames.split())) == kind


@pytest.mark.parametrize(
    ("leaf", "kind"),
    [
        ("mutex_lock", "mutex"), ("down_read_killable", "rwsem read"), ("up_read", "rwsem read"),
        ("down_write", "rwsem write"), ("up_write", "rwsem write"), ("_raw_spin_lock", "spinlock"),
        ("_raw_read_lock", "rwlock read"), ("_raw_write_lock", "rwlock write"), ("f", None),
        ("_raw_spin_unlock_irqrestore", None), ("do_mutex_lock", None),
    ],
)  # fmt: skip
def test_the_kind_of_lock_whose_word_is_changed(leaf: str, kind: str | None) -> None:
    assert kind_of_word(leaf) == kind


@pytest.mark.parametrize(
    ("frames", "kind"),
    [
        ("percpu_rwsem_wait percpu_down_write", "percpu-rwsem"),
        ("rwsem_down_read_slowpath down_read", "rwsem read"),
        ("down_read_killable", "rwsem read"),
        ("rwsem_down_write_slowpath f down_read", "rwsem write"),
        ("down_write", "rwsem write"),
        ("__mutex_lock", "mutex"),
        ("rt_mutex_slowlock", "mutex"),
        ("rt_spin_lock", "rt-mutex"),
        ("__down_common down", "semaphore"),
        ("f down_write", None),
        ("", None),
    ],
)
def test_the_kind_of_lock_that_is_slept_in(frames: str, kind: str | None) -> None:
    assert kind_of_sleep(tuple(frames.split())) == kind


def sample(*frames: str, period: int = 1, comm: str = "bench", user: bool = False) -> str:
    lines = [f"\t{'7f0000001000' if user else KERNEL} {frame}" for frame in frames]
    return "\n".join([f"{comm} 7 1.5: {period} cpu-clock:", *lines, ""])


def cpu(*samples: str, **profile: Any) -> CpuProfile:
    return cpuprofile.read({"output": "\n".join(samples), "comm": "bench"} | profile)


CREATE = ("path_openat", "do_filp_open")


def test_cpu_time_by_what_it_goes_to() -> None:
    spin = ("rwsem_spin_on_owner", "down_write", *CREATE)
    found = cpu(
        sample(*spin, period=40),
        sample(*spin, period=2),
        sample("rwsem_down_write_slowpath", "down_write", "filename_create", period=8),
        sample("dput", "f", period=10),
        sample("down_write", *CREATE, period=5),
        sample("mutex_lock", "somebody", period=3),
        sample("memcpy", period=7),
        sample("dput", "asm_sysvec_x", "dput", period=11),
        sample("asm_sysvec_x", period=12),
        sample("main", period=6, user=True),
        sample(period=1),
        sample("dput", period=100, comm="other"),
        event="cpu-clock",
    )
    directory = "inode->i_rwsem of the shared directory"
    assert {n: (s.kind, s.periods) for n, s in found.spinning.items()} == {
        directory: ("rwsem write", 50)
    }
    assert found.spinning[directory].callers == {
        spin: 42, ("rwsem_down_write_slowpath", "down_write", "filename_create"): 8,
    }  # fmt: skip
    assert {n: (s.kind, s.periods) for n, s in found.atomics.items()} == {
        "dentry->d_lockref": ("shared counter", 10), directory: ("rwsem write word", 5),
    }  # fmt: skip
    lockref = found.atomics["dentry->d_lockref"]
    assert (lockref.name.by, lockref.name.scope) == (By.STACK, "dentry")
    assert lockref.name.rule is not None
    assert lockref.callers == {("dput", "f"): 10}
    assert found.leaves == {
        "rwsem_spin_on_owner": 42, "rwsem_down_write_slowpath": 8, "dput": 21, "down_write": 5,
        "mutex_lock": 3, "memcpy": 7, "asm_sysvec_x": 12, "[user] main": 6, "[user]": 1,
    }  # fmt: skip
    assert (found.event, found.samples.total) == ("cpu-clock", 105)


def test_samples_of_one_stack_or_function_are_added_up() -> None:
    found = cpu(
        sample("main", "one", period=2, user=True),
        sample("main", "other", period=3, user=True),
        sample("main", "one", period=4, user=True),
        sample("f", period=5, comm="another"),
        sample("f", period=6, comm="another"),
    )
    assert found.leaves == {"[user] main": 9}
    assert found.samples.user == {("main", "one"): 6, ("main", "other"): 3}
    assert found.samples.other_stacks == {("another", ("f",)): 11}


def test_the_profile_says_whose_samples_they_are() -> None:
    fork = "x 1 0.000000: PERF_RECORD_FORK(7:7):(3:3)"
    assert cpu(sample("f"), fork, pid=3).samples.total == 1
    assert cpu(sample("f"), fork.replace("(7:7)", "(8:8)"), pid=3).samples.total == 0
    assert cpu(sample("f"), comm="fscale-run").samples.total == 0
    assert cpuprofile.read({"output": sample("f", comm="fscale-run")}).samples.total == 1
    window = "bench 3 1.0: PERF_RECORD_COMM: bench:3/3"
    tree = cpu(window, fork.replace("0.0", "1.2"), sample("f"), named=False, pid=3, cores=2)
    assert (tree.samples.total, tree.samples.active_ns) == (1, 1_000_000_000)
    whole = cpu(window.replace("3", "0"), sample("f", period=2).replace("7", "0"), named=False)
    assert (whole.samples.total, whole.samples.active_ns) == (2, 500_000_000)


@pytest.mark.parametrize(
    ("event", "active", "share", "of_half"),
    [
        ("cpu-clock", 200, 0.5, 0.25), ("cpu-clock", 50, 1.0, 0.5), ("cpu-clock", 0, 1.0, 0.5),
        ("cycles", 200, 1.0, 0.5),
    ],
)  # fmt: skip
def test_idle_time_is_known_from_the_clock_alone(
    event: str, active: int, share: float, of_half: float
) -> None:
    samples = StackSamples(Counter({("a",): 100}), active_ns=active)
    found = CpuProfile(event, samples, {}, {}, Counter())
    assert (found.cpu_share, found.share(50)) == (share, of_half)
    assert CpuProfile(event, StackSamples(), {}, {}, Counter()).share(50) == 0


def test_perf_script_line_by_line() -> None:
    script = "\n".join(
        [
            "bench 7 1.000000: PERF_RECORD_COMM exec: bench:7/7",
            "bench 7 1.5: 10 cpu-clock:ppp:",
            f"\t{KERNEL} rwsem_wake.isra.0+0x1/0x2",
            f"\t{KERNEL} [unknown]",
            "\t0000000000001000 main (/bin/x)",
            "no frame",
            f"\t{KERNEL} after_what_is_none",
            "bench 8 2.5: 20 cycles:",
            "\t0000000000001000 a",
            "\t0000000000002000 [unknown]",
            "   ",
            f"\t{KERNEL} after_a_blank",
            "bench 7 3.0: 5 cycles:",
            "\t17f00000000001000 too_long",
            "bench 7 3.5: PERF_RECORD_EXIT(7:7):(1:1)",
            "other (x) 9 4.5: 40 cycles:",
            f"\t{KERNEL} a",
            "\t0000000000001000 b",
        ]
    )
    found = perfscript.parse(script, "bench")
    assert found.workers == {("rwsem_wake", f"0x{KERNEL}"): 10}
    assert found.user == {("a", "0x0000000000002000"): 20, ("too_long",): 5}
    assert found.others == {"other (x)": 40}
    assert found.other_stacks == {("other (x)", ("a",)): 40}
    assert (found.count, found.total) == (3, 35)
    assert found.active_ns == 2_500_000_000


def events(*lines: str) -> int:
    """Active nanoseconds of workers named `bench` that process 100 has forked."""
    return perfscript.parse("\n".join(lines), "bench", 100).active_ns


def test_a_window_begins_and_ends_with_the_name() -> None:
    def named(time: float, comm: str, tid: int = 7) -> str:
        return f"x {tid} {time:.6f}: PERF_RECORD_COMM: {comm}:{tid}/{tid}"

    assert events(named(1, "bench"), named(3, "idle")) == 2e9
    assert events(named(1, "bench"), named(3, "idle"), named(4, "bench"), named(5, "x")) == 3e9
    assert events(named(1, "bench"), named(3, "bench"), named(4, "idle")) == 3e9
    assert events(named(1, "bench"), named(2, "x", 8), named(3, "idle")) == 2e9
    # What had the name before the recording is not known to be in its window.
    assert events(named(0, "bench"), named(3, "idle")) == 0
    assert events(named(3, "bench"), named(1, "idle")) == 0
    # A script that is cut ends with its last line.
    assert events(named(1, "bench"), "bench 7 2.5: 1 cycles:") == 1.5e9
    assert events(named(1, "bench"), named(2, "x", 8)) == 1e9
    assert events(named(2, "bench"), named(1, "x", 8)) == 0
    # Where forks are told of, only the children of the parent are workers.
    fork = "x 1 0.5: PERF_RECORD_FORK({0}:{0}):(100:100)"
    assert events(fork.format(7), named(1, "bench"), named(3, "idle")) == 2e9
    assert events(fork.format(8), named(1, "bench"), named(3, "idle")) == 0


def tree(*lines: str) -> StackSamples:
    return perfscript.parse_tree("\n".join(lines), "bench", 100, 2)


def fork(tid: int, parent: int, time: float) -> str:
    return f"x 1 {time:.6f}: PERF_RECORD_FORK({tid}:{tid}):({parent}:{parent})"


def of(tid: int, time: float) -> str:
    return f"any {tid} {time:.6f}: 1 cycles:\n\t{KERNEL} f{tid}\n"


BEGIN, END = (
    f"bench 100 {time}: PERF_RECORD_COMM: {comm}:100/100"
    for time, comm in (("1.0", "bench"), ("5.0", "done"))
)


def test_a_family_is_all_that_descend_from_its_root() -> None:
    found = tree(
        fork(102, 101, 0), fork(101, 100, 0), fork(50, 1, 0), BEGIN,
        of(100, 2), of(101, 2), of(102, 2), of(50, 2), of(103, 2),
        fork(103, 102, 2.5), of(103, 3), fork(103, 50, 3.5), of(103, 4), fork(104, 104, 4),
        of(104, 4), END, of(101, 6),
    )  # fmt: skip
    assert found.workers == {("f100",): 1, ("f101",): 1, ("f102",): 1, ("f103",): 1}
    assert found.active_ns == 2 * 4e9


def test_a_family_works_while_its_root_bears_the_name() -> None:
    assert tree(of(100, 0.5), BEGIN, of(100, 2)).active_ns == 2 * 1e9
    assert tree(of(100, 0.5), BEGIN, of(100, 2)).workers == {("f100",): 1}
    assert (
        tree(BEGIN, "bench 100 3.0: PERF_RECORD_EXIT(100:100):(1:1)", of(100, 4)).active_ns == 4e9
    )
    assert tree(BEGIN, END, END.replace("5.0", "9.0")).active_ns == 2 * 4e9
    again = BEGIN.replace("1.0", "7.0"), END.replace("5.0", "8.0")
    assert tree(BEGIN, END, *again).active_ns == 2 * 5e9
    other = BEGIN.replace("100", "101")
    assert tree(other, of(100, 2)).active_ns == 0
    assert tree(BEGIN, "x 1 9.0: PERF_RECORD_COMM: bench:1/1").active_ns == 0


def off(profile: dict[str, Any] | None = None, active: int = 1000, **blocked: Any) -> Any:
    """Stacks with `_` between the frames and the state in front: `s2_f_g=nanoseconds`."""
    stacks = {}
    for name, total in blocked.items():
        state, *frames = name[1:].split("__")
        lines = "\n".join(f" {frame}+1" for frame in ("__schedule", "schedule", *frames))
        stacks[f"{state},{lines}\n"] = {"count": 2, "total": total}
    return offcpu.read({"output": maps(blocked=stacks, active=active)} | (profile or {}))


COMMIT = "journal commit (jbd2_log_wait_commit)"
IDLE: dict[str, Any] = {
    "s1__ep_poll": 10, "s2__ep_poll": 20, "s0__ep_poll": 30, "s256__ep_poll": 40,
    "s1__jbd2_log_wait_commit": 50, "s2__jbd2_log_wait_commit__x": 60, "s1__down_read__x": 70,
}  # fmt: skip


def test_blocked_time_by_what_was_waited_for() -> None:
    found = off(**IDLE)
    assert [(w.name.object, w.lock, w.wait_ns, w.count) for w in found.waits] == [
        (COMMIT, False, 110, 4), ("x", True, 70, 2), ("ep_poll", False, 30, 4),
    ]  # fmt: skip
    assert found.waits[0].name.scope == "Journal"
    assert found.waits[0].name.by is By.STACK
    assert found.waits[2].name == Name("ep_poll", None, By.NOTHING)
    begin = ("__schedule", "schedule", "jbd2_log_wait_commit")
    assert found.waits[0].callers == {begin: 50, (*begin, "x"): 60}
    assert (found.active_ns, found.preempted_ns, found.idle_ns) == (1000, 70, 0)
    assert found.stacks[begin] == 50
    assert found.stacks["__schedule", "schedule", "ep_poll"] == 100


def test_an_application_may_sleep_because_it_has_nothing_to_do() -> None:
    found = off({"named": False}, **IDLE)
    assert [(w.name.object, w.wait_ns) for w in found.waits] == [
        (COMMIT, 110), ("x", 70), ("ep_poll", 20),
    ]  # fmt: skip
    assert (found.preempted_ns, found.idle_ns) == (70, 10)
    assert found.stacks["__schedule", "schedule", "ep_poll"] == 90


def test_idle_stacks_are_added_up() -> None:
    assert off({"named": False}, s1__ep_poll=10, s1__ep_poll__f=5).idle_ns == 15


def test_damaged_sleeps_are_left_out() -> None:
    good = {"count": 1, "total": 5}
    blocked = {"x,f\n": good, "2,f\n": 7, "-1,f\n": good, " 2 ,g\n": good, "2,\n": good}
    found = offcpu.read({"output": maps(blocked=blocked)})
    assert [(w.name.object, w.wait_ns) for w in found.waits] == [("g", 5), ("?", 5)]
    assert found.active_ns == 0


A = -(1 << 46) - 1
WAIT = {"count": 2, "total": 100}


def locks(sampled: bool = False, **values: Any) -> lockprofile.LockProfile:
    return lockprofile.read({"output": maps(**values)} | ({"samples": {}} if sampled else {}))


def test_contention_by_lock() -> None:
    found = locks(
        wait={
            f"1,{A},_raw_spin_lock\n d_move\n": WAIT,
            f"2,{A - 8},down_read\n path_openat\n": {"count": 1, "total": 30},
            f"4,{A - 16},down_write\n path_openat\n": {"count": 5, "total": 300},
            f"4,{A - 16},down_write\n do_unlinkat\n": {"count": 1, "total": 20},
        },
        max={f"1,{A}": 90, f"4,{A - 16}": 80, f"2,{A - 8}": 70, "1,5": 1000, "x": 7, "4,x": 9},
        histogram={
            f"1,{A}": [{"min": 32, "count": 1}, {"min": 64, "count": 1}],
            f"4,{A - 16}": [{"min": 64, "count": 3}, "damaged", {"min": 8, "count": 0}],
            f"2,{A - 8}": [{"min": 64, "count": 4}], "1,5": [{"min": 1, "count": 1}],
            f"1,{A:#x}": 3,
        },
        others={"kworker,1,2": {"total": 5}, "kworker,3,4": {"total": 6}, "x": 3},
        active=1000,
    )  # fmt: skip
    directory, rename = found.locks
    assert directory.name.object == "inode->i_rwsem of the shared directory"
    assert directory.kinds == {"rwsem read", "rwsem write"}
    assert directory.addresses == {(A - n) % (1 << 64) for n in (8, 16)}
    assert (directory.wait_ns, directory.count, directory.max_ns) == (350, 7, 80)
    assert directory.histogram == {64: 7}
    assert directory.callers == {
        ("down_read", "path_openat"): 30, ("down_write", "path_openat"): 300,
        ("down_write", "do_unlinkat"): 20,
    }  # fmt: skip
    assert directory.places == {LockPlace("unknown")}
    assert (rename.name.object, rename.wait_ns, rename.max_ns) == ("rename_lock", 100, 90)
    assert rename.histogram == {32: 1, 64: 1}
    assert (rename.one_in, rename.variance, rename.error, rename.mean_ns) == (1, 0, 0.0, 50.0)
    assert (found.active_ns, found.others, found.full) == (1000, {"kworker": 11}, False)


def test_what_a_lock_has_as_a_whole_goes_to_the_name_that_waits_longest() -> None:
    found = locks(
        wait={
            f"4,{A},down_write\n path_openat\n": {"count": 9, "total": 10},
            f"4,{A},down_write\n somebody\n": {"count": 1, "total": 100},
        },
        max={f"4,{A}": 60},
    )
    assert [(lock.name.object, lock.max_ns) for lock in found.locks] == [
        ("somebody", 60), ("inode->i_rwsem of the shared directory", 0),
    ]  # fmt: skip


def test_locks_without_a_name_are_not_merged_and_damage_is_left_out() -> None:
    found = locks(
        wait={
            f"1,{A},somebody\n": WAIT, f"1,{A - 8},somebody\n": {"count": 1, "total": 1},
            f"1,{A},another\n": {"count": 1, "total": 7}, "x,1,f\n": WAIT, "1,x,f\n": WAIT,
            "1": WAIT, f"1,{A},f\n": 3,
        }
    )  # fmt: skip
    assert [(lock.name.object, lock.wait_ns) for lock in found.locks] == [
        ("somebody", 100), ("another", 7), ("somebody", 1),
    ]  # fmt: skip


def test_the_tables_size_decides_whether_it_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = {f"1,{A - n},f\n": WAIT for n in range(3)}
    for most, full in ((4, False), (3, True), (2, True)):
        monkeypatch.setattr(lockprofile, "MAP_KEYS", most)
        assert locks(wait=waits).full is full


def test_a_sampled_wait_counts_for_all_that_were_passed_over() -> None:
    found = locks(
        sampled=True,
        wait={f"0,1,{A},d_move\n": WAIT, f"2,1,{A},d_move\n": {"count": 1, "total": 10}},
        histogram={f"2,1,{A}": [{"min": 8, "count": 3}], f"62,1,{A - 1}": [{"min": 8, "count": 1}]},
        others={"1,kworker,1": {"total": 5}},
    )
    (lock,) = found.locks
    assert (lock.wait_ns, lock.count, lock.one_in) == (140, 6, 4)
    assert lock.callers == {("d_move",): 140}
    assert lock.histogram == {8: 12}
    assert lock.variance == 4 * 3 * 3 * 64 * 7 // 3
    assert lock.error == 73 / 140  # of 5376 the root is 73.3
    assert found.others == {"kworker": 10}


@pytest.mark.parametrize(
    ("exponent", "count"),
    [
        *(("61", 2 << 61), ("62", 2 << 62)),
        *((damaged, 0) for damaged in ("63", "100", "", "x", "-1", "9" * 400, "²")),
    ],
)
def test_exponents_have_a_bound(exponent: str, count: int) -> None:
    found = locks(sampled=True, wait={f"{exponent},1,{A},f\n": WAIT})
    assert sum(lock.count for lock in found.locks) == count


def test_a_lock_that_nobody_waited_for_has_no_mean_and_no_error() -> None:
    never = Contended(Name("x", None, By.NOTHING), variance=9)
    assert (never.mean_ns, never.error) == (0.0, 0.0)
    assert Contended(never.name, wait_ns=10, variance=-9).error == 0.0
