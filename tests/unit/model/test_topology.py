# SPDX-License-Identifier: GPL-2.0-only
"""The order of CPUs, the core counts and the marks of a curve, on made-up machines."""

from pathlib import Path

import pytest

from fscale.model.errors import FscaleError
from fscale.model.results import Cpu, Machine
from fscale.model.topology import (
    Layout,
    Preset,
    beyond,
    core_counts,
    cpu_order,
    layout,
    machine_layout,
    place,
    spreads,
)
from fscale.runner.machine import changes, host
from fscale.runner.machine.journal import Journal
from fscale.system import powers
from fscale.system.executor import DryExecutor
from tests.support.synthetic import cpus_of, machine


def laid_out(cpus: list[Cpu]) -> Layout:
    return layout(cpus, {cpu.cpu for cpu in cpus})


def counts(cpus: list[Cpu], preset: Preset = "topology") -> list[int]:
    return core_counts(preset, laid_out(cpus))


def hybrid() -> list[Cpu]:
    """Two cores with two threads each, and three with one."""
    threads = [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (5, 3), (6, 4)]
    return [Cpu(cpu=cpu, core=core, socket=0, node=0) for cpu, core in threads]


def test_cpu_order_by_socket_with_threads_last() -> None:
    # Numbered as Linux usually does it: threads in the second half.
    assert cpu_order(cpus_of(2, 2, 2)) == [0, 1, 2, 3, 4, 5, 6, 7]
    # And with the sockets interleaved, as some firmware does.
    cpus = [Cpu(cpu=cpu, core=cpu % 4, socket=cpu % 2, node=cpu % 2) for cpu in range(8)]
    assert cpu_order(cpus) == [0, 2, 1, 3, 4, 6, 5, 7]
    assert cpu_order(hybrid()) == [0, 2, 4, 5, 6, 1, 3]


def test_the_machine_of_the_paper_has_each_full_socket() -> None:
    cpus = cpus_of(8, 10)
    assert laid_out(cpus) == Layout((10, 20, 30, 40, 50, 60, 70, 80), 80, 80)
    expected = [1, 2, 4, 8, 10, 16, 20, 30, 32, 40, 50, 60, 64, 70, 80]
    assert counts(cpus) == expected
    assert counts(cpus, "powers") == [1, 2, 4, 8, 16, 32, 64, 80]


def test_two_sockets_with_smt_have_the_socket_the_cores_and_the_threads() -> None:
    cpus = cpus_of(2, 48, 2)
    assert laid_out(cpus) == Layout((48, 96), 96, 192)
    assert counts(cpus) == [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192]
    assert counts(cpus_of(2, 64, 2)) == [1, 2, 4, 8, 16, 32, 64, 128, 256]


def test_one_socket_has_no_boundary() -> None:
    assert laid_out(cpus_of(1, 6, 2)) == Layout((), 6, 12)
    assert counts(cpus_of(1, 6, 2)) == [1, 2, 4, 6, 8, 12]
    assert counts(cpus_of(1, 2)) == [1, 2]
    assert counts(cpus_of(1, 1)) == [1]


