# SPDX-License-Identifier: GPL-2.0-only
"""At which frequency the CPUs of a cell ran, and whether heat throttled them; null, never 0."""

import os
import struct
from pathlib import Path

import pytest

from fscale.model.load import Outcome
from fscale.runner.cell import speed
from fscale.runner.cell.speed import APERF, MPERF, TSC, measure_speed


def msr(root: Path, cpu: int, aperf: int, mperf: int, tsc: int) -> None:
    path = root / f"dev/cpu/{cpu}/msr"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for at, value in ((APERF, aperf), (MPERF, mperf), (TSC, tsc)):
            file.seek(8 * at)
            file.write(struct.pack("<Q", value))


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device counts registers where a file counts bytes."""
    pread = os.pread
    monkeypatch.setattr(speed.os, "pread", lambda fd, n, at: pread(fd, n, 8 * at))


def cpu_file(root: Path, cpu: int, name: str, value: object) -> None:
    path = root / f"sys/devices/system/cpu/cpu{cpu}" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{value}\n")


def entered(found: speed.Speed) -> Outcome:
    outcome = Outcome("ok")
    found.enter(outcome)
    return outcome


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seconds between two looks."""
    ticks = iter(range(0, 100, 2))
    monkeypatch.setattr(speed.time, "monotonic", lambda: float(next(ticks)))


@pytest.mark.usefixtures("clock")
def test_registers_say_the_frequency_while_busy(tmp_path: Path) -> None:
    """2 s of a TSC of 2 GHz; one CPU busy for all of it at 3 GHz, one for half of it at 2.5."""
    for cpu in (0, 1):
        msr(tmp_path, cpu, 10, 20, 30)
    with measure_speed([0, 1], 2, tmp_path) as found:
        msr(tmp_path, 0, 10 + 6_000_000_000, 20 + 4_000_000_000, 30 + 4_000_000_000)
        msr(tmp_path, 1, 10 + 2_500_000_000, 20 + 2_000_000_000, 30 + 4_000_000_000)
    outcome = entered(found)
    assert outcome.frequency_khz == round(2e6 * 8.5 / 6)
    assert outcome.extra == {"frequency_from": "aperf"}
    assert outcome.thermal_throttled is None


@pytest.mark.parametrize("cpus", [[0], [0, 1]], ids=["stand still", "one is missing"])
def test_registers_that_say_nothing_are_null(tmp_path: Path, cpus: list[int]) -> None:
    msr(tmp_path, 0, 0, 0, 5)
    with measure_speed(cpus, 1, tmp_path) as found:
        msr(tmp_path, 0, 0, 0, 9)
    assert entered(found).frequency_khz is None
    assert entered(found).extra == {}


def test_a_machine_that_says_nothing_is_null(tmp_path: Path) -> None:
    with measure_speed([0, 1], 1, tmp_path) as found:
        pass
    assert (found.khz, found.source, found.throttled) == (None, None, None)


def test_cpufreq_is_asked_while_the_load_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the end, after which idle CPUs are slow; here the timer fires when it is told."""
    waits: list[float] = []

    class Timer:
        daemon = False

        def __init__(self, after: float, function: object) -> None:
            waits.append(after)
            self.function = function

        def start(self) -> None:
            for cpu, khz in ((0, 3_000_000), (1, 2_000_000)):
                cpu_file(tmp_path, cpu, "cpufreq/scaling_cur_freq", khz)
            self.function()  # type: ignore[operator]

        def cancel(self) -> None: ...

        def join(self) -> None: ...

    monkeypatch.setattr(speed.threading, "Timer", Timer)
    for cpu in (0, 1):
        cpu_file(tmp_path, cpu, "cpufreq/scaling_cur_freq", 800_000)
    with measure_speed([0, 1], 10, tmp_path) as found:
        for cpu in (0, 1):
            cpu_file(tmp_path, cpu, "cpufreq/scaling_cur_freq", 800_000)
    assert entered(found).frequency_khz == 2_500_000
    assert entered(found).extra == {"frequency_from": "cpufreq"}
    assert waits == [pytest.approx(9)]


def test_a_load_that_ends_before_cpufreq_is_asked_has_no_frequency(tmp_path: Path) -> None:
    cpu_file(tmp_path, 0, "cpufreq/scaling_cur_freq", 800_000)
    with measure_speed([0], 3600, tmp_path) as found:
        pass
    assert found.khz is None


@pytest.mark.parametrize("grown", [0, 3])
def test_throttling_is_what_the_counters_grew_by(tmp_path: Path, grown: int) -> None:
    for cpu in (0, 1):
        for which in ("core", "package"):
            cpu_file(tmp_path, cpu, f"thermal_throttle/{which}_throttle_count", 7)
    with measure_speed([0, 1], 1, tmp_path) as found:
        cpu_file(tmp_path, 0, "thermal_throttle/package_throttle_count", 7 + grown)
        cpu_file(tmp_path, 1, "thermal_throttle/package_throttle_count", 7 + grown)
    assert entered(found).thermal_throttled == grown
