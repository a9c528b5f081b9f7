# SPDX-License-Identifier: GPL-2.0-only
"""/proc/lock_stat and perf stat as their documents show them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from analysis.diagnosis.kernelstat import LockClass, hardware, lock_stat
from fscale.commands.locks import _lock_stat

LOCK_STAT = """\
lock_stat version 0.4
-----------------------------------------------------------------------------------------
      class name    con-bounces    contentions   waittime-min   waittime-max waittime-total
-----------------------------------------------------------------------------------------

                         &mm->mmap_sem-W:  46  84  0.26  939.10  16371.53  194.90  47291  2922365  0.16  2220301.69  17464026916.32  5975.99
                         &mm->mmap_sem-R:  37  100  1.31  299502.61  325629.52  3256.30  212344  34316685  0.10  7744.91  95016910.20  2.77
                         ---------------
                           &mm->mmap_sem              1          [<ffffffff811502a7>] khugepaged_scan_mm_slot+0x57/0x280
                              rename_lock:  0  0  0.00  0.00  0.00  0.00  10  20  0.10  1.00  2.00  0.10
"""  # noqa: E501
PERF = """\
# started on Fri Nov 20 13:00:00 2026

2000000,,cycles,1000,100.00,,
1000000,,instructions:u,1000,100.00,0.50,insn per cycle
400,,cache-references,1000,100.00,,
100,,cache-misses,1000,100.00,25.00,of all cache refs
<not supported>,,LLC-loads,0,100.00,,
"""


def test_classes_are_sorted_by_wait_and_idle_ones_left_out() -> None:
    found = lock_stat(LOCK_STAT)
    assert [(c.name, c.contentions, c.wait_total) for c in found] == [
        ("&mm->mmap_sem-R", 100, 325629.52),
        ("&mm->mmap_sem-W", 84, 16371.53),
    ]
    assert found[1] == LockClass(
        "&mm->mmap_sem-W", 46, 84, 939.1, 16371.53, 2922365, 17464026916.32
    )


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("a: 1 1 1 1 1 1 1 1 1 1 1 1", ["a"]),
        ("a b:c: 1 1 1 1 1 1 1 1 1 1 1 1 ", ["a b:c"]),
        ("a: 1 0 1 1 1 1 1 1 1 1 1 1", []),
        ("a: 1 1 1 1 1 1 1 1 1 1 1", []),
        ("a: 1 1 1.1.1 1 1 1 1 1 1 1 1 1", []),
    ],
)
def test_a_class_has_twelve_numbers(line: str, names: list[str]) -> None:
    after = "b: 2 2 2 2 2 2 2 2 2 2 2 2"
    assert [c.name for c in lock_stat(f"nothing\n{line}\n{after}")] == ["b", *names]


def test_ratios_come_from_their_parts() -> None:
    found = hardware(PERF)
    assert found["cycles per instruction"] == pytest.approx(2)
    assert found["cache miss ratio"] == pytest.approx(0.25)
    assert set(found) == {
        *("cycles", "instructions", "cache-references", "cache-misses"),
        *("cycles per instruction", "cache miss ratio"),
    }


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("7,,cycles", {"cycles": 7}),
        ("7,,cycles:u:k,1", {"cycles": 7}),
        ("7,cycles", {}),
        ("7.5,,cycles", {}),
        ("0,,instructions\n1,,cycles", {"instructions": 0, "cycles": 1}),
        ("1,,instructions", {"instructions": 1}),
        ("0,,cache-references\n1,,cache-misses", {"cache-references": 0, "cache-misses": 1}),
        ("1,,cache-references", {"cache-references": 1}),
        ("x\n1,,a", {"a": 1}),
    ],
)
def test_ratios_without_their_parts_are_left_out(lines: str, found: dict[str, float]) -> None:
    assert hardware(lines) == found


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=200), st.integers(0, len(LOCK_STAT)))
def test_no_text_breaks_them(text: str, cut: int) -> None:
    for sample in (text, LOCK_STAT[:cut] + text, PERF[:cut] + text):
        lock_stat(sample)
        hardware(sample)


def test_the_terminal_shows_bounces_waits_and_holds() -> None:
    console = Console(record=True, width=140)
    console.print(_lock_stat(lock_stat(LOCK_STAT)))
    header, first, *_ = console.export_text().splitlines()
    assert header.split() == [
        *("/proc/lock_stat", "bounces", "waits", "waited", "mean"),
        *("longest", "taken", "held"),
    ]
    bounces, waits, waited = first.split()[1:4]
    assert (bounces, waits, waited) == ("37", "100", "325,629.5")
    assert "3,256.3 us" in first
