# SPDX-License-Identifier: GPL-2.0-only
"""The index of runs: filled, rebuilt, tagged, and searched for steps."""

import contextlib
import json
import re
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


def subjects(tmp_path: Path, *changes: dict[str, object]) -> list[str]:
    """How the trends of runs that differ so are named, without what all names begin with."""
    db = tmp_path / "h.sqlite"
    for number, change in enumerate(changes):
        one = write_run(tmp_path / str(number), grid([1], 1, ["MWCL"], ["ext4"]))
        recorded = one / "run.json"
        recorded.write_text(json.dumps(json.loads(recorded.read_text()) | change))
        fscale("history", "add", one, "--db", db)
    found = json.loads(fscale("history", "trend", "--json", "--db", db))["trends"]
    begin = "MWCL ext4 ram buffered 1c 1s on synthetic-test-host (2 x made-up CPU)"
    assert all(trend["subject"].startswith(begin) for trend in found)
    assert [trend["subject"] for trend in found] == [
        ", ".join(filter(None, (begin, trend["differs"]))) for trend in found
    ]
    return [trend["differs"] for trend in found]


def mounted(*options: str, **more: object) -> dict[str, object]:
    described = {"title": "ext4", "kernel": "ext4", "mount_options": list(options), **more}
    return {"filesystems": {"ext4": described}}


def test_series_that_look_alike_are_named_by_what_differs(tmp_path: Path) -> None:
    assert subjects(tmp_path / "one", mounted()) == [""]
    assert subjects(tmp_path / "mount", mounted("noatime"), mounted("noatime", "data=journal")) == [
        "mount_options=none", "mount_options=data=journal",
    ]  # fmt: skip
    mkfs = [mounted(mkfs=["mkfs.ext4", *words, "{device}"]) for words in ([], ["-I", "512"])]
    assert subjects(tmp_path / "mkfs", *mkfs) == ["mkfs=none", "mkfs=-I 512"]
    devices = [
        {"media": {"ram": {"kind": "device", "path": f"/dev/{name}"}}} for name in ("sda", "sdb")
    ]
    assert subjects(tmp_path / "device", *devices) == [
        "medium path=/dev/sda", "medium path=/dev/sdb",
    ]  # fmt: skip
    suites = [{"suite": suite} for suite in ({}, {"warmup": 5}, {"warmup": 5, "latency": True})]
    assert subjects(tmp_path / "suite", *suites) == [
        "latency=none, warmup=none", "latency=none, warmup=5", "latency=true, warmup=5",
    ]  # fmt: skip


def test_what_no_text_tells_apart_has_its_digest(tmp_path: Path) -> None:
    long = [mounted(settings={"x" * 99: value}) for value in (1, 2)]
    first, second = subjects(tmp_path, *long)
    assert first != second
    assert re.fullmatch(r"settings=.{59}\u2026, definition [0-9a-f]{8}", first)
