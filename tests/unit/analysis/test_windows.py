# SPDX-License-Identifier: GPL-2.0-only
"""How long windows were against commits, and what is said of windows that are too short."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fscale.analysis import reader
from fscale.analysis.members import Member
from fscale.analysis.report.section import Report
from fscale.analysis.report.tables import WARNINGS
from fscale.analysis.windows import commit_seconds, windows_of, without_commit
from fscale.model import catalogue
from fscale.model.bench import Window
from fscale.model.paths import SUITES
from fscale.model.results import Cell, Mounted
from tests.support.exports import exported
from tests.support.synthetic import cell, key, sliced, write_run

EXT4 = {"title": "ext4", "commit_seconds": 5, "mount_options": ["noatime"]}


def cut(lengths: Sequence[float], **changes: Any) -> Cell:
    """A cell of MWCL whose windows were so long."""
    made = cell(key(**{"workload": "MWCL", "duration": sum(lengths)} | changes), 1000)
    assert made.bench
    windows = [Window(start_ns=0, seconds=s, ops=[1], end="exhausted") for s in lengths]
    return made.model_copy(update={"bench": made.bench.model_copy(update={"windows": windows})})


def warned(directory: Path, cells: list[Cell], ext4: dict[str, Any] = EXT4) -> list[str]:
    write_run(directory, cells)
    path = directory / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"filesystems": {"ext4": ext4}}))
    return reader.load(directory).run.warnings


@pytest.mark.parametrize(
    ("filesystem", "seconds"),
    [
        (EXT4, 5),
        ({"commit_seconds": 5, "mount_options": ["noatime", "commit=1"]}, 1),
        ({"commit_seconds": 5, "mount_options": ["noatime,commit=60", "discard"]}, 60),
        ({"commit_seconds": 5, "mount_options": ["commit=7,commit=3"]}, 3),
        ({"commit_seconds": 5, "mount_options": ["commit=0", "nocommit=3", "commit=x"]}, 5),
        ({"mount_options": ["commit=9"]}, 9),
        ({"title": "tmpfs"}, None),
        ({"commit_seconds": "5", "mount_options": None}, None),
    ],
)
def test_the_commit_interval(filesystem: dict[str, Any], seconds: float | None) -> None:
    assert commit_seconds(filesystem) == seconds


def test_the_commit_interval_in_effect_comes_first(tmp_path: Path) -> None:
    """As of a directory, whose file system was mounted by somebody else."""
    there = Mounted(fstype="ext4", source="/dev/x", root="/", options=["commit=1", "rw"])
    assert commit_seconds(EXT4, there) == 1
    assert commit_seconds({"existing": True}, there) == 1
    made = [cut([0.1] * 20).model_copy(update={"mount": there})]
    (said,) = warned(tmp_path / "cut", made, {"existing": True})
    assert "commits every 1 s" in said
    short = cut([0.5]).model_copy(update={"mount": there})
    warned(tmp_path / "short", [short], EXT4)
    loaded = reader.load(tmp_path / "short")
    assert without_commit(loaded.run, loaded.cells) == {"ext4": 1}
    rows = csv.DictReader(io.StringIO(exported(loaded, "csv")))
    assert [row["commit_seconds"] for row in rows] == ["1.0"]


def test_windows_that_a_stock_ends_hold_no_commit(tmp_path: Path) -> None:
    (said,) = warned(tmp_path, [cut([0.1] * 50 + [0.3] * 10)])
    assert "ext4 commits every 5 s" in said
    assert "MWCL" in said
    assert "0.3 s" in said
    assert "0.1 s" in said
    shown = WARNINGS.build(Report((Member(reader.load(tmp_path)),), tmp_path))
    assert said in (shown or "")


@pytest.mark.parametrize(
    ("made", "ext4"),
    [
        (cut([5.5, 0.5]), EXT4),  # one window is long enough
        (cut([0.1] * 40), EXT4),  # it was not to last for so long
        (cut([0.1] * 60), EXT4 | {"mount_options": ["commit=10"]}),
        (cut([0.1] * 60), {"title": "an older run"}),
        (cut([0.1] * 60, filesystem="tmpfs"), EXT4),
        (cut([0.1] * 60, filesystem="unknown"), EXT4),
        (sliced(key(workload="MWCL", duration=60), [1000.0] * 6), EXT4),
    ],
)
def test_nothing_is_said_of_other_windows(made: Cell, ext4: dict[str, Any], tmp_path: Path) -> None:
    assert warned(tmp_path, [made], ext4) == []


def test_a_profiled_cell_is_not_counted(tmp_path: Path) -> None:
    assert warned(tmp_path, [cut([0.1] * 60, profile="cpu"), cut([6.0])]) == []


def test_exports_say_how_long_windows_were(tmp_path: Path) -> None:
    failed = cell(key(2), 1).model_copy(update={"status": "error", "bench": None})
    warned(tmp_path, [cut([0.1, 0.3]), failed])
    text = exported(reader.load(tmp_path), "csv")
    rows = {row["status"]: row for row in csv.DictReader(io.StringIO(text))}
    assert rows["ok"]["longest_window_seconds"] == "0.3"
    assert rows["ok"]["commit_seconds"] == "5.0"
    assert rows["error"]["longest_window_seconds"] == ""
    assert windows_of(failed) is None


def test_latencies_of_a_part_are_said(tmp_path: Path) -> None:
    dropped = {"count": 10, "dropped": 90, "quantiles": {"50": 1000}}
    (said,) = warned(tmp_path, [cell(key(), 1000, latency=dropped)])
    assert "DRBL" in said
    assert "10%" in said


def waiting(backlog: int | None) -> Cell:
    made = cell(key(options={"rate": 2000}), 1000)
    assert made.bench
    return made.model_copy(update={"bench": made.bench.model_copy(update={"backlog": backlog})})


def test_a_load_that_is_not_served_is_said(tmp_path: Path) -> None:
    ops = int(waiting(0).ops)
    (said,) = warned(tmp_path / "a", [waiting(ops)])
    assert said.startswith("DRBL rate=2000 on ext4: the load exceeded what the file system serves")
    assert "50%" in said
    rows = csv.DictReader(io.StringIO(exported(reader.load(tmp_path / "a"), "csv")))
    assert [row["backlog"] for row in rows] == [str(ops)]
    for few in (None, 0, 10, ops // 100):
        assert warned(tmp_path / f"{few}", [waiting(few)]) == []


def test_file_systems_with_a_journal_say_when_they_commit() -> None:
    for name in ("ext4", "xfs", "btrfs", "f2fs", "f2fs_lfs"):
        described = catalogue.load_filesystem(name).model_dump()
        assert commit_seconds(described) in (5, 30, 60)


def test_the_suite_scaling_is_as_long_as_a_commit_where_it_can_be() -> None:
    suite = catalogue.load_suite(SUITES / "scaling.toml")
    every = [commit_seconds(catalogue.load_filesystem(n).model_dump()) for n in suite.filesystems]
    assert suite.duration >= max(seconds for seconds in every if seconds)
    assert all(suite.options[w]["keep"] for w in ("DWAL", "MWCL", "MWUL"))
