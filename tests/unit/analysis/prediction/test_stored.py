# SPDX-License-Identifier: GPL-2.0-only
"""Predictions beside a run: how they are drawn, when they are left out, what they never change."""

import csv
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner, Result

from fscale.analysis import plots
from fscale.analysis.members import Member
from fscale.analysis.prediction.stored import read
from fscale.analysis.reader import load
from fscale.analysis.report import interactive
from fscale.analysis.report.section import Report
from fscale.cli import app
from fscale.commands import schema
from tests.support import synthetic
from tests.support.predicted import (
    measured_cells,
    predict_in,
    simulated_cells,
    write_measured,
    write_simulated,
)

EXT4 = {"filesystem": "ext4", "medium": "ram"}
NEAR = [1 + n / 1000 for n in range(-4, 5)]
"""repetitions around a rate, as many as a verdict needs"""


def run_in(directory: Path, factor: float = 1) -> Path:
    """Two curves; simulation and measurement disagree about ext4."""

    def near(one: float, two: float) -> dict[int, tuple[float, ...]]:
        return {n: tuple(factor * rate * x for x in NEAR) for n, rate in ((1, one), (2, two))}

    cells = measured_cells(near(100, 150)) + measured_cells(near(100, 40), **EXT4)
    return write_measured(directory, cells, workloads=["MWCL"], filesystems=["tmpfs", "ext4"])


@pytest.fixture
def simulation(tmp_path: Path) -> Path:
    return write_simulated(tmp_path / "sim", simulated_cells() + simulated_cells(**EXT4))


@pytest.fixture
def two(tmp_path: Path, simulation: Path) -> Path:
    run = run_in(tmp_path / "two")
    predict_in(run, simulation)
    return run


