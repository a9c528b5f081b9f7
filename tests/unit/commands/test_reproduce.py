# SPDX-License-Identifier: GPL-2.0-only
"""`fscale reproduce`: its lists, its answers from a run that there is, and its exit codes."""

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from fscale.cli import app
from fscale.model.errors import Exit, FscaleError
from fscale.runner.selection import filesystem_of
from tests.support.synthetic import grid, write_run

OWN = """
title = "mine"
source = "I"
setting = "my machine"
cores = 2
suite = { media = ["dir"], duration = 1, repetitions = 2, control = 0 }
[[claim]]
name = "reads"
section = "1"
workloads = ["DRBL"]
filesystems = ["FS"]
shape = "scales"
[[claim]]
name = "picture"
section = "2"
says = "see the picture"
cannot = "it is a picture"
"""


def reproduce(*words: object) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["reproduce", *map(str, words)])


def test_the_list_has_each_claim_of_a_paper() -> None:
    text = reproduce("spanfs", "--list").stdout
    assert "varmail" in text and "§4.2.3, figure 7(b)" in text
    assert "SpanFS is not to be had" not in text  # that is an answer


def test_a_dry_run_says_how_long_each_claim_takes(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(OWN.replace("FS", filesystem_of(tmp_path)).replace("cores = 2", "cores = 1"))
    done = reproduce(own, "--dry-run", "--output", tmp_path / "out", "--only", "reads")
    assert done.exit_code == Exit.GOOD, done.exception
    claim, cells, _ = next(li.split() for li in done.stdout.splitlines() if "reads" in li)
    assert (claim, int(cells) % 2) == ("reads", 0)
    assert f"{cells} cells to measure: about" in done.stdout
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("rate", "code"), [(1000, Exit.FAILED), (None, Exit.SKIPPED)], ids=["flat", "linear"]
)
def test_a_run_that_there_is_is_judged(tmp_path: Path, rate: int | None, code: Exit) -> None:
    own = tmp_path / "own.toml"
    own.write_text(OWN.replace("FS", "ext4"))
    cells = grid((1, 2), 2, ["DRBL"], ["ext4"], rate=lambda of: rate or 1000 * of.cores)
    run = write_run(tmp_path / "run", cells, suite={"duration": 1, "repetitions": 2})
    done = reproduce(own, "--run", run, "--json")
    assert done.exit_code == code, done.exception
    first, second = json.loads(done.stdout)
    assert first["verdict"] == ("does not hold" if rate else "cannot be asked here")
    assert (second["claim"], second["why"]) == ("picture", "it is a picture")
    assert "see the picture" in (run / "reproduced.html").read_text()
    # What was judged comes first, and then what could not be.
    text = reproduce(own, "--run", run).stdout
    assert text.startswith("claim " if rate else "cannot be asked here ")
    assert text.index("it is a picture") > text.index("cannot be asked here")
    assert text.index("reads ") < text.index("picture ")


def test_an_unknown_paper_is_wrong_usage() -> None:
    error = reproduce("fxmrk", "--list").exception
    assert isinstance(error, FscaleError)
    assert "unknown paper fxmrk; did you mean fxmark?" in str(error)


def test_a_run_that_there_is_needs_no_measurement(tmp_path: Path) -> None:
    error = reproduce("fxmark", "--measure-only", "--run", tmp_path).exception
    assert isinstance(error, FscaleError)
    assert "--measure-only: these claims, or --run, need no measurement" in str(error)