def test_ragged_machines() -> None:
    assert laid_out(hybrid()) == Layout((), 5, 7, kinds=(2, 5))
    assert counts(hybrid()) == [1, 2, 4, 5, 7]
    # One core alone has lost its second thread to somebody.
    assert laid_out(hybrid()[:5]) == Layout((), 3, 5)
    uneven = [Cpu(cpu=n, core=n, socket=n // 3, node=0) for n in range(5)]
    assert laid_out(uneven) == Layout((3, 5), 5, 5)


def desktop(fast: int, slow: int, *, hidden: bool = False, **of_slow: object) -> list[Cpu]:
    """Fast cores of two threads each, then slow ones of one; `hidden`: both have one."""
    threads = [core for core in range(fast) for _ in range(1 if hidden else 2)]
    threads += range(fast, fast + slow)
    cpus = [Cpu(cpu=n, core=core, socket=0, node=0) for n, core in enumerate(threads)]
    return [cpu.model_copy(update=of_slow if cpu.core >= fast else {}) for cpu in cpus]


def with_speeds(speeds: list[float], field: str = "max_mhz") -> list[Cpu]:
    return [
        Cpu.model_validate({"cpu": n, "core": n, "socket": 0, "node": 0, field: speed})
        for n, speed in enumerate(speeds)
    ]


def test_efficiency_cores_with_the_lowest_numbers_come_last() -> None:
    """As of a phone's processor, which boots on a slow one."""
    speeds = [1800, 1800, 1800, 1800, 2400, 2400, 2400, 3000]
    cpus = [
        Cpu(cpu=n, core=n, socket=0, node=0, capacity=round(speed / 3), max_mhz=speed)
        for n, speed in enumerate(speeds)
    ]
    assert cpu_order(cpus) == [7, 4, 5, 6, 0, 1, 2, 3]
    assert laid_out(cpus) == Layout((), 8, 8, kinds=(1, 4, 8))


def test_efficiency_cores_come_after_the_fast_ones_and_have_a_border() -> None:
    cpus = desktop(8, 16)
    there = laid_out(cpus)
    assert there == Layout((), 24, 32, kinds=(8, 24))
    assert cpu_order(cpus)[:9] == [0, 2, 4, 6, 8, 10, 12, 14, 16]
    assert counts(cpus) == [1, 2, 4, 8, 16, 24, 32]
    assert counts(desktop(6, 8)) == [1, 2, 4, 6, 8, 14, 16, 20]
    assert [there.physical(n) for n in (4, 8, 9, 24, 32)] == [4, 8, 8, 8, 8]
    assert (there.equal, there.borders) == (8, (8,))


@pytest.mark.parametrize(
    ("speeds", "kinds"),
    [
        # A desktop of the 13th and one of the 15th generation, with favoured cores.
        ([5800, 5800, *[5500] * 6, *[4300] * 16], (8, 24)),
        ([5500, 5500, *[5400] * 6, *[4600] * 12], (8, 20)),
        # Fast, efficient, and two on another die.
        ([4800] * 6 + [3800] * 8 + [2500] * 2, (6, 14, 16)),
        # Compact cores that have all their threads.
        ([5157] * 4 + [3300] * 8, (4, 12)),
        # Equal ones: preferred cores, each a step below the last, and two dies.
        ([6300 - 180 * n for n in range(8)], ()),
        ([5850] * 8 + [5500] * 8, ()),
        ([5250] * 8 + [5750] * 8, ()),
        ([4700, 4500, 4500, 4500], ()),
        ([3000] * 4, ()),
    ],
)
@pytest.mark.parametrize("field", ["max_mhz", "capacity"])
def test_kinds_by_frequency_and_capacity(
    speeds: list[float], kinds: tuple[int, ...], field: str
) -> None:
    cpus = with_speeds([speed // 6 for speed in speeds] if field == "capacity" else speeds, field)
    assert laid_out(cpus).kinds == kinds
    # Whatever their numbers are.
    backwards = [c.model_copy(update={"cpu": 99 - c.cpu, "core": 99 - c.core}) for c in cpus]
    assert laid_out(backwards).kinds == kinds
    fastest = max(speeds)
    first = next(c for c in backwards if c.cpu == cpu_order(backwards)[0])
    if kinds:
        assert getattr(first, field) >= 0.9 * (fastest // 6 if field == "capacity" else fastest)


def test_kinds_by_pmu() -> None:
    cpus = [
        c.model_copy(update={"type": "core" if c.core < 4 else "atom"})
        for c in desktop(4, 6, hidden=True)
    ]
    assert laid_out(cpus).kinds == (4, 10)
    # The slow ones are numbered first, and all have the same capacity.
    types = ["lowpower"] * 2 + ["atom"] * 4 + ["core"] * 6
    cpus = [
        Cpu.model_validate({"cpu": n, "core": n, "socket": 0, "node": 0, "type": t, "capacity": 1})
        for n, t in enumerate(types)
    ]
    assert cpu_order(cpus) == [6, 7, 8, 9, 10, 11, 2, 3, 4, 5, 0, 1]
    assert laid_out(cpus).kinds == (6, 10, 12)


def test_one_that_has_no_figure_makes_no_kind() -> None:
    cpus = with_speeds([5000, 5000, 3000, 3000])
    cpus[3].max_mhz = None
    assert laid_out(cpus).kinds == ()


def test_equal_cores_of_which_some_have_one_thread_are_equal_where_it_is_known() -> None:
    cpus = [c.model_copy(update={"max_mhz": 3000.0}) for c in desktop(4, 4)]
    assert laid_out(cpus) == Layout((), 8, 12)


@pytest.mark.parametrize(
    "threads",
    [
        # The second threads of half of the cores are off line: numbered last, or beside the first.
        [(n, n) for n in range(8)] + [(n, n - 8) for n in range(8, 12)],
        [(n, n) for n in range(8)] + [(n, n - 8) for n in range(12, 16)],
        [(n, n // 2) for n in range(16) if n < 8 or not n % 2],
        [(n, n // 2) for n in range(16) if n >= 8 or n % 2],
    ],
)
def test_cores_whose_other_threads_are_off_line_are_no_kind(threads: list[tuple[int, int]]) -> None:
    cpus = [Cpu(cpu=cpu, core=core, socket=0, node=0) for cpu, core in threads]
    assert laid_out(cpus) == Layout((), 8, 12)


def test_cores_of_one_capacity_are_of_one_kind() -> None:
    cpus = [c.model_copy(update={"capacity": 1024}) for c in desktop(4, 4)]
    assert laid_out(cpus) == Layout((), 8, 12)


def test_a_run_that_may_use_one_kind_only_has_no_border() -> None:
    cpus = desktop(8, 16)
    assert layout(cpus, range(16)) == Layout((), 8, 16)
    assert layout(cpus, range(16, 32)) == Layout((), 16, 16)
    assert layout(cpus, {0, 1, 20, 21}) == Layout((), 3, 4, kinds=(1, 3))


def test_sockets_that_are_clusters_of_one_kind_each_are_ordered_by_speed() -> None:
    cpus = [
        Cpu(cpu=n, core=n, socket=n // 4, node=0, capacity=400 if n < 4 else 1024) for n in range(8)
    ]
    assert cpu_order(cpus) == [4, 5, 6, 7, 0, 1, 2, 3]
    assert laid_out(cpus) == Layout((4, 8), 8, 8, kinds=(4, 8))


def test_what_tells_kinds_is_read_from_sys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[dict[str, object]] = [
        {"cpu": n, "core": n, "socket": 0, "node": 0} for n in range(6)
    ]
    monkeypatch.setattr(host, "_lscpu", lambda *_: rows)
    monkeypatch.setattr(host, "CPUS", tmp_path / "system/cpu")
    monkeypatch.setattr(host, "DEVICES", tmp_path)
    for n in range(6):
        place = tmp_path / f"system/cpu/cpu{n}"
        (place / "cpufreq").mkdir(parents=True)
        (place / "cpufreq/cpuinfo_max_freq").write_text(f"{5400000 if n < 2 else 4300000}\n")
        (place / "cpu_capacity").write_text("1024\n")
    for name, listed in (("core", "0-1"), ("atom", "2-3,5"), ("lowpower", "4")):
        (tmp_path / f"cpu_{name}").mkdir()
        (tmp_path / f"cpu_{name}/cpus").write_text(f"{listed}\n")
    found = host.topology()
    assert [c.type for c in found] == ["core", "core", "atom", "atom", "lowpower", "atom"]
    assert {c.max_mhz for c in found} == {5400, 4300}
    assert {c.capacity for c in found} == {1024}
    assert cpu_order(found) == [0, 1, 2, 3, 5, 4]
    there = machine(6, found).model_copy(update={"cpu_order": cpu_order(found)})
    (said,) = [text for text in host.warnings(there) if "unequal" in text]
    assert "2 (CPUs 0-1) are fast, 3 (CPUs 2-3,5), then 1 (CPUs 4) slower" in said
    for name in ("core", "atom", "lowpower"):
        (tmp_path / f"cpu_{name}/cpus").unlink()
    assert {c.type for c in host.topology()} == {None}
    assert laid_out(host.topology()).kinds == (2, 6)


def test_virtual_sockets_of_one_core_are_none() -> None:
    assert laid_out(cpus_of(6, 1)) == Layout((), 6, 6)
    assert counts(cpus_of(6, 1)) == [1, 2, 4, 6]


def test_only_usable_cpus_count() -> None:
    cpus = cpus_of(2, 4, 2)
    # Both threads of one core of each socket, and a lone second thread.
    assert layout(cpus, {0, 8, 4, 12, 13}) == Layout((1, 3), 3, 5)


def test_other_core_counts() -> None:
    there = laid_out(cpus_of(1, 3))
    assert core_counts("all", there) == [1, 2, 3]
    assert core_counts("powers", there) == [1, 2, 3]
    assert core_counts([2, 1, 2], there) == [1, 2]
    with pytest.raises(FscaleError, match=r"^4 cores .* 3$"):
        core_counts([4], there)
    assert core_counts([4, 2, 9], there, leave_out=True) == [2]
    assert beyond([4, 2, 9], there) == [4, 9]
    with pytest.raises(FscaleError, match="4 cores are asked for, but this run may use 3"):
        core_counts([4], there, leave_out=True)


def test_ranges_and_shares_become_counts_each_once() -> None:
    there = laid_out(cpus_of(1, 8))
    assert core_counts(["1-4", "2-8:3", 4], there) == [1, 2, 3, 4, 5, 8]
    # Shares are rounded, and at least one core; what two of them have in common is measured once.
    assert core_counts(["1%", "6%", "19%", "50%", "100%", 4], there) == [1, 2, 4, 8]
    assert core_counts(["50%"], laid_out(cpus_of(1, 3))) == [2]
    assert core_counts(["6-10:2", "100%"], there, leave_out=True) == [6, 8]
    assert beyond(["6-12:2", 16], there) == [10, 12, 16]
    with pytest.raises(FscaleError, match="9-10,16 cores are asked for"):
        core_counts(["7-10", 16], there)


def with_caches(cpus: list[Cpu], cores: int) -> list[Cpu]:
    """Each L3 cache is shared by so many cores, and by all their threads."""
    return [c.model_copy(update={"l3": c.core // cores * cores}) for c in cpus]


def test_spread_takes_sockets_in_turn_and_second_threads_last() -> None:
    cpus = cpus_of(2, 4, 2)
    assert cpu_order(cpus, placement="spread")[:8] == [0, 4, 1, 5, 2, 6, 3, 7]
    assert cpu_order(cpus, placement="spread")[8:] == [8, 12, 9, 13, 10, 14, 11, 15]
    # Within each socket its caches in turn.
    cpus = with_caches(cpus_of(2, 4), 2)
    assert cpu_order(cpus, placement="spread") == [0, 4, 2, 6, 1, 5, 3, 7]
    assert cpu_order(cpus) == list(range(8))
    # Sockets of unequal size, of which one has CPUs that others use.
    assert cpu_order(cpus, {0, 1, 2, 3, 7}, "spread") == [0, 7, 2, 1, 3]


def test_spread_takes_the_caches_of_a_single_socket_in_turn() -> None:
    cpus = with_caches(cpus_of(1, 12, 2), 4)
    assert cpu_order(cpus, placement="spread")[:6] == [0, 4, 8, 1, 5, 9]
    assert cpu_order(cpus, placement="spread")[12:15] == [12, 16, 20]
    nodes = [c.model_copy(update={"node": c.core // 6}) for c in cpus_of(1, 12)]
    assert cpu_order(nodes, placement="spread")[:4] == [0, 6, 1, 7]


def test_spread_keeps_fast_cores_before_slow_ones() -> None:
    cpus = with_caches(desktop(4, 4), 2)
    order = cpu_order(cpus, placement="spread")
    # CPUs 0, 2, 4, 6 are the first threads of the fast cores, 8 to 11 the slow ones.
    assert order == [0, 4, 2, 6, 8, 10, 9, 11, 1, 5, 3, 7]
    there = layout(cpus, order, "spread")
    assert there == Layout((), 8, 12, kinds=(4, 8))


def test_spread_completes_no_socket() -> None:
    cpus = cpus_of(2, 48, 2)
    there = layout(cpus, range(192), "spread")
    assert there == Layout((), 96, 192)
    assert core_counts("topology", there) == [1, 2, 4, 8, 16, 32, 64, 96, 128, 192]


def ordered(cpus: list[Cpu]) -> Machine:
    return machine(len(cpus), cpus).model_copy(update={"cpu_order": cpu_order(cpus)})


def test_whole_cores_are_kept_free_then_threads() -> None:
    found = place(ordered(cpus_of(2, 4, 2)), "packed", 2)
    assert found.kept_free == [7, 15]
    assert found.cpu_order == [0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14]
    assert machine_layout(found) == Layout((4, 7), 7, 14)
    assert place(ordered(cpus_of(2, 4, 2)), "packed", 3).kept_free == [7, 14, 15]
    assert place(ordered(cpus_of(2, 4, 2)), "packed", 1).kept_free == [15]
    # Spread: from each socket.
    found = place(ordered(cpus_of(2, 4)), "spread", 2)
    assert (found.cpu_order, found.kept_free) == ([0, 4, 1, 5, 2, 6], [3, 7])
    assert machine_layout(found) == Layout((), 6, 6)
    # Of unequal cores the slow ones.
    assert place(ordered(desktop(4, 4)), "packed", 3).kept_free == [9, 10, 11]
    assert place(ordered(cpus_of(1, 8)), "packed", 0).kept_free == []


def test_a_share_is_kept_free_and_at_least_one_cpu_is_left() -> None:
    assert place(ordered(cpus_of(1, 8)), "packed", "25%").kept_free == [6, 7]
    assert place(ordered(cpus_of(1, 8)), "packed", "1%").kept_free == [7]
    for keep, count in ((8, 8), ("50%", 1), (2, 2)):
        with pytest.raises(FscaleError, match=f"may use {count}"):
            place(ordered(cpus_of(1, count)), "packed", keep)
    assert place(ordered(cpus_of(1, 2)), "packed", 1).cpu_order == [0]


def test_what_can_be_spread() -> None:
    assert spreads(ordered(cpus_of(2, 2)))
    assert spreads(ordered(with_caches(cpus_of(1, 4), 2)))
    assert not spreads(ordered(cpus_of(1, 4, 2)))
    one_socket = ordered(cpus_of(2, 2)).model_copy(update={"cpu_order": [2, 3]})
    assert not spreads(one_socket)


def test_the_cache_of_a_cpu_is_read_from_sys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[dict[str, object]] = [
        {"cpu": n, "core": n, "socket": 0, "node": 0} for n in range(4)
    ]
    monkeypatch.setattr(host, "_lscpu", lambda *_: rows)
    monkeypatch.setattr(host, "CPUS", tmp_path)
    for n in range(3):
        for index, (level, shared) in enumerate(((2, str(n)), (3, "0-1" if n < 2 else "2,9"))):
            cache = tmp_path / f"cpu{n}/cache/index{index}"
            cache.mkdir(parents=True)
            (cache / "level").write_text(f"{level}\n")
            (cache / "shared_cpu_list").write_text(f"{shared}\n")
    assert [c.l3 for c in host.topology()] == [0, 0, 2, None]


def test_cpus_kept_free_are_no_others_and_stay_online(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(powers, "no_hotplug", lambda: None)
    found = place(ordered(cpus_of(1, 6)), "packed", 2)
    assert host.denied(found) == []
    assert not [text for text in host.warnings(found) if "cpuset" in text]
    for n in range(1, 6):
        (tmp_path / f"cpu{n}").mkdir()
        (tmp_path / f"cpu{n}/online").write_text("1\n")
    for module in (host, changes):
        monkeypatch.setattr(module, "CPUS", tmp_path)
    written: list[str] = []
    cpus = host.Cpus(found, Journal(tmp_path / "journal", DryExecutor(written.append)))
    assert cpus.control == "hotplug"
    assert cpus.select(2) == [0, 1]
    assert sorted(line.split("/cpu")[-1].split("/")[0] for line in written) == ["2", "3"]


def test_unknown_cores_are_cores_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[dict[str, object]] = [
        {"cpu": str(n), "core": "-", "socket": "-", "node": "-"} for n in range(4)
    ]
    monkeypatch.setattr(host, "_lscpu", lambda *_: rows)
    assert laid_out(host.topology()) == Layout((), 4, 4)


def test_cpus_of_others_are_neither_used_nor_taken_off(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setattr(host, "topology", lambda: cpus_of(1, 8))
    monkeypatch.setattr(host.os, "sched_getaffinity", lambda _: {2, 3, 6})
    monkeypatch.setattr(powers, "no_hotplug", lambda: None)
    found = host.read_machine()
    assert found.cpu_order == [2, 3, 6]
    assert len(found.topology) == 8
    (said,) = [text for text in host.warnings(found) if "cpuset" in text]
    assert said.startswith("CPUs 0-1,4-5,7 are not used")
    assert "all CPUs stay online" in said
    written: list[str] = []
    journal = Journal(tmp_path / "journal", DryExecutor(written.append))  # type: ignore[operator]
    cpus = host.Cpus(found, journal)
    assert cpus.control == "affinity"
    assert cpus.select(1) == [2]
    assert written == []
    assert host.Cpus(machine(8), journal).control == "hotplug"
