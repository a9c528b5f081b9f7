# SPDX-License-Identifier: GPL-2.0-only
"""`fscale ab` on a real file system: both sides as asked for, interleaved, and resumable."""

import hashlib
import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fscale.cli import app
from fscale.model import paths
from fscale.model.errors import FscaleError
from fscale.model.paths import BENCH, ROOT
from fscale.model.results import Cell
from fscale.runner.machine.changes import CPUS, CpuOffline
from fscale.runner.machine.journal import Journal, exclusive
from fscale.runner.storage.disk import BY_ID
from fscale.system import powers
from fscale.system.executor import Executor
from tests.support.runner import STATE, fscale

pytestmark = [
    pytest.mark.root,
    pytest.mark.live,
    pytest.mark.skipif(powers.no_mount() is not None, reason="mounts a file system: needs root"),
    pytest.mark.skipif(not BENCH.exists(), reason="the microbenchmark is not built"),
    pytest.mark.usefixtures("unchanged"),
]
# The fewest repetitions of one metric that `ab --whole` takes: what is judged is not looked at.
FEW = ["--repetitions", "4", "--fdr", "0.1"]


def test_sides_are_mounted_as_asked_interleaved_and_resumed(tmp_path: Path) -> None:
    output = tmp_path / "ab"
    arguments = ["ab", "--base", "ext4", "--new", "ext4:mount=commit=1", "--workload", "DRBL"]
    arguments += ["--cores", "1", "--duration", "0.05", "--seed", "1", *FEW]
    arguments += ["--whole", "--output", str(output), "--json"]
    done = fscale(*arguments)
    assert done.returncode in (0, 1), done.stderr
    judgement = json.loads(done.stdout)["judgements"][0]
    assert judgement["interleaved"]
    cells = [Cell.model_validate_json(f.read_text()) for f in (output / "cells").iterdir()]
    assert [c.status for c in cells] == ["ok"] * 8
    for cell in cells:
        (mount,) = (c.argv for c in cell.commands if c.argv[:3] == ["mount", "-t", "ext4"])
        assert ("commit=1" in " ".join(mount)) == (cell.key.side == "B")
        assert any("mkfs" in c.argv[0] for c in cell.commands)
    by_time = sorted(cells, key=lambda c: (output / "cells" / f"{c.id}.json").stat().st_mtime_ns)
    order = "".join(c.key.side or "" for c in by_time)
    assert all(order[i : i + 4] in ("ABBA", "BAAB") for i in (0, 4))
    before = {f.name: f.stat().st_mtime_ns for f in (output / "cells").iterdir()}
    again = fscale(*arguments)
    assert again.returncode == done.returncode, again.stderr
    assert json.loads(again.stdout)["judgements"] == json.loads(done.stdout)["judgements"]
    assert before == {f.name: f.stat().st_mtime_ns for f in (output / "cells").iterdir()}
    other = fscale(*[a if a != "ext4:mount=commit=1" else "xfs" for a in arguments])
    assert other.returncode == 2
    assert "new: ext4:mount=commit=1 -> xfs" in other.stderr


def test_a_dry_run_tells_one_round_and_measures_nothing(tmp_path: Path) -> None:
    arguments = ["ab", "--base", "ext4", "--new", "ext4:mount=commit=1", "--workload", "DRBL"]
    arguments += ["--cores", "1", "--output", str(tmp_path / "ab"), "--dry-run"]
    done = fscale(*arguments, "--whole")
    assert done.returncode == 0, done.stderr
    sides = [line.split()[2][0] for line in done.stdout.splitlines() if "# side" in line]
    assert "".join(sides) in ("ABBA", "BAAB")
    mounts = [line for line in done.stdout.splitlines() if line.startswith("mount -t ext4")]
    assert ["commit=1" in line for line in mounts] == [side == "B" for side in sides]
    pair = fscale(*arguments)
    assert pair.returncode == 0, pair.stderr
    mounts = [line for line in pair.stdout.splitlines() if line.startswith("mount -t ext4")]
    assert sorted("commit=1" in line for line in mounts) == [False, True]
    loads = [line for line in pair.stdout.splitlines() if "--workload DRBL" in line]
    assert len(loads) == 2
    assert all("--slice " in line for line in loads)
    assert not (tmp_path / "ab").exists()


