# SPDX-License-Identifier: GPL-2.0-only
"""`fscale predict`: its table, its files and what it refuses."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from fscale.cli import app
from fscale.model.errors import FscaleError
from tests.support.predicted import (
    measured_cells,
    simulated_cells,
    write_measured,
    write_simulated,
)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    return write_measured(tmp_path / "two", measured_cells())


@pytest.fixture
def simulation(tmp_path: Path) -> Path:
    return write_simulated(tmp_path / "sim", simulated_cells(), kernel="6.1.0")


def predict(*words: object) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["predict", *map(str, words)])


def refused(*words: object) -> str:
    done = predict(*words)
    assert isinstance(done.exception, FscaleError), done.output
    return str(done.exception)


def test_a_table_says_that_nothing_in_it_was_measured(two: Path, simulation: Path) -> None:
    done = predict(two, "--simulated", simulation, "--cores", "16,80")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("PREDICTED, not measured: ")
    assert "another kernel" in " ".join(done.stdout.split())
    row = next(line for line in lines if line.startswith("MWCL on tmpfs"))
    assert row.split()[3:5] == ["16", "6"]
    assert "~" in next(line for line in lines if line.split()[3:4] == ["80"])


def test_json_and_csv_have_a_row_for_each_prediction(
    two: Path, simulation: Path, tmp_path: Path
) -> None:
    words = [two, "--simulated", simulation, "--cores", "16,80"]
    data = json.loads(predict(*words, "--json").stdout)
    assert [row["speedup"] for row in data["data"]] == [6, 3]
    fields = {field["name"]: field for field in data["schema"]["fields"]}
    assert fields.keys() == data["data"][0].keys()
    assert all(field["description"] for field in fields.values())
    assert predict(*words, "--output", tmp_path / "p.csv").stdout == ""
    with (tmp_path / "p.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["cores"], row["verdict"]) for row in rows] == [
        ("16", "predicted"),
        ("80", "predicted"),
    ]
    predict(*words, "--json", "--output", tmp_path / "p.json")
    assert json.loads((tmp_path / "p.json").read_text()) == data


def test_media_and_modes_are_named_if_there_are_several(tmp_path: Path) -> None:
    cells = [*measured_cells(), *measured_cells(filesystem="ext4", medium="ram")]
    run = write_measured(tmp_path / "two", cells)
    ext4 = simulated_cells(filesystem="ext4")
    simulation = write_simulated(
        tmp_path / "sim", [*simulated_cells(), *ext4, *simulated_cells(mode="direct")]
    )
    words = ["--simulated", simulation, "--cores", "16"]
    plain = predict(run, *words).stdout
    assert "MWCL on ext4  " in plain
    cells += measured_cells(filesystem="ext4", medium="brd")
    media = predict(write_measured(tmp_path / "media", cells), *words).stdout
    assert all(f"MWCL on {name}  " in media for name in ("ext4 (ram)", "ext4 (brd)", "tmpfs"))
    cells += measured_cells(mode="direct")
    modes = predict(write_measured(tmp_path / "modes", cells), *words).stdout
    assert all(f"MWCL on {name}  " in modes for name in ("ext4 (ram, buffered)", "tmpfs (direct)"))


def test_where_both_disagree_it_cannot_tell(tmp_path: Path, simulation: Path) -> None:
    run = write_measured(tmp_path / "wild", measured_cells({1: (100.0,), 2: (40.0,)}))
    done = predict(run, "--simulated", simulation, "--cores", "16")
    assert "cannot tell" in done.stdout
    assert "at 2 cores measured 0.40, simulated 1.60" in done.stdout
    again = next(line for line in done.stdout.splitlines() if line.startswith("fscale run"))
    assert "--workload MWCL" in again
    (row,) = json.loads(predict(run, "--simulated", simulation, "--cores", "16", "--json").stdout)[
        "data"
    ]
    assert (row["verdict"], row["speedup"], row["per_second"]) == ("cannot tell", None, None)
    assert row["limited_by"] == "one repetition at 1 core"


def test_the_command_that_simulates_is_told(two: Path, simulation: Path) -> None:
    command = (
        "fscale simulate --machine paper --kernel trixie --fs tmpfs --workload MWCL "
        "--cores 1,2,16,80 --output results/simulated"
    )
    assert predict(two, "--cores", "16,80", "--dry-run").stdout.strip() == command
    assert command in refused(two, "--cores", "16,80")
    larger = refused(two, "--simulated", simulation, "--cores", "100")
    assert "--machine server" in larger
    assert "128" in refused(two, "--cores", "200", "--dry-run")


def test_cores_are_those_of_the_simulation_unless_given(two: Path, simulation: Path) -> None:
    data = json.loads(predict(two, "--simulated", simulation, "--json").stdout)["data"]
    assert [row["cores"] for row in data] == [16, 80]
    assert "measured up to 2" in refused(two, "--simulated", simulation, "--cores", "2,16")


def test_applications_are_not_simulated(tmp_path: Path, simulation: Path) -> None:
    run = write_measured(tmp_path / "apps", measured_cells(workload="exim"))
    assert "no workload of" in refused(run, "--simulated", simulation)
    both = [*measured_cells(), *measured_cells(workload="exim")]
    done = predict(write_measured(tmp_path / "both", both), "--simulated", simulation)
    assert "is not in the simulation: exim on tmpfs" in done.stderr


def test_other_directories_are_refused(two: Path, simulation: Path, tmp_path: Path) -> None:
    assert "not a results directory" in refused(tmp_path, "--simulated", simulation)
    assert "was measured" in refused(two, "--simulated", two)
    assert "is simulated" in refused(simulation)
    assert "no workload DRBL" in refused(two, "--workload", "DRBL")
