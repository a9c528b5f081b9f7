# SPDX-License-Identifier: GPL-2.0-only
"""Measured curves meet simulated ones: what is predicted, how widely, and what limits it."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fscale.analysis.prediction import facts
from fscale.analysis.prediction.curves import Prediction, Predictions, predict, starts
from fscale.analysis.prediction.record import records
from fscale.analysis.reader import load
from fscale.model.errors import FscaleError
from fscale.model.results import Cell, Tuning
from fscale.sim import machine
from tests.support.predicted import (
    measured_cells,
    simulated_cells,
    write_measured,
    write_simulated,
)

Predicting = Callable[..., Predictions]


@pytest.fixture
def predicting(tmp_path: Path) -> Predicting:
    def predicted(
        measured: list[Cell], simulated: list[Cell], *counts: int, cpus: int = 2
    ) -> Predictions:
        run = write_measured(tmp_path / "two", measured, cpus)
        simulation = write_simulated(tmp_path / "sim", simulated)
        return predict(load(run), load(simulation), counts or (16, 80))

    return predicted


def only(found: Predictions) -> Prediction:
    (made,) = found.made
    return made


def test_the_simulated_curve_is_scaled_to_two_cores(predicting: Predicting) -> None:
    found = predicting(measured_cells(), simulated_cells())
    sixteen, eighty = found.made
    assert (sixteen.cores, sixteen.at, sixteen.target) == (16, 2, "another machine")
    assert sixteen.rate.value == 150 * 64 / 16
    assert sixteen.speedup.value == 6
    assert eighty.speedup.value == 3
    assert sixteen.simulated_speedup == 6.4
    assert sixteen.can_tell
    assert sixteen.limit == ""
    assert [one.recorded for one in found.made] == [True, False]
    assert not found.refused


def test_the_interval_is_that_of_the_record(predicting: Predicting) -> None:
    made = only(predicting(measured_cells(), simulated_cells(), 16))
    width = records()["another machine"].width("speedup", 2, 16).log
    assert math.log(made.speedup.high / made.speedup.value) == pytest.approx(width)
    assert math.log(made.speedup.value / made.speedup.low) == pytest.approx(width)


def test_a_machine_with_the_cores_is_predicted_more_closely(predicting: Predicting) -> None:
    found = predicting(measured_cells(), simulated_cells(), cpus=16)
    assert [one.target for one in found.made] == ["this machine", "another machine"]
    here, record = found.made[0], records()["this machine"]
    width = record.width("speedup", 2, 16).log
    assert here.speedup.high == pytest.approx(here.speedup.value * math.exp(width))


def test_noise_widens_an_interval_and_is_named(predicting: Predicting) -> None:
    wild = measured_cells({1: (20.0, 100.0, 110.0), 2: (150.0, 150.0)})
    made = only(predicting(wild, simulated_cells(), 16))
    assert made.limit == "noise at 1 core"
    assert made.speedup.high == pytest.approx(6 * 5)
    assert made.rate.high < made.rate.value * 5  # two cores are not noisy


def test_one_repetition_has_no_known_spread(predicting: Predicting) -> None:
    made = only(predicting(measured_cells({1: (1, 1), 2: (1.5,)}), simulated_cells(), 16))
    assert made.limit == "one repetition at 2 cores"


def test_a_disturbed_base_is_named(predicting: Predicting) -> None:
    cells = [
        cell.model_copy(update={"disturbed": "others" if cell.key.cores == 1 else None})
        for cell in measured_cells()
    ]
    assert only(predicting(cells, simulated_cells(), 16)).limit == "disturbed at 1 core"


def test_what_the_simulation_cannot_repeat_is_not_predicted(predicting: Predicting) -> None:
    made = only(predicting(measured_cells({1: (100.0,), 2: (40.0,)}), simulated_cells(), 16))
    assert made.misfit == pytest.approx(math.log(0.4 / 1.6))
    assert not made.can_tell


@pytest.mark.parametrize(
    ("measured", "simulated", "reason"),
    [
        ({1: (1.0,)}, {1: 1.0, 16: 2.0}, "measured at one core count"),
        ({2: (1.0,), 4: (1.0,)}, {2: 1.0, 4: 1.0, 16: 2.0}, "not measured with 1 core"),
        ({1: (1.0,), 2: (1.0,)}, {1: 1.0, 2: 1.0}, "was not simulated with 16 cores"),
        ({1: (1.0,), 2: (1.0,)}, {2: 1.0, 16: 1.0}, "was not simulated with 1 core"),
        ({1: (1.0,), 2: (1.0,)}, {1: 1.0, 16: 1.0}, "at one core count only"),
    ],
)
def test_why_a_curve_is_not_predicted(
    measured: dict[int, tuple[float, ...]],
    simulated: dict[int, float],
    reason: str,
    predicting: Predicting,
) -> None:
    found = predicting(measured_cells(measured), simulated_cells(simulated), 16)
    assert not found.made
    assert reason in found.refused["MWCL on tmpfs"]


def test_curves_of_other_options_are_others(predicting: Predicting) -> None:
    measured = [*measured_cells(), *measured_cells(options={"files": 7})]
    found = predicting(measured, simulated_cells(options={"files": 7}), 16)
    assert only(found).start.name == "MWCL files=7 on tmpfs"
    assert found.refused == {"MWCL on tmpfs": "is not in the simulation"}


def test_counts_that_the_simulation_lacks_cost_no_others(predicting: Predicting) -> None:
    found = predicting(measured_cells(), simulated_cells(), 8, 16, 24)
    assert only(found).cores == 16
    assert found.refused == {"MWCL on tmpfs": "was not simulated with 8, 24 cores"}


def test_counts_are_by_default_those_of_the_simulation(tmp_path: Path) -> None:
    run = load(write_measured(tmp_path / "two", measured_cells()))
    more = load(write_simulated(tmp_path / "more", simulated_cells()))
    found = predict(run, more)
    assert ([one.cores for one in found.made], found.refused) == ([16, 80], {})
    same = load(write_simulated(tmp_path / "same", simulated_cells({1: 10.0, 2: 16.0})))
    assert predict(run, same).refused == {
        "MWCL on tmpfs": "was not simulated with more than 2 cores"
    }


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ({"workers_per_cpu": 2}, "was measured with workers_per_cpu=2, which cannot be simulated"),
        ({"placement": "spread"}, "was measured with placement=spread, which cannot be simulated"),
        (
            {"options": {"rate": 1000}},
            "was measured at a rate of arrivals, which cannot be simulated",
        ),
        ({"filesystem": "ext4:8"}, "was measured on partitions, which cannot be simulated"),
    ],
)
def test_what_the_simulator_lacks_is_refused(
    key: dict[str, Any], reason: str, predicting: Predicting, tmp_path: Path
) -> None:
    found = predicting(measured_cells(**key), simulated_cells(), 16)
    assert list(found.refused.values()) == [reason]
    with pytest.raises(FscaleError, match=reason):
        facts.check(load(tmp_path / "two"))


def test_what_a_reader_has_to_know_comes_first(tmp_path: Path) -> None:
    cells = [cell.model_copy(update={"disturbed": "others"}) for cell in measured_cells()]
    slow = measured_cells(filesystem="ext4", medium="disk")
    run = write_measured(
        tmp_path / "two", [*cells, *slow], media={"disk": {"title": "d", "kind": "device"}}
    )
    both = [*simulated_cells(), *simulated_cells(filesystem="ext4", medium="brd")]
    simulation = write_simulated(tmp_path / "sim", both, kernel="6.1.0")
    results, other = load(run), load(simulation)
    text = list(facts.notes(results, other, predict(results, other, (80,)).made))
    assert text[0].startswith("PREDICTED, not measured: ")
    assert text[1] == "measured: Linux 6.12.1; simulated: another kernel, Linux 6.1.0"
    assert "1 curve with a disturbed point: MWCL on tmpfs" in text
    assert "the simulated medium is a RAM disk, and no device: disk" in text
    assert any("by another simulated machine" in note for note in text)
    assert text[-1].startswith("~: ")


def test_commands_name_what_they_measure(tmp_path: Path) -> None:
    cells = measured_cells(filesystem="ext4", medium="ram", options={"files": 7})
    run = load(write_measured(tmp_path / "two", cells))
    curves = starts(run)
    assert facts.simulate(curves, (16, 80), "trixie", "paper") == (
        "fscale simulate --machine paper --kernel trixie --fs ext4 --workload MWCL "
        "--option MWCL.files=7 --cores 1,2,16,80 --output results/simulated"
    )
    simulation = load(
        write_simulated(tmp_path / "sim", simulated_cells(filesystem="ext4", options={"files": 7}))
    )
    assert facts.measure(predict(run, simulation, (16,)).made) == (
        "fscale run quick --fs ext4 --workload MWCL --option MWCL.files=7 --media ram "
        "--cores 1,2 --repetitions 10 --output results/again"
    )


def test_the_values_of_a_sweep_are_one_option(tmp_path: Path) -> None:
    cells = [cell for files in (7, 9) for cell in measured_cells(options={"files": files})]
    command = facts.simulate(
        starts(load(write_measured(tmp_path / "two", cells))), (16,), "sid", "paper"
    )
    assert "--option MWCL.files=7,9 --cores" in command


def test_the_values_of_a_sweep_ascend(tmp_path: Path) -> None:
    cells = [c for n in (16384, 65536, 4096) for c in measured_cells(options={"files": n})]
    listed = starts(load(write_measured(tmp_path / "two", cells)))
    assert [start.key.options["files"] for start in listed] == [4096, 16384, 65536]


def test_curves_of_several_media_are_refused_one_by_one(predicting: Predicting) -> None:
    two = measured_cells(filesystem="ext4", medium="ram")
    one = measured_cells({1: (1.0,)}, filesystem="ext4", medium="disk")
    refused = predicting([*two, *one], simulated_cells()).refused
    assert list(refused) == ["MWCL on ext4 (disk)", "MWCL on ext4 (ram)"]


def test_commands_name_a_file_system_as_it_was_given(tmp_path: Path) -> None:
    cells = measured_cells(filesystem="ext4:mkfs=-b_1024", medium="ram")
    given = "fscale run quick --fs 'xfs,ext4:mkfs=-b {1024,4096}'"
    run = load(write_measured(tmp_path / "two", cells, command=[given]))
    assert "--fs 'ext4:mkfs=-b 1024' --work" in facts.simulate(starts(run), (16,), "sid", "paper")


def test_a_simulation_has_one_mode(tmp_path: Path) -> None:
    cells = [*measured_cells(mode="direct"), *measured_cells(workload="MWCM")]
    command = facts.simulate(
        starts(load(write_measured(tmp_path / "two", cells))), (16,), "sid", "paper"
    )
    assert "--workload MWCL --mode direct --cores" in command


@pytest.mark.parametrize(
    ("key", "rates", "said"),
    [
        ({"side": "A"}, {1: (1.0,), 2: (1.0,)}, "compares two sides"),
        ({}, {2: (1.0,)}, "MWCL on tmpfs was not measured with 1 core; measure one core and more"),
    ],
)
def test_runs_that_cannot_begin_a_prediction_are_refused(
    key: dict[str, Any],
    rates: dict[int, tuple[float, ...]],
    said: str,
    tmp_path: Path,
) -> None:
    run = load(write_measured(tmp_path / "two", measured_cells(rates, **key)))
    with pytest.raises(FscaleError, match=said):
        facts.check(run)


def test_a_simulation_is_simulated_and_a_start_is_not(tmp_path: Path) -> None:
    run = load(write_measured(tmp_path / "two", measured_cells()))
    simulation = load(write_simulated(tmp_path / "sim", simulated_cells()))
    with pytest.raises(FscaleError, match="was measured"):
        facts.check_simulation(run)
    with pytest.raises(FscaleError, match="is simulated"):
        facts.check(simulation)
    facts.check_simulation(simulation)
    facts.check(run)


def test_a_simulation_of_something_else_is_refused(tmp_path: Path) -> None:
    sides = load(write_simulated(tmp_path / "gate", simulated_cells(side="A")))
    with pytest.raises(FscaleError, match="compares two sides"):
        facts.check_simulation(sides)
    free = load(write_simulated(tmp_path / "free", simulated_cells()))
    free.run.suite["free"] = ["rename_lock"]
    with pytest.raises(FscaleError, match="the cost of rename_lock"):
        facts.check_simulation(free)


def test_labels_of_a_security_module_are_said(tmp_path: Path) -> None:
    run = load(write_measured(tmp_path / "two", measured_cells()))
    simulation = load(write_simulated(tmp_path / "sim", simulated_cells()))
    made = predict(run, simulation, (16,)).made
    assert not any(note.startswith("SELinux") for note in facts.notes(run, simulation, made))
    run.run.machine.tuning = Tuning(
        turbo=None, idle_driver=None, idle_governor=None, idle_states={}, numa_balancing=None,
        huge_pages=None, shmem_huge_pages=None,
    )  # fmt: skip
    said = "SELinux or AppArmor labels files in the simulation only"
    assert any(note.startswith(said) for note in facts.notes(run, simulation, made))
    simulation.run.machine.kernel_cmdline = "quiet lsm=none"
    assert not any(note.startswith("SELinux") for note in facts.notes(run, simulation, made))


def test_the_machine_of_the_record_is_the_papers() -> None:
    assert machine.load("paper").title == facts.RECORDED
