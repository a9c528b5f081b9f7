# SPDX-License-Identifier: GPL-2.0-only
"""How long a run will take, said before it starts."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from fscale.analysis.summary import QUARTILES_FROM
from fscale.model import paths
from fscale.model.catalogue import load_suite
from fscale.model.results import CellKey
from fscale.runner.progress import FRESH, estimate_seconds, format_estimate, summary, tally
from tests.support import synthetic
from tests.support.runner import fake_bench, fscale, suite

COMMIT = 30  # seconds, of btrfs (fs/btrfs/fs.h) and of dirty pages (mm/page-writeback.c)


def keys(count: int, duration: float) -> list[CellKey]:
    return [synthetic.key(number, duration=duration) for number in range(1, count + 1)]


def test_a_cell_is_its_warm_up_its_window_and_a_fresh_file_system() -> None:
    assert estimate_seconds(keys(10, 30), 5) == pytest.approx(10 * (30 + 5 + FRESH))
    assert format_estimate(keys(304, 0.5), 0.1).startswith("304 cells to measure: about 7:0")


def test_the_last_table_has_a_row_for_each_value_of_a_sweep() -> None:
    rates = {512: 1.0, 4096: 3.0, 16384: 5.0}
    cells = [
        synthetic.bare_cell(synthetic.key(r, options={"block": block}), rate * r)
        for block, rate in reversed(rates.items())
        for r in (1, 2, 3)
    ]
    console = Console(width=200, file=io.StringIO(), record=True)
    console.print(summary(cells))
    lines = console.export_text().splitlines()
    rows = [line.split() for line in lines if line.startswith("DRBL")]
    assert rows == [["DRBL", f"block={block}", f"{2 * rate:g}"] for block, rate in rates.items()]


def test_a_tally_has_what_was_disturbed_and_what_was_measured_again() -> None:
    cells = [synthetic.bare_cell(key, 1) for key in keys(3, 1)]
    assert tally(cells) == "3 ok"
    cells[0].disturbed = cells[0].replaces = cells[1].replaces = "a build"
    assert tally(cells) == "3 ok; 1 disturbed by other load; 2 measured again"


@pytest.mark.slow
def test_it_is_said_before_anything_is_done(tmp_path: Path) -> None:
    path = suite(tmp_path, filesystems=["ext4"], media=["dir"], repetitions=3, duration=20)
    given = ["--output", tmp_path / "out", "--binary", fake_bench(tmp_path), "--dry-run"]
    done = fscale("run", path, *given)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("# 3 cells to measure: about 1:02")


def test_the_curves_of_a_paper_are_timed_beyond_a_commit() -> None:
    scaling = load_suite(paths.SUITES / "scaling.toml")
    assert scaling.duration >= COMMIT
    assert scaling.repetitions >= QUARTILES_FROM
    assert (scaling.order, scaling.cores) == ("random", "topology")
