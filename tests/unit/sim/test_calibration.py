# SPDX-License-Identifier: GPL-2.0-only
"""From measured transfers to a simulated machine."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fscale.cli import app
from fscale.model.errors import Exit, FscaleError
from fscale.model.paths import ROOT
from fscale.model.results import Cpu
from fscale.sim import calibration, machine
from fscale.sim.calibration import Calibration, PrimitivesOutput

PACKED = ROOT / "docs" / "results" / "data" / "cache-lines-sixteen-cores.json"
CORE = {
    "cycle_ns_alone": 0.5,
    "cycle_ns_of_all": 0.6,
    "add_ns": 10.0,
    "pause_ns": 20.0,
    "memory_ns": 100.0,
    "string_bytes_per_ns": 64.9,
    "wake_ns": 5000.0,
}


def matrix(cpus: int, near: float | None, far: float) -> list[list[float | None]]:
    """Even CPUs are one socket, odd ones another."""
    return [
        [
            None if to == origin else near if (to + origin) % 2 == 0 else far
            for origin in range(cpus)
        ]
        for to in range(cpus)
    ]


def measured(cpus: int = 4, sockets: int = 2, **changed: Any) -> Calibration:
    def kind(near: float, far: float) -> list[list[float | None]]:
        return matrix(cpus, near, far if sockets == 2 else near)

    transfers = {
        "hit": kind(2, 2),
        "dirty": kind(60, 150),
        "dirty_add": kind(70, 160),
        "upgrade": kind(50, 130),
        "clean": kind(40, 120) if cpus > 2 else [[None] * cpus] * cpus,
    }
    one = PrimitivesOutput(
        cpus=list(range(cpus)), core=CORE, nanoseconds_of_transfers=transfers, crowds={}
    )
    given = {
        "cpu": "A CPU",
        "day": date(2026, 11, 27),
        "virtual": False,
        "sockets": {cpu: cpu % sockets for cpu in range(cpus)},
        "hidden_threads": False,
        "samples": [one],
    }
    return Calibration(**(given | changed))


def test_times_become_cycles_of_the_clock() -> None:
    made = calibration.machine(measured())
    assert (made.clock_mhz, made.sockets, made.cores_per_socket) == (2000, 2, 2)
    assert made.latency.model_dump() == {
        "clean": 80,
        "clean_remote": 240,
        "dirty": 120,
        "dirty_remote": 300,
        "upgrade": 80,  # less the addition itself
        "upgrade_remote": 240,
        "memory": 200,
        "overlap": 0,
        "occupy_shared": calibration.OCCUPY_SHARED,
    }
    assert not made.migratory
    assert made.cost.model_dump() == {"lock": 20, "pause": 40, "syscall": 0}
    assert made.string_bytes == 32


def test_a_line_that_is_written_for_nothing_after_a_read_migrates() -> None:
    one = measured(sockets=1).samples[0]
    for nanoseconds, migrates in ((12.0, True), (50.0, False)):
        times = one.nanoseconds_of_transfers | {"add_after_read": matrix(4, nanoseconds, 0)}
        found = one.model_copy(update={"nanoseconds_of_transfers": times})
        # Within a socket; what is between the two sockets does not count.
        made = calibration.machine(measured(samples=[found]))
        assert made.migratory == migrates


def test_an_upgrade_that_costs_no_transfer_is_none() -> None:
    one = measured().samples[0]
    times = one.nanoseconds_of_transfers | {"upgrade": matrix(4, 11, 130)}
    found = measured(samples=[one.model_copy(update={"nanoseconds_of_transfers": times})])
    made = calibration.machine(found)
    assert (made.latency.upgrade, made.latency.upgrade_remote) == (120, 240)
    assert len(made.unseen) == len(calibration.machine(measured()).unseen) + 1


def test_a_handover_that_takes_less_than_three_transfers_overlaps() -> None:
    crowd = {"queue_lock": {"4": {"ops_per_second": 1e9 / 150, "slowest_of_mean": 1}}}
    one = PrimitivesOutput.model_validate(
        measured(sockets=1).samples[0].model_dump() | {"crowds": crowd}
    )
    made = calibration.machine(measured(sockets=1, samples=[one]))
    assert made.latency.overlap == 20  # 60 ns less a third of 150 ns, at 2 GHz


def test_with_one_socket_remote_repeats_near() -> None:
    made = calibration.machine(measured(sockets=1))
    assert (made.sockets, made.cores_per_socket) == (1, 4)
    assert made.latency.dirty_remote == made.latency.dirty == 120
    assert len(made.unseen) == len(calibration.machine(measured()).unseen) + 1


def test_with_two_cores_clean_repeats_dirty() -> None:
    made = calibration.machine(measured(cpus=2, sockets=1))
    assert made.latency.clean == made.latency.dirty


def test_threads_and_hosts_that_are_not_seen_are_told() -> None:
    less = calibration.unseen(measured())
    more = calibration.unseen(measured(virtual=True, hidden_threads=True))
    assert len(more) == len(less) + 2


def test_the_median_of_all_calls_counts() -> None:
    slow = measured().samples[0].model_copy(update={"core": CORE | {"memory_ns": 900.0}})
    usual = measured().samples[0]
    made = calibration.machine(measured(samples=[usual, slow, usual]))
    assert made.latency.memory == 200


def test_the_packed_figures_make_the_machine_of_sixteen_cores() -> None:
    packed = json.loads(PACKED.read_text())
    samples = [PrimitivesOutput(cpus=list(range(16)), **one) for one in packed["samples"]]
    made = calibration.machine(
        measured(sockets=1, samples=samples, virtual=True).model_copy(
            update={"sockets": dict.fromkeys(range(16), 0)}
        )
    )
    kept = machine.load("xeon16")
    kept = kept.model_copy(update={"cost": kept.cost.model_copy(update={"syscall": 0})})
    same = ("sockets", "cores_per_socket", "clock_mhz", "string_bytes", "latency", "cost")
    assert {name: getattr(made, name) for name in same} == {
        name: getattr(kept, name) for name in same
    }


def test_a_machine_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = calibration.machine(measured(cpu='A "quoted" CPU'))
    path = tmp_path / "here.toml"
    path.write_text(calibration.toml(made))
    assert machine.load(str(path)) == made


def cpu(number: int, core: int, socket: int = 0) -> Cpu:
    return Cpu(cpu=number, core=core, socket=socket, node=0)


def test_one_thread_of_each_core_is_measured() -> None:
    there = [cpu(0, 0), cpu(1, 1), cpu(2, 0), cpu(3, 1), cpu(4, 0, socket=1)]
    assert [one.cpu for one in calibration.cores(there, range(5))] == [0, 1, 4]
    assert [one.cpu for one in calibration.cores(there, {2, 3})] == [2, 3]
    with pytest.raises(FscaleError):
        calibration.cores(there, {0, 2})


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path


def call(*arguments: object) -> int:
    return CliRunner().invoke(app, ["calibrate", *map(str, arguments)]).exit_code


def test_the_command_makes_a_machine_of_kept_figures(machines: Path) -> None:
    kept = machines / "kept.json"
    kept.write_text(measured().model_dump_json())
    assert call("here", "--from", kept) == Exit.GOOD
    assert machine.load("here") == calibration.machine(measured())
    assert "here" in machine.known()
    with pytest.raises(FscaleError):
        CliRunner().invoke(app, ["calibrate", "here", "--from", str(kept)], catch_exceptions=False)
    again = machines / "again.json"
    assert call("here", "--from", kept, "--replace", "--data", again) == Exit.GOOD
    assert calibration.read(again) == measured()


def test_other_names_and_files_are_refused(machines: Path) -> None:
    for words in (["../here"], ["Here"], ["paper"], ["here", "--from", str(PACKED)]):
        with pytest.raises(FscaleError):
            CliRunner().invoke(app, ["calibrate", *words], catch_exceptions=False)
    assert not list(machines.iterdir())
