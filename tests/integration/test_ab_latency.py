# SPDX-License-Identifier: GPL-2.0-only
"""`fscale ab --metric p99.9` here: a delay of rare operations, which the median does not show."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fscale.model.paths import BENCH, ROOT
from fscale.model.results import Cell
from fscale.system import powers
from tests.validation.delay import rare

pytestmark = [
    pytest.mark.root,
    pytest.mark.live,
    pytest.mark.skipif(powers.no_mount() is not None, reason="mounts a file system: needs root"),
    pytest.mark.skipif(not BENCH.exists(), reason="the microbenchmark is not built"),
]
EVERY, NANOSECONDS = 500, 200_000


def judged(output: Path, new: Path, *metrics: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Six pairs of DRBL on ext4, reads of 16 KiB: the exit code, and metric -> judgement."""
    base = rare(0, 0, "DRBL")
    argv = [str(ROOT / "bin" / "fscale"), "ab", "--slices", "--base", f"ext4:binary={base}"]
    argv += ["--new", f"ext4:binary={new}", "--workload", "DRBL", "--cores", "1", "--seed", "1"]
    argv += [word for metric in metrics for word in ("--metric", metric)]
    argv += ["--set", "options={DRBL={block=16384}}", "--repetitions", "6", "--json"]
    argv += ["--wait", "200", "--output", str(output)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, {j["metric"]: j for j in json.loads(done.stdout)["judgements"]}


def test_a_rare_delay_is_found_by_its_quantile(tmp_path: Path) -> None:
    code, found = judged(tmp_path / "out", rare(EVERY, NANOSECONDS, "DRBL"), "p50", "p99.9")
    assert code == 1, found
    assert (found["p99.9"]["verdict"], found["p99.9"]["pairs"]) == ("slower", 6), found["p99.9"]
    assert (
        found["p99.9"]["base"]["median"] + 0.5 * NANOSECONDS / 1e9
        < (found["p99.9"]["new"]["median"])
    )
    assert found["p50"]["verdict"] in ("same", "undecided"), found["p50"]
    cells = [Cell.model_validate_json(f.read_text()) for f in (tmp_path / "out/cells").iterdir()]
    for cell in cells:
        assert cell.latency is not None
        assert cell.latency["count"] == sum(turn.ops for turn in cell.slices or () if turn.seconds)


def test_a_maximum_is_not_measured_in_slices(tmp_path: Path) -> None:
    argv = [str(ROOT / "bin" / "fscale"), "ab", "--slices", "--base", "ext4", "--new", "ext4"]
    argv += ["--workload", "DRBL", "--cores", "1", "--metric", "max", "--wait", "200"]
    argv += ["--output", str(tmp_path / "out")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 2
    assert "max" in done.stderr
