# SPDX-License-Identifier: GPL-2.0-only
"""/proc/lock_stat and perf stat as their documents show them."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from fscale.analysis.diagnosis.kernelstat import LockClass, gaps, hardware, lock_stat
from fscale.commands.locks import _lock_stat
from fscale.model import perfstat
from fscale.runner.profilers import cpu as profiler

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


@pytest.mark.broad
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


HYBRID = """\
# started on Thu Jan  8 10:00:00 2026

8000,,cpu_core/cycles/,2000000000,100.00,,
{atom},,cpu_atom/cycles/,0,100.00,,
4000,,cpu_core/instructions/,2000000000,100.00,0.74,insn per cycle
{atom_too},,cpu_atom/instructions/,0,100.00,,
"""
NOT = "<not counted>"


@pytest.mark.parametrize(
    ("lines", "cycles", "instructions", "ratio"),
    [
        (HYBRID.format(atom=NOT, atom_too=NOT), 8000, 4000, 2),
        (HYBRID.format(atom="<not supported>", atom_too="<not supported>"), 8000, 4000, 2),
        (HYBRID.format(atom=1000, atom_too=500), 9000, 4500, 2),
        # Cycles of all cores over instructions of some would be a wrong ratio.
        (HYBRID.format(atom=1000, atom_too=NOT), 9000, 4000, None),
        ("8,,cpu_core/cycles/u,1\n4,,cpu_core/instructions/u,1", 8, 4, 2),
        ("8,,cpu_core/cycles/:u,1\n4,,cpu_core/instructions/:u,1", 8, 4, 2),
        ("8,,cycles:u,1\n4,,instructions:u,1", 8, 4, 2),
        ("6,,cycles:u,1\n2,,cycles:k,1\n4,,instructions,1", 8, 4, 2),
        ("8,,cycles,1\n6,,cycles:u,1\n4,,instructions,1", 8, 4, 2),
        ("8,,cpu/cycles/,1\n4,,cpu/instructions/,1", 8, 4, 2),
        ("8,,armv8_pmuv3_0/cycles/,1\n4,,armv8_pmuv3_0/instructions/,1", 8, 4, 2),
        ("5,,armv8_cortex_a53/cpu_cycles/,1\n3,,armv8_cortex_a72/cpu-cycles/,1\n"
         "2,,armv8_cortex_a53/inst_retired/,1\n2,,armv8_cortex_a72/instructions/,1", 8, 4, 2),
        ("5,,a/cycles/\n2,,b/cycles/\n1,,c/cycles/\n2,,a/instructions/\n1,,b/instructions/\n"
         "1,,c/instructions/", 8, 4, 2),
        ("8,,cycles [cpu_core],1\n4,,instructions [cpu_core],1", 8, 4, 2),
        # Decimal commas, more columns, CPUs and sockets in front, separators in an event's name.
        ("8,,cpu_core/cycles/,20,99,95,,0,74\n4,,cpu_core/instructions/,2,100,00,0,74,x", 8, 4, 2),
        ("8,,cpu_core/cycles/,2000,100.00,1.5%,2.0,GHz,,cpu_core,x\n4,,instructions,,,,,", 8, 4, 2),
        ("CPU0,5,,cycles,1\nCPU1,3,,cycles,1\nCPU0,4,,instructions,1", 8, 4, 2),
        ("S0,2,8,,cycles,1\nS0,2,4,,instructions,1", 8, 4, 2),
        ("     1.000106000,8,,cycles,1\n     1.000106000,4,,instructions,1", 8, 4, 2),
        ("9,,cpu/event=0x3c,umask=0x1/,1\n8,,cycles,1\n4,,instructions,1", 8, 4, 2),
        ("1000,50,msec,cpu-clock,1\n1000,msec,cycles,1\n8,,cycles,1\n4,,instructions,1", 8, 4, 2),
    ],
)  # fmt: skip
def test_events_are_summed_over_pmus(
    lines: str, cycles: int, instructions: int, ratio: float | None
) -> None:
    found = hardware(lines)
    assert (found["cycles"], found["instructions"]) == (cycles, instructions)
    assert found.get("cycles per instruction") == ratio


PMUS_OF = {"cpu_core": "0-15", "cpu_atom": "16-31"}


@pytest.mark.parametrize(
    ("output", "profile", "events"),
    [
        (HYBRID.format(atom=NOT, atom_too=NOT), {}, ["cycles", "instructions"]),
        (HYBRID.format(atom=NOT, atom_too=NOT), {"pmus": PMUS_OF, "cpus": [0, 2]}, []),
        (HYBRID.format(atom=NOT, atom_too=NOT), {"pmus": PMUS_OF, "cpus": [0, 16]},
         ["cycles", "instructions"]),
        (HYBRID.format(atom=1, atom_too=NOT), {"pmus": PMUS_OF, "cpus": [0, 16]}, ["instructions"]),
        (HYBRID.format(atom=1, atom_too=1), {}, []),
        (HYBRID.format(atom=NOT, atom_too=1), {"pmus": {"cpu_atom": "0-x"}, "cpus": [0]},
         ["cycles"]),
        ("<not supported>,,cycles,0,100.00,,", {}, []),
    ],
)  # fmt: skip
def test_a_pmu_that_did_not_count_is_said(
    output: str, profile: dict[str, object], events: list[str]
) -> None:
    assert [words.split()[0] for words in gaps({"output": output, **profile})] == events


@pytest.mark.parametrize(
    ("words", "pmus", "counts", "event"),
    [
        (HYBRID.format(atom=NOT, atom_too=NOT), {}, True, "cycles"),
        (HYBRID.format(atom=7, atom_too=7), PMUS_OF, True, "cycles"),
        # The slow cores are under test and their PMU counts nothing: half of the time would miss.
        (HYBRID.format(atom=NOT, atom_too=NOT), PMUS_OF, True, "cpu-clock"),
        (HYBRID.format(atom=NOT, atom_too=NOT), PMUS_OF | {"cpu_atom": "18-31"}, True, "cycles"),
        ("9,,armv8_pmuv3_0/cycles/,1", {"armv8_pmuv3_0": "0-63"}, True, "cycles"),
        ("9,,cycles:u,1", {}, True, "cycles"),
        ("<not supported>,,cycles,0,100.00,,", {}, False, "cpu-clock"),
        (f"{NOT},,cpu_core/cycles/,0\n{NOT},,cpu_atom/cycles/,0", PMUS_OF, False, "cpu-clock"),
        ("0,,cycles,1", {}, False, "cpu-clock"),
        ("", {}, False, "cpu-clock"),
    ],
)
def test_cycles_are_counted_where_any_pmu_counts_them(
    monkeypatch: pytest.MonkeyPatch, words: str, pmus: dict[str, str], counts: bool, event: str
) -> None:
    asked = []

    def perf(argv: list[str], timeout: float = 60) -> tuple[int, str, str]:
        asked.append(argv)
        return 0, "", words

    monkeypatch.setattr(profiler, "perf", perf)
    monkeypatch.setattr(profiler, "core_pmus", lambda: pmus)
    assert profiler.has_cycles() is counts
    assert profiler.event_for([0, 16]) == event
    assert "--cpu" not in asked[0]
    assert asked[1][asked[1].index("--cpu") + 1] == "0,16"


def test_the_cpus_of_a_pmu_are_read(tmp_path: Path) -> None:
    for name, text in PMUS_OF.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "cpus").write_text(f"{text}\n")
    (tmp_path / "uncore_imc_0").mkdir()
    (tmp_path / "uncore_imc_0" / "cpumask").write_text("0\n")
    assert profiler.core_pmus(tmp_path) == PMUS_OF
    assert perfstat.cpu_list("0-2,8\n") == [0, 1, 2, 8]
    with pytest.raises(ValueError, match="not a list of CPUs"):
        perfstat.cpu_list("0-9999999999")
