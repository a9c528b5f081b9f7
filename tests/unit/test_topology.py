# SPDX-License-Identifier: GPL-2.0-only
"""The order of CPUs, the core counts and the marks of a curve, on made-up machines."""

import pytest

from fscale.model.errors import FscaleError
from fscale.model.results import Cpu
from fscale.model.topology import Layout, Preset, core_counts, cpu_order, layout
from fscale.runner import host
from fscale.runner.machine.journal import Journal
from fscale.system.executor import DryExecutor
from tests.synthetic import cpus_of, machine


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
    assert laid_out(hybrid()) == Layout((), 5, 7)
    assert counts(hybrid()) == [1, 2, 4, 5, 7]
    uneven = [Cpu(cpu=n, core=n, socket=n // 3, node=0) for n in range(5)]
    assert laid_out(uneven) == Layout((3, 5), 5, 5)


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
    with pytest.raises(FscaleError, match="4 cores are asked for, but this run may use 3"):
        core_counts([4], there)
    with pytest.raises(FscaleError, match="at least 1 core"):
        core_counts([0], there)


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
    monkeypatch.setattr(host, "hotplug_possible", lambda: True)
    found = host.read_machine()
    assert found.cpu_order == [2, 3, 6]
    assert len(found.topology) == 8
    (said,) = [text for text in host.warnings(found) if "cpuset" in text]
    assert said.startswith("CPUs 0-1,4-5,7 are not used and all CPUs stay online")
    written: list[str] = []
    journal = Journal(tmp_path / "journal", DryExecutor(written.append))  # type: ignore[operator]
    cpus = host.Cpus(found, journal)
    assert cpus.control == "affinity"
    assert cpus.select(1) == [2]
    assert written == []
    assert host.Cpus(machine(8), journal).control == "hotplug"
