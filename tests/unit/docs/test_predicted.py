# SPDX-License-Identifier: GPL-2.0-only
"""What predictors are worth: errors, gains and coverage worked out by hand; the registered file."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from docs.scripts import accuracy, evidence, pack_predicted, predicted
from docs.scripts.evidence import Case
from docs.scripts.predictors import FROM_MORE, FROM_TWO, MEAN, SCALED
from docs.scripts.unpack import unpack
from tests.validation import predicted as validation

CASE = Case(
    ("A", "x"),
    {1: 10.0, 2: 15.0, 4: 20.0, 8: 20.0},
    {1: 1.0, 2: 2.0, 4: 4.0, 8: 8.0, 16: 8.0},
    {1: 10.0, 16: 30.0},
)


def test_predictors_from_two_cores() -> None:
    amdahl = 1 / (1 / 3 + 2 / 3 / 16)
    assert {name: predictor(CASE, 16) for name, predictor in FROM_TWO.items()} == pytest.approx(
        {
            "simulated": 8,
            "Amdahl's law": amdahl,
            MEAN: math.sqrt(8 * amdahl),
            "flat from 2": 1.5,
            SCALED: 1.5 * 8 / 2,
        }
    )
    assert CASE.error(6, 16) == pytest.approx(math.log(2))
    assert CASE.rate_error(15, 16) == pytest.approx(-math.log(2))


def test_predictors_from_more() -> None:
    found = {name: predictor(CASE, 16) for name, predictor in FROM_MORE.items()}
    assert (found["flat from 4"], found["flat from 8"]) == (2, 2)
    assert (found["simulated, scaled to 4"], found["simulated, scaled to 8"]) == (4, 2)


def test_curves_of_a_workload_count_as_one() -> None:
    of = {("A", "x"): 0.1, ("A", "y"): -0.1, ("B", "x"): 0.0}
    over = {("A", "x"): -0.3, ("A", "y"): 0.3, ("B", "x"): 0.4}
    found = accuracy.gain(of, over)
    assert found.mean == pytest.approx(0.3)
    assert found.low < 0.3 < found.high


def test_a_curve_is_not_covered_by_its_own_workload() -> None:
    errors = {(str(n), "x"): 0.1 for n in range(4)}
    assert accuracy.left_out(errors).held == 4
    errors["4", "x"] = errors["4", "y"] = 9.0
    covered = accuracy.left_out(errors)
    assert (covered.curves, covered.held) == (6, 4)
    from_others = accuracy.transferred(errors, {("5", str(n)): 0.1 for n in range(4)})
    assert (from_others.curves, from_others.held, from_others.width) == (6, 4, 0.1)


@pytest.mark.parametrize("cores", [8, 16])
@pytest.mark.parametrize("cases", [evidence.same_machine, evidence.of_another])
def test_intervals_hold_the_curves_of_other_workloads(
    cases: Callable[[], list[Case]], cores: int
) -> None:
    covered = accuracy.left_out(accuracy.errors(cases(), FROM_TWO[SCALED], cores))
    assert 0.75 <= covered.held / covered.curves <= 0.9


def test_misfits_and_errors_are_compared_by_rank() -> None:
    def case(number: int) -> Case:
        measured = {1: 1.0, 2: 2.0 + number}
        return Case((str(number), "x"), measured, CASE.simulated, CASE.truth)

    assert accuracy.doubt(map(case, range(3)), FROM_TWO["flat from 2"], 16) == pytest.approx(-0.5)


def test_the_rule_is_chosen_without_any_workload() -> None:
    assert set(accuracy.chosen(evidence.same_machine(), 16).values()) == {SCALED}
    assert set(accuracy.chosen(evidence.of_another(), 16).values()) == {SCALED}


def test_at_least_forty_curves_are_registered_and_none_was_measured() -> None:
    data = json.loads(validation.REGISTERED.read_text())
    rows = data["predictions"]
    assert len({(row[1], row[2]) for row in rows}) >= 40
    assert min(row[3] for row in rows) > 16
    assert all(low < value < high for _, _, _, _, value, low, high, *_ in rows)


def test_predictions_are_packed_as_they_are_registered() -> None:
    made = pack_predicted.packed("2026-01-02")
    data = json.loads(validation.REGISTERED.read_text())
    assert made.keys() == data.keys()
    assert {len(row) for row in made["predictions"]} == {len(row) for row in data["predictions"]}


def registered() -> dict[str, object]:
    return {
        "others": ["simulated"],
        "predictions": [
            ["run", "A", "x", 32, 4.0, 2.0, 8.0, 6.0, 0],
            ["run", "B", "x", 32, 4.0, 3.0, 5.0, 4.0, 0],
            ["run", "C", "x", 32, 4.0, 3.0, 5.0, 4.0, 0],
        ],
    }


def test_a_measurement_judges_what_was_registered() -> None:
    found = predicted.judged(registered(), {("A", "x", 32): 2.0, ("B", "x", 32): 8.0})
    assert found[SCALED] == pytest.approx([math.log(2), -math.log(2)])
    assert found["simulated"] == pytest.approx([math.log(3), -math.log(2)])
    assert found["held"] == [1, 0]


def test_results_of_a_larger_machine_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = unpack(evidence.DATA / "sixteen-cores.json", tmp_path / "run")
    assert validation.speedups(directory)["DWOM", "tmpfs", 16] == pytest.approx(0.41, abs=0.01)
    assert "no point" in validation.verdict(directory)[0]
    rows = [["run", "DWOM", "tmpfs", 16, 0.4, 0.3, 0.5, 0.6, 0]]
    (tmp_path / "data.json").write_text(json.dumps(registered() | {"predictions": rows}))
    monkeypatch.setattr(validation, "REGISTERED", tmp_path / "data.json")
    assert "1 of 1 intervals hold" in validation.verdict(directory)[-1]