def test_a_reader_that_leaves_a_dry_run_is_no_error(tmp_path: Path) -> None:
    line = f"{ROOT}/bin/fscale run quick --output {tmp_path}/x --dry-run | head -1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    # It says beforehand what the plan is good for, and nothing of a broken pipe.
    assert all(line.startswith("note: ") for line in done.stderr.splitlines()), done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--base", "kernel:", "--new", "ext4"], "kernel"),
        (["--base", "ext4", "--new", "ext5"], "ext5"),
        (["--base", "kernel:6.1", "--new", "kernel:6.12", "--wait", "3"], "--wait: "),
        (["--base", "ext4", "--new", "ext4:binary=/no/such"], "/no/such does not exist"),
        (["--base", "ext4", "--new", "xfs", "--metric", "count"], "--metric throughput"),
        (["--base", "ext4", "--new", "xfs", "--cores", "0"], "at least 1 core"),
        (["--base", "ext4", "--new", "xfs", "--device", "/dev/null"], "is not a stable path"),
    ],
)
def test_bad_input_changes_nothing(
    tmp_path: Path, arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "state_dir", lambda: STATE)
    done = CliRunner().invoke(
        app, ["ab", *arguments, "--output", str(tmp_path / "out"), "--workload", "DRBL"]
    )
    assert isinstance(done.exception, FscaleError)
    assert done.exception.code == 2
    assert says in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_a_side_that_cannot_be_mounted_is_said_with_its_reason(tmp_path: Path) -> None:
    given = ["--workload", "DRBL", "--cores", "1", "--duration", "0.05", "--output"]
    bad = "ext4:mount=nosuchoption"
    # The user's error, found once before the first cell, whichever side has the option.
    for number, sides in enumerate((("ext4", bad), (bad, bad))):
        output = tmp_path / str(number)
        refused = fscale("ab", "--base", sides[0], "--new", sides[1], *given, output)
        assert refused.returncode == 2
        assert "nosuchoption" in refused.stderr
        assert not list((output / "cells").glob("*.json"))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A loop device with the data of others, by a stable path."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(512 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-L", "precious", image], check=True)
    argv = ["losetup", "--show", "--find", image]
    node = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()
    BY_ID.mkdir(parents=True, exist_ok=True)
    name = BY_ID / f"fscale-test-{os.getpid()}"
    name.symlink_to(node)
    yield name
    name.unlink()
    subprocess.run(["losetup", "--detach", node], check=True)


AB = ["ab", "--base", "ext4", "--new", "ext4:mount=commit=1", *FEW]


@pytest.mark.parametrize(
    ("command", "pairs", "parts"),
    [([*AB, "--whole"], 4, False), (AB, 4, True),
     (["noise", "--fs", "ext4", "--repetitions", "8"], 8, True)],
    ids=["whole", "slices", "noise"],
)  # fmt: skip
def test_a_device_is_formatted_by_both_sides_only_when_it_may_be(
    tmp_path: Path, disk: Path, command: list[str], pairs: int, parts: bool
) -> None:
    arguments = [*command, "--workload", "DRBL", "--cores", "1", "--set", "duration=0.05"]
    arguments += ["--device", str(disk), "--output", str(tmp_path / "out")]
    before = hashlib.sha256((tmp_path / "image").read_bytes()).hexdigest()
    refused = fscale(*arguments)
    assert refused.returncode == 2
    assert "ext4 precious" in refused.stderr
    assert before == hashlib.sha256((tmp_path / "image").read_bytes()).hexdigest()
    assert not (tmp_path / "out").exists()
    done = fscale(*arguments, "--yes-format", disk.name)
    assert done.returncode in (0, 1), done.stderr
    files = (tmp_path / "out" / "cells").iterdir()
    cells = [Cell.model_validate_json(file.read_text()) for file in files]
    assert Counter((c.key.side, c.status) for c in cells) == {
        ("A", "ok"): pairs,
        ("B", "ok"): pairs,
    }
    node = str(disk.resolve())
    for cell in cells:
        made = [c.argv[-1] for c in cell.commands if c.argv[0] == "mkfs.ext4"]
        assert sorted(made) == ([f"{node}p1", f"{node}p2"] if parts else [node])


def test_a_cpu_that_a_killed_run_left_offline_is_measured(tmp_path: Path) -> None:
    """The plan is made once it is back, so that going on with the run finds the same machine."""
    cpu = max(int(path.name[3:]) for path in CPUS.glob("cpu[0-9]*"))
    if not (CPUS / f"cpu{cpu}/online").exists():
        pytest.skip("no CPU can be taken off line here")
    count = os.cpu_count()
    with exclusive(STATE):
        Journal(STATE / "journal", Executor()).apply(CpuOffline(cpu=cpu))
    arguments = ["ab", "--base", "ext4", "--new", "ext4", "--workload", "DRBL", "--cores", count]
    arguments += ["--duration", "0.05", *FEW, "--whole", "--json"]
    for _ in range(2):
        done = fscale(*arguments, "--output", tmp_path / "ab")
        assert done.returncode in (0, 1), done.stderr
        (judgement,) = json.loads(done.stdout)["judgements"][:1]
        assert judgement["subject"]["cores"] == [count]
