# SPDX-License-Identifier: GPL-2.0-only
"""Verdicts as a DataFrame: those of `fscale compare`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fscale
from fscale.analysis.tables.verdicts import COLUMNS
from fscale.cli import app
from tests.support.synthetic import grid, write_run
from tests.unit.analysis.compare.test_kept import unpacked


def run(directory: Path, factor: float, broken: bool = False) -> Path:
    made = grid((1, 2), 10, ("DRBL", "MWCM"), ("ext4",))
    for i, one in enumerate(made):
        slower = {"ops_per_second": factor * one.ops_per_second, "ops": factor * one.ops}
        if one.key.workload == "MWCM":
            made[i] = one.model_copy(update=slower)
        if broken and one.key.workload == "DRBL":
            ended = {"status": "error", "reason": "EIO", "fault": "filesystem"}
            made[i] = one.model_copy(update=ended)
    return write_run(directory, made, workloads=("DRBL", "MWCM"), filesystems=["ext4"])


def test_verdicts_are_those_of_the_command(tmp_path: Path) -> None:
    base, new = run(tmp_path / "base", 1), run(tmp_path / "new", 0.7)
    frame = fscale.compare(base, new)
    said = CliRunner().invoke(app, ["compare", str(base), str(new), "--json"])
    judged = json.loads(said.stdout)["judgements"]
    found = {(r.workload, r.cores, r.curve, r.metric): r.verdict for r in frame.itertuples()}
    assert found == {
        (j["subject"]["workload"], j["subject"]["cores"][-1], len(j["subject"]["cores"]) > 1,
         j["metric"]): j["verdict"]
        for j in judged
    }  # fmt: skip
    assert list(frame) == [column.name for column in COLUMNS]
    worse = frame[frame.worse]
    assert set(worse.workload) == {"MWCM"}
    assert worse.ratio.tolist() == pytest.approx([0.7] * len(worse), rel=0.1)
    assert (worse.low < worse.ratio).all() and (worse.ratio < worse.high).all()
    assert frame.verdict.iloc[0] == "slower"
    assert frame.attrs["conclusion"] == "found a regression"
    assert any("not interleaved" in warning for warning in frame.attrs["warnings"])
    assert not fscale.compare(base, new, margin=0.8).worse.any()
    assert "per-cpu-second" in set(frame.metric)
    alone = fscale.compare(base, new, metrics=["throughput"])
    assert set(alone.metric) == {"throughput", "speed-up"}  # of points, and of curves


def test_a_point_that_broke_is_a_regression(tmp_path: Path) -> None:
    frame = fscale.compare(run(tmp_path / "base", 1), run(tmp_path / "new", 1, broken=True))
    broken = frame[frame.metric.isna()]
    assert broken.verdict.tolist() == ["broken", "broken"]
    assert broken.worse.all()
    assert broken.reason.tolist() == ["EIO", "EIO"]
    mended = fscale.compare(tmp_path / "new", tmp_path / "base")
    assert not mended[mended.verdict == "mended"].worse.any()


def test_both_sides_of_a_paired_run_are_judged(tmp_path: Path) -> None:
    frame = fscale.compare(unpacked("ab-whole", tmp_path))
    assert (frame.attrs["base"], frame.attrs["new"]) == ("ext4", "ext4:mount=data=journal")
    assert set(frame.verdict) == {"slower"}
    assert (frame.base_repetitions == 8).all()


def test_counts_of_a_gate_have_verdicts_of_their_own(tmp_path: Path) -> None:
    frame = fscale.compare(unpacked("gate", tmp_path))
    assert set(frame.metric.dropna().str.partition(":")[0]) == {"count"}
    assert set(frame.verdict) <= {"more", "newly shared", "less", "same"}


def test_what_cannot_be_judged_is_said(tmp_path: Path) -> None:
    one = run(tmp_path / "one", 1)
    with pytest.raises(fscale.FscaleError, match="a single run, not an interleaved one"):
        fscale.compare(one)
    with pytest.raises(fscale.FscaleError, match=r"metrics\.0: Input should be 'throughput'"):
        fscale.compare(unpacked("ab-whole", tmp_path), metrics=["p98"])  # type: ignore[list-item]
    with pytest.raises(fscale.FscaleError, match=r"margin: .*greater than 0"):
        fscale.compare(one, run(tmp_path / "two", 0.9), margin=0)
