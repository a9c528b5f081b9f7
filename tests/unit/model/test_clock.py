# SPDX-License-Identifier: GPL-2.0-only
"""A clock that is set while something runs, or that nobody has set."""

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from fscale.analysis.compare.noise import measure_noise
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.analysis.reader import load
from fscale.analysis.report.headline import seconds
from fscale.commands.options import writable
from fscale.farm import keeper
from fscale.model import runs
from fscale.model.store import Store
from fscale.runner.machine import host
from fscale.vm.debian import recent
from tests.support.synthetic import cell, key, write_run


class SetBack(datetime):
    """A clock that was set to 1970."""

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        """See datetime."""
        return datetime(1970, 1, 1, tzinfo=UTC)


def test_the_times_of_a_process_are_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    before = runs.now()
    monkeypatch.setattr(runs, "datetime", SetBack)
    assert runs.now() >= before


def test_cells_that_began_at_once_are_not_sorted_by_their_rates(tmp_path: Path) -> None:
    rates = [1.0, 2.0, 1.5, 0.5, 3.0, 1.0, 2.5, 2.0, 1.0, 3.0, 2.0, 1.0]
    cells = [
        cell(key(n // 2 + 1, side="AB"[n % 2]), 1e5 * r, started=f"2026-01-01T00:00:{n // 2:02}Z")
        for n, r in enumerate(rates)
    ]
    write_run(tmp_path, cells, filesystems=["ext4"])
    record = {"schema": 1, "base": "ext4", "new": "ext4", "looks": []}
    (tmp_path / "ab.json").write_text(json.dumps(record))
    found = measure_noise(open_sides(tmp_path, None), Settings(), 1, 0.1).points[0]
    logs = np.log(rates)
    expected = np.corrcoef(logs[:-1], logs[1:])[0, 1]
    assert found.neighbour_correlation == pytest.approx(expected)


def test_a_run_that_ends_before_it_began_took_the_time_of_its_cells(tmp_path: Path) -> None:
    write_run(tmp_path, [cell(key(n), 100.0, wall_seconds=1.5) for n in (1, 2)])
    store = Store(tmp_path)
    run = store.load_run()
    assert run
    store.save_run(run.model_copy(update={"finished": "1970-01-01T00:00:00+00:00"}))
    assert seconds(load(tmp_path)) == 3.0


def test_a_name_by_the_time_is_not_that_of_another_run(tmp_path: Path) -> None:
    assert writable.unused(tmp_path / "new") == tmp_path / "new"
    for expected in ("r-2", "r-3"):
        (tmp_path / "r").mkdir(exist_ok=True)
        assert writable.unused(tmp_path / "r").name == expected
        (tmp_path / expected).mkdir()


def test_a_clock_that_nobody_set_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert host.clock_warning() == []
    monkeypatch.setattr(time, "time", lambda: 100.0)
    assert "the clock says 1970-01-01" in host.clock_warning()[0]


@pytest.mark.parametrize(("age", "used"), [(3600, True), (90000, False), (-3600, False)])
def test_a_file_of_the_future_is_not_recent(tmp_path: Path, age: float, used: bool) -> None:
    (tmp_path / "stamp").touch()
    os.utime(tmp_path / "stamp", times=(time.time() - age,) * 2)
    assert recent(tmp_path / "stamp") == used


@pytest.mark.parametrize(
    ("boot", "since", "up", "held"),
    [
        ("this", 5000, 5599, True),
        ("this", 5000, 5601, False),
        ("old", 5000, 599, True),
        ("old", 5000, 601, False),
    ],
)
def test_a_lease_ends_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boot: str, since: float, up: float, held: bool
) -> None:
    monkeypatch.setattr(keeper.paths, "lasting_dir", lambda: tmp_path)
    monkeypatch.setattr(keeper, "_boot", lambda: "this")
    monkeypatch.setattr(keeper, "_up", lambda: up)
    lease = {"owner": "a", "boot": boot, "since": since, "seconds": 600}
    (tmp_path / keeper.LEASE_FILE).write_text(json.dumps(lease))
    with (tmp_path / "lock").open("a+") as lock:
        if held:
            with pytest.raises(SystemExit, match="a boots another kernel"):
                keeper._hold(lock, "b", ())
        else:
            keeper._hold(lock, "b", ())
            assert not (tmp_path / keeper.LEASE_FILE).exists()
