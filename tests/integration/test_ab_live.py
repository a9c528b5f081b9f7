# SPDX-License-Identifier: GPL-2.0-only
"""`fscale ab` on a real file system: both sides as asked for, interleaved, and resumable."""

import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fscale.cli import app
from fscale.model.errors import FscaleError
from fscale.model.paths import BENCH, ROOT, is_root
from fscale.model.results import Cell

pytestmark = [
    pytest.mark.root,
    pytest.mark.live,
    pytest.mark.skipif(not is_root(), reason="mounts a file system: needs root"),
    pytest.mark.skipif(not BENCH.exists(), reason="the microbenchmark is not built"),
]


def fscale(*arguments: object) -> subprocess.CompletedProcess[str]:
    argv = [str(ROOT / "bin" / "fscale"), *map(str, arguments), "--wait", "120"]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=240)


def test_sides_are_mounted_as_asked_interleaved_and_resumed(tmp_path: Path) -> None:
    output = tmp_path / "ab"
    arguments = ["ab", "--base", "ext4", "--new", "ext4:mount=commit=1", "--workload", "DRBL"]
    arguments += ["--cores", "1", "--duration", "0.05", "--repetitions", "6", "--seed", "1"]
    arguments += ["--output", str(output), "--json"]
    done = fscale(*arguments)
    assert done.returncode in (0, 1), done.stderr
    judgement = json.loads(done.stdout)["judgements"][0]
    assert judgement["interleaved"]
    cells = [Cell.model_validate_json(f.read_text()) for f in (output / "cells").iterdir()]
    assert [c.status for c in cells] == ["ok"] * 12
    for cell in cells:
        (mount,) = (c.argv for c in cell.commands if c.argv[:3] == ["mount", "-t", "ext4"])
        assert ("commit=1" in " ".join(mount)) == (cell.key.side == "B")
        assert any("mkfs" in c.argv[0] for c in cell.commands)
    by_time = sorted(cells, key=lambda c: (output / "cells" / f"{c.id}.json").stat().st_mtime_ns)
    order = "".join(c.key.side or "" for c in by_time)
    assert all(order[i : i + 4] in ("ABBA", "BAAB") for i in (0, 4, 8))
    before = {f.name: f.stat().st_mtime_ns for f in (output / "cells").iterdir()}
    again = fscale(*arguments)
    assert json.loads(again.stdout)["judgements"] == json.loads(done.stdout)["judgements"]
    assert before == {f.name: f.stat().st_mtime_ns for f in (output / "cells").iterdir()}
    other = fscale(*[a if a != "ext4:mount=commit=1" else "xfs" for a in arguments])
    assert other.returncode == 2
    assert "another run" in other.stderr


def test_a_dry_run_tells_one_round_and_measures_nothing(tmp_path: Path) -> None:
    arguments = ["ab", "--base", "ext4", "--new", "ext4:mount=commit=1", "--workload", "DRBL"]
    arguments += ["--cores", "1", "--output", str(tmp_path / "ab"), "--dry-run"]
    done = fscale(*arguments)
    assert done.returncode == 0, done.stderr
    sides = [line.split()[2][0] for line in done.stdout.splitlines() if "# side" in line]
    assert "".join(sides) in ("ABBA", "BAAB")
    mounts = [line for line in done.stdout.splitlines() if line.startswith("mount -t ext4")]
    assert ["commit=1" in line for line in mounts] == [side == "B" for side in sides]
    assert not (tmp_path / "ab").exists()


def test_a_reader_that_leaves_a_dry_run_is_no_error(tmp_path: Path) -> None:
    line = f"{ROOT}/bin/fscale run quick --output {tmp_path}/x --dry-run | head -1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--base", "kernel:", "--new", "ext4"], "kernel"),
        (["--base", "ext4", "--new", "ext5"], "ext5"),
        (["--base", "kernel:6.1", "--new", "kernel:6.12", "--dry-run"], "vm run --dry-run"),
        (["--base", "ext4", "--new", "ext4:binary=/no/such"], "/no/such is missing"),
        (["--base", "ext4", "--new", "xfs", "--metric", "count"], "counted work"),
        (["--base", "ext4", "--new", "xfs", "--cores", "0"], "at least 1 core"),
    ],
)
def test_bad_input_changes_nothing(tmp_path: Path, arguments: list[str], says: str) -> None:
    done = CliRunner().invoke(
        app, ["ab", *arguments, "--output", str(tmp_path / "out"), "--workload", "DRBL"]
    )
    assert isinstance(done.exception, FscaleError)
    assert done.exception.code == 2
    assert says in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_a_side_that_cannot_be_mounted_is_an_error_with_its_reason(tmp_path: Path) -> None:
    done = fscale("ab", "--base", "ext4", "--new", "ext4:mount=nosuchoption", "--workload", "DRBL",
                  "--cores", "1", "--duration", "0.05", "--output", tmp_path / "out")  # fmt: skip
    assert done.returncode == 2
    assert "nothing could be measured" in done.stderr
    assert "mount" in done.stderr
