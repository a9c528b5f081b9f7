# SPDX-License-Identifier: GPL-2.0-only
"""`fscale ab --slices` here: a planted delay is found, none is not, and nothing stays."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fscale.ab.plan import make
from fscale.ab.run import execute
from fscale.analysis.compare.settings import Settings
from fscale.model.paths import BENCH, ROOT
from fscale.model.results import Cell
from fscale.model.variant import parse
from fscale.runner.request import Request
from fscale.runner.session import this_machine_held
from fscale.runner.storage import disk
from fscale.system import powers
from tests.validation.delay import patched
from tests.validation.neighbour import sharing

pytestmark = [
    pytest.mark.root,
    pytest.mark.live,
    pytest.mark.skipif(powers.no_mount() is not None, reason="mounts a file system: needs root"),
    pytest.mark.skipif(not BENCH.exists(), reason="the microbenchmark is not built"),
]
CALL = "outcome = op(w);\t\t\t\t\t\t\\\n"


@pytest.fixture(scope="module")
def slowed() -> Path:
    """A microbenchmark that counts to 300 beside each operation: half as fast at DRBL, or less."""
    loop = "for (volatile int spin = 0; spin < 300; spin++) {}"
    return patched("slowed", {CALL: f"{loop} {CALL}"}, {}, only=["DRBL"])


def judged(output: Path, new: str, *more: str) -> tuple[int, dict[str, Any]]:
    """Four pairs of DRBL on ext4; the exit code, and the judgement per CPU second."""
    argv = [str(ROOT / "bin" / "fscale"), "ab", "--slices", "--base", "ext4", "--new", new]
    argv += ["--workload", "DRBL", "--cores", "1", "--repetitions", "4", "--seed", "1"]
    argv += ["--metric", "per-cpu-second", "--json", "--wait", "200", "--output", str(output)]
    done = subprocess.run([*argv, *more], capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode in (0, 1), done.stderr
    (judgement,) = json.loads(done.stdout)["judgements"]
    return done.returncode, judgement


def test_a_planted_delay_is_found(tmp_path: Path, slowed: Path) -> None:
    code, judgement = judged(tmp_path / "out", f"ext4:binary={slowed}")
    assert (code, judgement["verdict"]) == (1, "slower"), judgement
    assert judgement["between_pairs"] is not None
    files = sorted((tmp_path / "out/cells").iterdir())
    cells = [Cell.model_validate_json(file.read_text()) for file in files]
    assert [cell.key.side for cell in cells] == ["A"] * 4 + ["B"] * 4
    for cell in cells:
        assert cell.status == "ok"
        assert cell.slices is not None
        assert len(cell.slices) == 2 * (1 + cell.slices[-1].block)
        targets = [c.argv[-1] for c in cell.commands if c.argv[0] == "mount"]
        assert {Path(target).name for target in targets} >= {"mnt-1", "mnt-2"}
    mounts = Path("/proc/self/mounts").read_text()
    assert "/run/fscale/mnt-" not in mounts


def test_a_neighbour_disturbs_pairs_as_it_does_cells(tmp_path: Path) -> None:
    with sharing(0.3):
        judged(tmp_path / "out", "ext4:mount=commit=1")
    for file in (tmp_path / "out/cells").iterdir():
        cell = Cell.model_validate_json(file.read_text())
        assert cell.disturbed
        assert cell.extra["others_cpus"] > 0.7 * 0.3


def test_an_application_takes_turns(tmp_path: Path) -> None:
    argv = [str(ROOT / "bin" / "fscale"), "ab", "--slices", "--base", "ext4"]
    argv += ["--new", "ext4:mount=data=journal", "--workload", "fileserver", "--cores", "1"]
    argv += ["--set", "options={fileserver={files=200}}"]
    argv += ["--repetitions", "4", "--seed", "1", "--metric", "throughput", "--json"]
    argv += ["--wait", "200", "--output", str(tmp_path / "out")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 1, done.stderr
    (judgement,) = json.loads(done.stdout)["judgements"]
    assert (judgement["verdict"], judgement["pairs"]) == ("slower", 4), judgement
    assert judgement["ratio"] < 0.7


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    code, judgement = judged(tmp_path / "out", "ext4")
    assert (code, judgement["verdict"]) in ((0, "same"), (0, "undecided")), judgement
    # What was measured is not measured again.
    before = {f: f.stat().st_mtime_ns for f in (tmp_path / "out/cells").iterdir()}
    assert judged(tmp_path / "out", "ext4")[1] == judgement
    assert before == {f: f.stat().st_mtime_ns for f in (tmp_path / "out/cells").iterdir()}


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Path]:
    """The stable path of a disk of ours."""
    image, by_id = tmp_path / "disk", tmp_path / "by-id"
    with image.open("wb") as file:
        file.truncate(1 << 30)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-L", disk.LABEL, image], check=True)
    argv = ["losetup", "--find", "--show", "--partscan", str(image)]
    node = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()
    by_id.mkdir()
    (by_id / "disk-1").symlink_to(node)
    yield by_id / "disk-1"
    subprocess.run(["losetup", "--detach", node], check=True)


def test_a_disk_is_two_partitions_while_a_pair_lasts(tmp_path: Path, device: Path) -> None:
    request = Request(
        suite=Path("quick"),
        output=tmp_path / "out",
        overrides={"workloads": ["DWOL", "DRBL"], "cores": [1], "duration": 0.5, "profiles": []},
        seed=1,
        binary=BENCH,
        device=device,
        by_id=device.parent,
    )
    sides = parse("ext4"), parse("xfs")
    with this_machine_held(200) as signals:
        execute(make(request, *sides, Settings(), 4, slices=None), signals, 200)
    node = device.resolve()
    cells = [
        Cell.model_validate_json(file.read_text()) for file in (tmp_path / "out/cells").iterdir()
    ]
    assert len(cells) == 16
    for cell in cells:
        assert (cell.status, cell.reason) == ("ok", None)
        assert cell.slices
        assert any(turn.settle_seconds for turn in cell.slices) is (cell.key.workload == "DWOL")
        mounted = {c.argv[-2] for c in cell.commands if c.argv[0] == "mount"}
        assert mounted == {f"{node}p1", f"{node}p2"}
        written = {c.argv[-1] for c in cell.commands if c.argv[0].startswith("mkfs.")}
        assert written == mounted
    assert not list(Path("/sys/class/block").glob(f"{node.name}p*"))
    assert disk.check_device(device, None, device.parent).node == node


def test_what_cannot_take_turns_says_so(tmp_path: Path) -> None:
    argv = [str(ROOT / "bin" / "fscale"), "ab", "--slices", "--base", "ext4", "--new", "ext4"]
    argv += ["--output", str(tmp_path / "out"), "--wait", "200", "--workload", "dbench"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode in (2, 77)  # 77: dbench is not installed
    assert "Traceback" not in done.stderr
    if done.returncode == 2:
        assert "dbench cannot" in done.stderr
