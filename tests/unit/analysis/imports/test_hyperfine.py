# SPDX-License-Identifier: GPL-2.0-only
"""hyperfine's JSON: real files of hyperfine 1.15 and 1.19, and changed ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from fscale.analysis.imports.run import Imported, Stated
from fscale.model.errors import FscaleError
from tests.support.imports import FILES, read

SLEEPS = FILES / "hyperfine-sleeps.json"


def imported(path: Path) -> Imported:
    return read("hyperfine", [path], Stated("2026-11-29"))


def changed(directory: Path, **changes: Any) -> Path:
    """A file with one result, with other values."""
    (one, _) = json.loads(SLEEPS.read_text())["results"]
    path = directory / "changed.json"
    kept = {name: value for name, value in (one | changes).items() if value is not None}
    path.write_text(json.dumps({"results": [kept]}))
    return path


def test_each_run_is_a_repetition() -> None:
    run = imported(SLEEPS)
    for workload, result in zip(
        ("sleep_0.05", "sleep_0.1"), json.loads(SLEEPS.read_text())["results"], strict=True
    ):
        cells = [cell for cell in run.cells if cell.key.workload == workload]
        assert [cell.key.repetition for cell in cells] == list(range(1, 9))
        assert [cell.ops_per_second for cell in cells] == [1 / t for t in result["times"]]
        assert {(cell.unit, cell.ops, cell.key.cores) for cell in cells} == {("runs", 1, 1)}
    assert run.run.loads["sleep_0.05"] == ["command=sleep 0.05"]
    assert not any("no spread" in note for note in run.notes)


@pytest.mark.parametrize(
    ("file", "workload"),
    [("threads", "sort-_threads"), ("1.19-jobs", "sleep_0.0_jobs")],
)
def test_scanned_threads_are_a_curve(file: str, workload: str) -> None:
    cells = imported(FILES / f"hyperfine-{file}.json").cells
    assert {(c.key.workload, c.key.cores) for c in cells} == {(workload, 1), (workload, 2)}
    assert {tuple(c.key.options) for c in cells} == {()}


def test_other_parameters_are_options() -> None:
    run = imported(FILES / "hyperfine-sizes.json")
    assert {(c.key.workload, c.key.options["size"]) for c in run.cells} == {
        ("head_-c_size_dev_zero", "1K"), ("head_-c_size_dev_zero", "64K"),
    }  # fmt: skip
    assert run.run.loads == {"head_-c_size_dev_zero": ["command=head -c {size} /dev/zero"]}


def test_runs_that_failed_are_errors() -> None:
    cells = imported(FILES / "hyperfine-ignored.json").cells
    assert {(c.status, c.reason) for c in cells} == {
        ("error", "the command ended with exit code 1")
    }


def test_a_run_that_took_no_time_has_no_rate(tmp_path: Path) -> None:
    """hyperfine subtracts the time of the shell: one of its own files has a time of 0."""
    times = json.loads((FILES / "hyperfine-ignored.json").read_text())["results"][0]["times"]
    assert 0.0 in times
    cells = imported(changed(tmp_path, times=times, exit_codes=[0] * 4)).cells
    assert [cell.status for cell in cells] == ["ok", "invalid", "ok", "ok"]


def test_a_mean_alone_has_no_spread(tmp_path: Path) -> None:
    run = imported(changed(tmp_path, times=None))
    (cell,) = run.cells
    assert cell.ops_per_second == pytest.approx(1 / 0.052986643875)
    assert "sleep 0.05: the mean only, without the runs" in run.notes
    assert any("no spread" in note for note in run.notes)
    (failed,) = imported(changed(tmp_path, times=None, exit_codes=[0, None])).cells
    assert failed.reason == "the command was killed by a signal"


def test_commands_with_one_short_name_are_two_points(tmp_path: Path) -> None:
    """A name has at most 60 characters, because it is a part of a file's name."""
    both = json.loads(SLEEPS.read_text())
    for number, result in enumerate(both["results"]):
        result["command"] = f"{'x' * 300} {number}"
    path = tmp_path / "long.json"
    path.write_text(json.dumps(both))
    cells = imported(path).cells
    assert {c.key.workload for c in cells} == {"x" * 60}
    assert len({c.key.point for c in cells}) == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"times": [0.1, -0.1], "exit_codes": [0, 0]}, "run 2 of sleep 0.05 took -0.1 seconds"),
        ({"times": [0.1]}, "has 1 times, but 8 exit codes"),
        ({"mean": None}, r"results\.0\.mean: Field required"),
        ({"mean": -1}, r"results\.0\.mean: .*greater than"),
        ({"times": ["fast"]}, r"results\.0\.times\.0"),
        ({"command": None}, r"results\.0\.command: Field required"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(FscaleError, match=said) as raised:
        imported(changed(tmp_path, **changes))
    assert "changed.json" in str(raised.value)
