# SPDX-License-Identifier: GPL-2.0-only
"""The index of runs: filled, rebuilt, tagged, and searched for steps."""

import contextlib
import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fscale.analysis.history import index
from fscale.analysis.history.trend import TrendValue, steps
from fscale.cli import app
from fscale.model.errors import FscaleError
from tests.support.synthetic import grid, machine, write_run

RATE = 100_000.0


def run(root: Path, number: int, rate: float) -> Path:
    cells = grid([1], 3, ["MWCL"], ["ext4"], rate=lambda key: rate + key.repetition)
    return write_run(
        root / f"run-{number:02}",
        cells,
        id=f"run-{number:02}",
        started=f"2026-01-{number + 1:02}T00:00:00Z",
    )


def fscale(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


OWN_TABLES = "".join(f"; CREATE TABLE {name} (id)" for name in ("run", "point", "tag"))


@pytest.mark.parametrize(
    "table",
    ["CREATE TABLE alembic_version (version_num)" + OWN_TABLES, "PRAGMA user_version = 9999"],
)
def test_an_index_of_another_version_is_made_anew(tmp_path: Path, table: str) -> None:
    db = tmp_path / "h.sqlite"
    with contextlib.closing(sqlite3.connect(db)) as other, other:
        other.executescript(table)
    run(tmp_path / "results", 0, RATE)
    with pytest.raises(FscaleError, match=rf"not {index.VERSION}.*`fscale history rebuild`"):
        fscale("history", "list", "--db", db)
    fscale("history", "rebuild", tmp_path / "results", "--db", db)
    assert len(json.loads(fscale("history", "list", "--json", "--db", db))["runs"]) == 1


def test_rebuilt_from_the_results_it_is_as_before(tmp_path: Path) -> None:
    db, results = tmp_path / "h.sqlite", tmp_path / "results"
    runs = [run(results, n, RATE) for n in range(3)]
    fscale("history", "add", *runs, "--db", db)
    fscale("history", "tag", runs[1], "good", "--db", db)
    fscale("history", "tag", "run-02", "latest", "--db", db)
    before = json.loads(fscale("history", "list", "--json", "--db", db))
    db.unlink()
    fscale("history", "rebuild", results, "--db", db)
    after = json.loads(fscale("history", "list", "--json", "--db", db))
    assert after == before
    assert [r["tags"] for r in after["runs"]] == [[], ["good"], ["latest"]]
    assert after["runs"][0]["values"] == 2


def test_a_tag_moves(tmp_path: Path) -> None:
    db = tmp_path / "h.sqlite"
    runs = [run(tmp_path, n, RATE) for n in range(2)]
    for one in runs:
        fscale("history", "tag", one, "good", "--db", db)
    listed = json.loads(fscale("history", "list", "--json", "--db", db))["runs"]
    assert [r["tags"] for r in listed] == [[], ["good"]]
    assert index.read_tags(runs[0]) == []


def test_indexing_again_replaces(tmp_path: Path) -> None:
    db = tmp_path / "h.sqlite"
    for rate in (RATE, 2 * RATE):
        fscale("history", "add", run(tmp_path, 0, rate), "--db", db)
    with sqlite3.connect(db) as connection:
        rows = connection.execute("select median from point where metric='throughput'").fetchall()
    assert rows == [(2 * RATE + 2,)]


def test_a_file_that_is_no_index_is_never_replaced(tmp_path: Path) -> None:
    run(tmp_path / "results", 0, RATE)
    notes, others = tmp_path / "notes.txt", tmp_path / "places.sqlite"
    notes.write_bytes(b"not a database, but long enough to be taken for one" * 100)
    with contextlib.closing(sqlite3.connect(others)) as connection:
        connection.execute("CREATE TABLE bookmark (url TEXT)")
    for db in (notes, others):
        before = db.read_bytes()
        with pytest.raises(FscaleError), index.opened(db):
            pass
        with pytest.raises(FscaleError) as caught:
            fscale("history", "rebuild", tmp_path / "results", "--db", db)
        assert caught.value.code == 2
        assert db.read_bytes() == before


def test_an_index_that_is_empty_old_or_damaged_is_made_anew(tmp_path: Path) -> None:
    run(tmp_path / "results", 0, RATE)
    empty, old, damaged = tmp_path / "empty", tmp_path / "old", tmp_path / "damaged"
    empty.touch()
    fscale("history", "rebuild", tmp_path / "results", "--db", old)
    damaged.write_bytes(old.read_bytes()[:16] + b"\xff" * 8192)
    with contextlib.closing(sqlite3.connect(old)) as connection:
        connection.execute("PRAGMA user_version = 1")
    for db in (empty, old, damaged):
        assert "1 runs" in fscale("history", "rebuild", tmp_path / "results", "--db", db)


def test_rebuild_names_what_it_leaves_out(tmp_path: Path) -> None:
    run(tmp_path, 0, RATE)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{}")
    with index.opened(tmp_path / "h.sqlite") as session:
        rows, problems = index.rebuild(session, [tmp_path], {})
    assert len(rows) == 1
    assert len(problems) == 1
    assert "broken" in problems[0]


def value(number: int, median: float) -> TrendValue:
    return TrendValue(
        "", f"run-{number}", str(number), None, "6.1", "", median, median, median, 3, 0
    )


def values(levels: list[float], noise: float, seed: int) -> list[TrendValue]:
    rng = np.random.default_rng(seed)
    return [value(i, level * float(np.exp(rng.normal(0, noise)))) for i, level in enumerate(levels)]


def test_a_step_is_found_where_it_is() -> None:
    found = steps(values([100.0] * 10 + [85.0] * 8, 0.01, 1), 0.05)
    assert [s.first.run for s in found] == ["run-10"]
    assert found[0].ratio == pytest.approx(0.85, rel=0.02)


def test_noise_makes_no_step() -> None:
    assert sum(len(steps(values([100.0] * 20, 0.03, s), 0.05)) for s in range(50)) <= 1


def test_few_runs_make_no_step() -> None:
    assert steps(values([100.0, 100, 50, 50, 50], 0.001, 1), 0.05) == []


@pytest.mark.slow
def test_trend_shows_the_step(tmp_path: Path) -> None:
    db = tmp_path / "h.sqlite"
    rng = np.random.default_rng(2)
    for n in range(12):
        level = RATE if n < 7 else 0.8 * RATE
        fscale("history", "add", run(tmp_path, n, level * rng.normal(1, 0.01)), "--db", db)
    for option in ("--workload", "--fs"):  # an empty variable of a script names no point
        assert "no such point" in fscale("history", "trend", option, "", "--db", db)
    (trend,) = json.loads(fscale("history", "trend", "--workload", "MWCL", "--json", "--db", db))[
        "trends"
    ]
    assert [s["first"]["run"] for s in trend["steps"]] == ["run-07"]
    assert "at run-07" in fscale("history", "trend", "--fs", "ext4", "--db", db)


def test_what_was_measured_otherwise_is_another_trend(tmp_path: Path) -> None:
    db = tmp_path / "h.sqlite"
    here = machine(2)
    guests = [
        here.model_copy(update={"guest": {"accelerator": kind, "host": "h", "label": ""}})
        for kind in ("kvm", "tcg", "tcg-icount", "simulated")
    ]
    elsewhere = [
        here.model_copy(update={"hostname": "another"}),
        here.model_copy(update={"cpu_model": "another CPU"}),
    ]
    changes = [
        *({"machine": m} for m in (here, *guests, *elsewhere)),
        {"suite": {"warmup": 0.1}},
        {"suite": {"warmup": 1.0}},
        {"media": {"ram": {"kind": "brd"}}},
    ]
    for number, change in enumerate(changes):
        cells = grid([1], 1, ["MWCL"], ["ext4"])
        fscale("history", "add", write_run(tmp_path / str(number), cells, **change), "--db", db)
    found = json.loads(fscale("history", "trend", "--json", "--db", db))["trends"]
    assert [len(trend["values"]) for trend in found] == [1] * len(changes)
    assert len({trend["subject"] for trend in found}) == len(changes)