def said(*words: object, columns: int = 120) -> Result:
    shown = CliRunner(env={"COLUMNS": str(columns), "LC_ALL": "C.UTF-8"})
    done = shown.invoke(app, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def report(run: Path) -> Report:
    return Report((Member(load(run)),), run)


def test_the_command_writes_the_file_of_the_schema(tmp_path: Path, simulation: Path) -> None:
    run = run_in(tmp_path / "run")
    said("predict", run, "--simulated", simulation, "--cores", "16")
    file = json.loads((run / "predictions.json").read_text())
    jsonschema.validate(file, json.loads(schema.text("predictions")))
    assert [one["key"]["cores"] for one in file["points"]] == [16, 16]
    assert file["points"][0]["rate"]["value"] == 150 * 64 / 16
    assert file["points"][1]["rate"] is None
    (run / "predictions.json").unlink()
    (run / "predictions.json").mkdir()
    done = said("predict", run, "--simulated", simulation)
    assert "not kept" in done.stderr and "cannot tell" in done.stdout


def test_a_curve_goes_on_from_the_point_that_it_meets(two: Path) -> None:
    made = report(two)
    (panel,) = made.pages[-1].panels
    assert (panel.cores, panel.drawn) == ([1, 2], [1, 2, 16, 80])
    tmpfs, ext4 = panel.curves
    assert [(count, of.value) for count, of in tmpfs.beyond] == [(2, 150), (16, 600), (80, 300)]
    assert (tmpfs.top.key.cores, ext4.beyond) == (2, ())
    ax = Figure().add_subplot()
    plots.draw_curves(ax, panel, made.lines)
    drawn = {str(line.get_gid()): list(line.get_xdata()) for line in ax.lines}
    assert drawn["predicted-0"] == [2, 16, 80]
    assert "predicted-1" not in drawn
    assert ax.get_ylim()[1] > tmpfs.beyond[1][1].high / 1000  # k ops/s
    assert plots.BEYOND in plots.legend(made.pages[-1], made.lines)[1]
    (data,) = interactive.data(made)["panels"]
    assert data["cores"] == [1, 2]
    points = data["curves"][0]["predicted"]["points"]
    assert [(one["cores"], one["rate"][0], one["judged"]) for one in points] == [
        (16, 600, True),
        (80, 300, False),
    ]
    assert "predicted" not in data["curves"][1]


@pytest.mark.slow
def test_what_cannot_be_told_is_words(two: Path) -> None:
    why = "cannot tell ext4 at 16, 80 cores (speed-up at 2 cores measured 0.40, simulated 1.60)"
    page = (Path(said("report", two, "--no-plots").stdout.strip())).read_text()
    assert why in page
    assert "PREDICTED, not measured" in page
    shown = said("show", two, columns=200).stdout
    assert why in shown
    (row,) = (line for line in shown.splitlines() if line.startswith("16 "))
    assert row.split()[1:] == ["(600,", "347", "to", "1.04", "k)", "·"]


def test_the_table_has_them_and_says_so(two: Path, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    said("export", two, "--format", "csv", "--table", "predictions", "--output", table)
    with table.open() as file:
        rows = [(row["filesystem"], row["cores"], row["verdict"]) for row in csv.DictReader(file)]
    assert rows == [
        ("tmpfs", "16", "predicted"),
        ("tmpfs", "80", "predicted"),
        ("ext4", "16", "cannot tell"),
        ("ext4", "80", "cannot tell"),
    ]


@pytest.mark.slow
def test_nothing_takes_them_for_measured(two: Path, simulation: Path, tmp_path: Path) -> None:
    faster = run_in(tmp_path / "faster", 3)
    predict_in(faster, simulation)

    def everything() -> list[object]:
        outputs: list[object] = []
        for form in ("--json", "--markdown=-", f"--html={tmp_path}/page"):
            outputs.append(said("compare", two, faster, form, "--db", tmp_path / "db").stdout)
        outputs.append((tmp_path / "page").read_text())
        for name in ("cells", "points", "sweeps", "control", "latency"):
            outputs.append(said("export", two, "--format", "csv", "--table", name).stdout)
        said("report", f"{two}=1", f"{faster}=2", "--output", tmp_path / "both", "--no-plots")
        outputs.append((tmp_path / "both" / "figures.json").read_text())
        page = (tmp_path / "both" / "report.html").read_text()
        outputs.append(page[page.index('id="side-by-side"') : page.index('id="curves"')])
        return outputs

    with_them = everything()
    for run in (two, faster):
        (run / "predictions.json").unlink()
    assert everything() == with_them


def test_a_curve_that_was_measured_again_has_none(two: Path) -> None:
    again = synthetic.cell(
        synthetic.key(10, workload="MWCL", cores=2, filesystem="tmpfs", medium="none"), 150
    )
    (two / "cells" / f"{again.id}.json").write_text(again.model_dump_json(by_alias=True))
    kept = read(load(two))
    assert {one.key.filesystem for one in kept.points} == {"ext4"}
    assert kept.remark.endswith(": 2 predictions from other cells than the run has now")
    done = said("export", two, "--format", "csv", "--table", "predictions")
    assert f"note: {kept.remark}" in done.stderr


def first(file: dict[str, Any], **changes: Any) -> None:
    file["points"][0] |= changes


def rate(file: dict[str, Any], **changes: Any) -> None:
    file["points"][0]["rate"] |= changes


BAD: dict[str, Callable[[dict[str, Any]], object]] = {
    "NaN": lambda file: rate(file, value=float("nan"), low=float("nan")),
    "infinite": lambda file: rate(file, high=float("inf")),
    "huge": lambda file: rate(file, high=1e300),
    "zero": lambda file: rate(file, low=0),
    "upside down": lambda file: rate(file, low=700),
    "text": lambda file: rate(file, value="fast"),
    "half": lambda file: first(file, speedup=None),
    "escape": lambda file: first(file, limited_by="\x1b[2J"),
    "unknown": lambda file: file.update({"\x1b[2J": 1}),
    "side": lambda file: file["points"][0]["key"].update(side="A"),
    "cores": lambda file: file["points"][0]["key"].update(cores=1 << 40),
    "another run": lambda file: file.update(run="other"),
    "another kernel": lambda file: file.update(kernel="6.99"),
    "newer": lambda file: file.update(schema=2),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_not_good_is_one_remark(two: Path, name: str) -> None:
    path = two / "predictions.json"
    file = json.loads(path.read_text())
    BAD[name](file)
    path.write_text(json.dumps(file))
    kept = read(load(two))
    assert kept.points == ()
    (remark,) = kept.sentences
    assert f"{path} is left out" in remark
    assert remark.isprintable()


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[" * 100_000, b"\xff\xfe", b'{"points": "' + b"x" * (17 << 20)]
)
def test_so_is_a_damaged_one(two: Path, content: bytes) -> None:
    (two / "predictions.json").write_bytes(content)
    (remark,) = read(load(two)).sentences
    assert "predictions.json is left out" in remark and remark.isprintable()


def test_no_link_or_pipe_is_read(two: Path, tmp_path: Path) -> None:
    path = two / "predictions.json"
    shutil.move(path, tmp_path / "away")
    path.symlink_to(tmp_path / "away")
    assert "it is a link" in read(load(two)).remark
    path.unlink()
    os.mkfifo(path)
    assert "not a regular file" in read(load(two)).remark


def test_no_measured_point_is_predicted(two: Path) -> None:
    path = two / "predictions.json"
    file = json.loads(path.read_text())
    file["points"][0]["key"]["cores"] = 2
    file["points"][1]["anchor_cores"] = 7
    path.write_text(json.dumps(file))
    kept = read(load(two))
    assert {one.key.filesystem for one in kept.points} == {"ext4"}
    assert kept.remark
