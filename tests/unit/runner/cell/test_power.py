# SPDX-License-Identifier: GPL-2.0-only
"""How much power processors and memory took; null, never 0."""

from pathlib import Path

import pytest

from fscale.model.load import Outcome
from fscale.runner.cell import power
from fscale.runner.cell.power import measure_power

LIMIT = 262_143_328_850


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seconds between two looks."""
    ticks = iter(range(0, 100, 2))
    monkeypatch.setattr(power.time, "monotonic", lambda: float(next(ticks)))


def zone(root: Path, number: str, name: str, microjoules: int, limit: int = LIMIT) -> Path:
    path = root / f"sys/class/powercap/{number}"
    path.mkdir(parents=True, exist_ok=True)
    for file, value in (("name", name), ("energy_uj", microjoules), ("max_energy_range_uj", limit)):
        (path / file).write_text(f"{value}\n")
    return path


def watts(root: Path, change: tuple[tuple[str, str, int], ...]) -> float | None:
    with measure_power(root) as found:
        for one in change:
            zone(root, *one)
    outcome = Outcome("ok")
    found.enter(outcome)
    return outcome.watts


def test_packages_and_their_memory_add_up_once(tmp_path: Path) -> None:
    """Of a zone that is a part of another one, or another way to one, nothing is added."""
    names = {"": "package-0", ":0": "core", ":1": "dram"}
    parts = [(f"intel-rapl:{n}{part}", name) for n in (0, 1) for part, name in names.items()]
    others = [("intel-rapl:2", "psys"), ("intel-rapl-mmio:0", "package-0"), ("dtpm", "dtpm")]
    for number, name in [*parts, *others]:
        zone(tmp_path, number, name, 5_000_000)
    later = {"package-0": 105_000_000, "dram": 15_000_000}
    grown = tuple((*one, later.get(one[1], 10**10)) for one in [*parts, *others])
    # Within two seconds, 100 J of each package and 10 J of its memory.
    assert watts(tmp_path, grown) == pytest.approx(2 * (100 + 10) / 2)


def test_a_counter_starts_anew(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", LIMIT - 9_999_999)
    assert watts(tmp_path, (("intel-rapl:0", "package-0", 30_000_000),)) == pytest.approx(20)


def test_what_may_have_started_anew_twice_is_not_known(tmp_path: Path) -> None:
    short = 1_999_000_000
    path = zone(tmp_path, "intel-rapl:0", "package-0", 0, short)
    with measure_power(tmp_path) as found:
        (path / "energy_uj").write_text("60000000\n")
    assert found.watts is None


@pytest.mark.parametrize("broken", ["energy_uj", "max_energy_range_uj"])
def test_what_cannot_be_read_is_not_known(tmp_path: Path, broken: str) -> None:
    """As by users, who may not read energies."""
    zone(tmp_path, "intel-rapl:1", "package-1", 5)
    path = zone(tmp_path, "intel-rapl:0", "package-0", 5)
    (path / broken).unlink()
    assert watts(tmp_path, (("intel-rapl:1", "package-1", 10**7),)) is None


def test_a_machine_without_counters_or_with_dead_ones_says_nothing(tmp_path: Path) -> None:
    assert watts(tmp_path, ()) is None
    zone(tmp_path, "intel-rapl:0", "package-0", 5)
    assert watts(tmp_path, ()) is None
