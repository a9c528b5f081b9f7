# SPDX-License-Identifier: GPL-2.0-only
"""Operations per joule as a metric: judged where it is asked for, and drawn."""

import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from fscale.analysis.metrics import why_missing
from fscale.cli import app
from fscale.model.errors import FscaleError
from tests.support.synthetic import cell, key, sliced, write_run

pytestmark = pytest.mark.broad


def fscale(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def run(directory: Path, watts: float | None) -> Path:
    """A thousand operations per second."""
    cells = [cell(key(n), 1000 + n, watts=watts and watts + n / 9) for n in range(1, 9)]
    return write_run(directory, cells, workloads=["DRBL"], filesystems=["ext4"])


@pytest.mark.parametrize(("new", "code"), [(50, 0), (80, 1), (30, 0)])
def test_the_same_work_for_more_energy_is_worse(tmp_path: Path, new: float, code: int) -> None:
    both = run(tmp_path / "base", 50), run(tmp_path / "new", new)
    assert fscale("compare", *both).exit_code == 0, "throughput is the same"
    ended = fscale("compare", *both, "--metric", "per-joule")
    assert ended.exit_code == code, ended.output
    assert ("is slower by per-joule (-37" in ended.stdout) is bool(code)


def test_a_machine_that_reports_none_is_told(tmp_path: Path) -> None:
    both = run(tmp_path / "base", 50), run(tmp_path / "new", None)
    ended = fscale("compare", *both, "--metric", "per-joule")
    assert isinstance(ended.exception, FscaleError)
    assert "NEW: the machine did not report its power" in str(ended.exception)
    assert "--whole" in why_missing(sliced(key(), [100.0] * 9), "per-joule")


def test_tables_and_curves_have_it(tmp_path: Path) -> None:
    cells = [cell(key(cores=c), 1000 * c, watts=40) for c in (1, 2)]
    directory = write_run(tmp_path / "run", cells, workloads=["DRBL"], filesystems=["ext4"])
    row, _ = csv.DictReader(fscale("export", directory, "--format", "csv").stdout.splitlines())
    assert float(row["watts"]) == 40
    text = fscale("export", directory, "--format", "openmetrics").stdout
    assert "\nfscale_power_watts{" in text
    drawn = fscale("show", directory, "--metric", "per-joule")
    assert drawn.exit_code == 0, drawn.output
    assert "ops/J" in drawn.stdout and "25" in drawn.stdout
