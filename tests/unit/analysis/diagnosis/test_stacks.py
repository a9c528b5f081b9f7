# SPDX-License-Identifier: GPL-2.0-only
"""Stacks, perf script and bpftrace output: what is read from them, and that nothing breaks it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fscale.analysis.diagnosis import cpuprofile, lockprofile, offcpu, perfscript, stacks
from fscale.model.maps import parse

WRITE = "rwsem_down_write_slowpath+781\n down_write+102\n path_openat+1471\n do_filp_open+195\n"

SCRIPT = """\
init     1     0.000000: PERF_RECORD_COMM: init:1/1
bench  100     0.000000: PERF_RECORD_FORK(100:100):(1:1)
bench  101     0.000000: PERF_RECORD_FORK(101:101):(100:100)
fscale-run   101    10.000000: PERF_RECORD_COMM: fscale-run:101/101
fscale-run   101    10.001000:    1000000 cpu-clock:
\tffffffff81001000 rwsem_spin_on_owner
\tffffffff81001100 rwsem_down_write_slowpath
\tffffffff81001200 down_write
\tffffffff81001300 path_openat
\t    7f0000001000 __open64

fscale-run   101    10.002000:    1000000 cpu-clock:
\tffffffff81002000 filemap_get_entry
\tffffffff81002100 filemap_read

fscale-run   101    10.003000:    1000000 cpu-clock:
\t    7f0000001000 [unknown]

fscale-run   777    10.003500:    5000000 cpu-clock:
\tffffffff81001000 another_run

kworker/0:1 (x)     9    10.004000:    2000000 cpu-clock:
\tffffffff81003000 loop_workfn

fscale-set   101    10.006000: PERF_RECORD_COMM: fscale-set:101/101
fscale-set   101    10.007000:    1000000 cpu-clock:
\tffffffff81004000 do_unlinkat
"""


def test_frames_lose_offsets_and_clone_suffixes() -> None:
    assert stacks.clean("  rwsem_wake.isra.0+111") == "rwsem_wake"
    assert stacks.clean("__mutex_lock.constprop.0+0x1c/0x80") == "__mutex_lock"
    assert stacks.clean("0xffffffff81234567") == "0xffffffff81234567"


def test_callers_skip_the_primitives_only() -> None:
    frames = stacks.parse(WRITE)
    assert frames[0] == "rwsem_down_write_slowpath"
    assert stacks.callers(frames) == ("path_openat", "do_filp_open")
    assert stacks.callers(("_raw_spin_lock",)) == ()


def test_an_interrupt_is_kept_apart_from_the_thread() -> None:
    frames = ("_raw_spin_lock", "rcu_core", "asm_sysvec_apic_timer_interrupt", "down_write", "open")
    assert stacks.in_interrupt(frames) == ("_raw_spin_lock", "rcu_core")
    assert stacks.without_interrupt(frames) == ("down_write", "open")


def test_perf_script_folds_the_threads_of_a_child() -> None:
    threads = SCRIPT.replace(
        "bench  101     0.000000: PERF_RECORD_FORK(101:101):(100:100)\n",
        "bench   99     0.000000: PERF_RECORD_FORK(99:99):(100:100)\n"
        "bench  101     0.000000: PERF_RECORD_FORK(99:101):(99:99)\n"
        "other  777     0.000000: PERF_RECORD_FORK(700:777):(700:700)\n",
    ).replace("fscale-run:101/101", "fscale-run:99/101")
    samples = perfscript.parse(threads, "fscale-run", parent=100)
    assert samples == perfscript.parse(SCRIPT, "fscale-run", parent=100)
    assert samples.count == 3


def test_samples_of_an_interrupt_are_nobodys_spinning() -> None:
    script = SCRIPT.replace(
        "\tffffffff81001000 rwsem_spin_on_owner\n",
        "\tffffffff81009000 rcu_core\n\tffffffff81009100 asm_sysvec_apic_timer_interrupt\n"
        "\tffffffff81001000 rwsem_spin_on_owner\n",
    )
    profile = {"output": script, "comm": "fscale-run", "pid": 100, "event": "cpu-clock"}
    assert not cpuprofile.read(profile).spinning


def test_bpftrace_maps_survive_truncation() -> None:
    good = json.dumps({"type": "map", "data": {"@active": 5}})
    cut = json.dumps({"type": "stats", "data": {"@wait": {"1,2,f\n": {"count": 1}}}})[:-9]
    assert parse(f"WARNING\n{good}\n{cut}") == {"@active": 5}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=12,
)
MAPS = st.dictionaries(
    st.sampled_from(
        [
            "@wait",
            "@max",
            "@histogram",
            "@others",
            "@page",
            "@cache",
            "@cache_name",
            "@cache_size",
            "@active",
            "@blocked",
        ]
    ),
    JSON
    | st.dictionaries(
        st.text("0123456789-x,abcdef\n +", max_size=40),
        JSON | st.fixed_dictionaries({"count": JSON, "total": JSON}),
        max_size=5,
    ),
)
OUTPUT = st.lists(
    MAPS.map(lambda d: json.dumps({"type": "map", "data": d})) | st.text(max_size=60), max_size=6
).map("\n".join)
MEMORY = {
    "direct_map": 0xFFFF888000000000,
    "page_array": 0xFFFFEA0000000000,
    "page_bits": 12,
    "page_size": 64,
}


@pytest.mark.broad
@settings(max_examples=60, deadline=None)
@given(OUTPUT, st.integers(0, 200), st.sampled_from([None, MEMORY]))
def test_no_bpftrace_output_breaks_the_readers(output: str, cut: int, memory: object) -> None:
    text = output[: len(output) - cut] if cut else output
    locks = lockprofile.read({"output": text, "memory": memory})
    assert all(lock.name.object for lock in locks.locks)
    offcpu.read({"output": text})


@pytest.mark.broad
@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(SCRIPT.splitlines()) | st.text(max_size=50), max_size=40))
def test_no_perf_output_breaks_the_reader(lines: list[str]) -> None:
    found = cpuprofile.read({"output": "\n".join(lines), "comm": "fscale-run"})
    assert 0 <= found.cpu_share <= 1
    assert all(0 <= found.share(s.periods) <= 1 for s in found.spinning.values())


@pytest.mark.broad
@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(SCRIPT)))
def test_perf_output_may_end_anywhere(cut: int) -> None:
    cpuprofile.read({"output": SCRIPT[:cut], "comm": "fscale-run", "pid": 100})


def test_hidden_symbols_stay_addresses_and_unnamed() -> None:
    wait = {
        "4,-131384255322904,\n    0xffffffff81234567\n    0xffffffff81234999\n": {
            "count": 2,
            "total": 9,
        }
    }
    output = json.dumps({"type": "stats", "data": {"@wait": wait}})
    (lock,) = lockprofile.read({"output": output}).locks
    assert lock.name.by.value == "unnamed"
    assert lock.name.object == "0xffffffff81234567"


def test_an_empty_profile_is_empty() -> None:
    assert lockprofile.read({}).locks == []
    assert cpuprofile.read({}).cpu_share == 1.0
    assert offcpu.read({"output": ""}).waits == []
