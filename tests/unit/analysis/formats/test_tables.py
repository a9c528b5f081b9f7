# SPDX-License-Identifier: GPL-2.0-only
"""Tables as other programs read them: several runs, all tables, Parquet."""

import csv
import io
import json
import sys
from pathlib import Path

import duckdb
import pandas as pd
import pytest

import fscale
from fscale.analysis.formats.tables import TABLES
from fscale.model.errors import Exit
from tests.support.hostile import run as command
from tests.support.synthetic import cell, grid, key, write_run

CSV = ("--format", "csv")


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """Two that differ in their rates; the first has a control and a profiling repetition."""
    made = []
    for name, factor in (("old", 1.0), ("new", 0.5)):
        cells = [
            c.model_copy(update={"ops_per_second": factor * c.ops_per_second})
            for c in grid((1, 2), 2, ("DRBL",), ("ext4",))
        ]
        if name == "old":
            cells.append(cell(key(1, profile="locks"), 700.0))
            control = {"workload": "control_user", "filesystem": "none", "medium": "none"}
            cells += [cell(key(n, cores=c, **control), 1e6 * c) for n in (1, 2) for c in (1, 2)]
        made.append(write_run(tmp_path / name, cells, workloads=["DRBL"], filesystems=["ext4"]))
    return made


def exported(scratch: Path, *words: object) -> str:
    done = command(scratch, "export", *words)
    assert done.code == 0, done.error
    return done.output


def test_several_runs_are_rows_of_one_table(runs: list[Path], tmp_path: Path) -> None:
    old, new = runs
    text = exported(tmp_path, f"{old}=v1", f"{new}=v2", "--format", "csv", "--table", "points")
    frame = pd.read_csv(io.StringIO(text))
    medians = frame.pivot(index="cores", columns="run", values="median_per_second")
    assert (medians.v2 / medians.v1).tolist() == pytest.approx([0.5, 0.5])
    told = {row["run"] for row in csv.DictReader(io.StringIO(exported(tmp_path, *runs, *CSV)))}
    assert told == {"old", "new"}


def test_profiling_repetitions_are_written_on_request_only(
    runs: list[Path], tmp_path: Path
) -> None:
    cells = list(csv.DictReader(io.StringIO(exported(tmp_path, runs[0], *CSV))))
    assert [row["profile"] for row in cells] == [""] * 4
    asked = exported(tmp_path, runs[0], *CSV, "--table", "profiled")
    (profiled,) = csv.DictReader(io.StringIO(asked))
    assert (profiled["profile"], profiled["counts"]) == ("locks", "False")


def test_a_linear_line_can_be_drawn_of_what_is_written(runs: list[Path], tmp_path: Path) -> None:
    text = exported(tmp_path, runs[0], "--format", "json", "--table", "control")
    data = pd.read_json(io.StringIO(text), orient="table")
    assert data.linear.tolist() == data.speedup.tolist() == [1.0, 2.0]
    fields = {field["name"]: field for field in json.loads(text)["schema"]["fields"]}
    assert fields["median_per_second"]["unit"] == "1/s"
    assert "unit" not in fields["speedup"]


@pytest.mark.parametrize("table", TABLES)
def test_parquet_has_what_the_interface_gives(table: str, runs: list[Path], tmp_path: Path) -> None:
    target = tmp_path / "out.parquet"
    words = ("--format", "parquet", "--table", table, "--output", target)
    exported(tmp_path, *runs, *words)
    read = pd.read_parquet(target)
    frame: pd.DataFrame = getattr(fscale.load(*runs), table)
    pd.testing.assert_frame_equal(read, frame)
    assert read.attrs == frame.attrs
    assert duckdb.sql(f"SELECT count(*) FROM '{target}'").fetchall() == [(len(frame),)]


def test_duckdb_computes_on_parquet(runs: list[Path], tmp_path: Path) -> None:
    target = tmp_path / "out.parquet"
    exported(tmp_path, *runs, "--format", "parquet", "--output", target)
    ask = f"SELECT run, median(ops_per_second) FROM '{target}' WHERE counts GROUP BY run"
    found = dict(duckdb.sql(ask).fetchall())
    assert found["new"] == pytest.approx(found["old"] / 2)


def test_what_tables_take_is_refused_elsewhere(runs: list[Path], tmp_path: Path) -> None:
    def refused(*words: object) -> str:
        done = command(tmp_path, "export", *words)
        assert done.code == Exit.USAGE
        return done.error

    assert "the format junit describes one run" in refused(*runs, "--format", "junit")
    assert "--table: not supported" in refused(runs[0], "--format", "ktap", "--table", "cells")
    assert "--origin" in refused(runs[0], "--format", "parquet", "--origin", "myci")
    assert "is given twice" in refused(runs[0], runs[0], *CSV)


def test_a_missing_library_is_named(
    runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    target = tmp_path / "out.parquet"
    done = command(tmp_path, "export", runs[0], "--format", "parquet", "--output", target)
    assert done.code == Exit.USAGE
    assert "install fscale[parquet]" in done.error
    assert not target.exists()
