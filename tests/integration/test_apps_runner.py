# SPDX-License-Identifier: GPL-2.0-only
"""Applications as cells of a run: partitions of the medium, and programs that are not there."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fscale.analysis.diagnosis.profile import load_profile
from fscale.model import paths
from fscale.model.errors import Exit
from fscale.model.results import Cell
from fscale.runner.machine.changes import LoopDevice, Partitions
from fscale.runner.profilers import usable
from fscale.system.executor import Executor
from tests.support.runner import command, environment, fake_bench, hold_machine, state, suite

pytestmark = pytest.mark.root


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    subprocess.run(["make", "-s", "-C", str(paths.ROOT / "apps")], check=True)
    with hold_machine():
        before = state()
    yield
    with hold_machine():
        assert state() == before


def start(
    tmp_path: Path, path: str | None = None, *more: str, **changes: object
) -> tuple[int, str]:
    argv = command("run", suite(tmp_path, **changes), "--output", tmp_path / "out")
    argv += ["--binary", str(fake_bench(tmp_path)), "--wait", "240", *more]
    environ = environment() | ({"PATH": path} if path else {})
    done = subprocess.run(
        argv, env=environ, capture_output=True, text=True, timeout=200, check=False
    )
    return done.returncode, done.stdout + done.stderr


def cells(tmp_path: Path) -> dict[tuple[str, str], Cell]:
    found = [
        Cell.model_validate(json.loads(p.read_text())) for p in tmp_path.glob("out/cells/*.json")
    ]
    return {(cell.key.workload, cell.key.filesystem): cell for cell in found}


def test_the_medium_is_cut_into_partitions(tmp_path: Path) -> None:
    options = {"catd": {"files": 200, "phase": "create"}}
    code, said = start(
        tmp_path,
        workloads=["catd", "DRBL"],
        filesystems=["tmpfs", "tmpfs:2", "ext4", "ext4:3"],
        options=options,
    )
    assert code == Exit.GOOD, said
    found = cells(tmp_path)
    # The micro-benchmark knows nothing of partitions.
    assert set(found) == {
        ("catd", "tmpfs"), ("catd", "tmpfs:2"), ("catd", "ext4"), ("catd", "ext4:3"),
        ("DRBL", "tmpfs"), ("DRBL", "ext4"),
    }  # fmt: skip
    cell = found["catd", "ext4:3"]
    assert (cell.status, cell.unit, cell.ops) == ("ok", "ops", 200)
    assert cell.extra["partitions"] == 3
    # The first cell on a medium makes that too, with a mount of its own.
    tools = [c.argv[0] for c in cell.commands if "tmpfs" not in c.argv]
    wanted = ("addpart", "mkfs.ext4", "mount", "umount", "delpart")
    assert [tools.count(tool) for tool in wanted] == [3] * len(wanted)
    assert cell.extra["phases"]["append"]["ops"] == 200
    assert cell.cpu is not None
    assert cell.own_cpu_seconds is not None


def test_a_profile_is_of_the_cells_cgroup(tmp_path: Path) -> None:
    options = {"catd": {"files": 2000, "phase": "append"}}
    changes = {"workloads": ["catd"], "filesystems": ["tmpfs"], "options": options}
    profiles = ["locks", "counts", "cpu"]
    if lacking := usable(profiles)[1]:
        pytest.skip(str(lacking))
    code, said = start(tmp_path, profiles=profiles, **changes)
    assert code == Exit.GOOD, said
    found = [Cell.model_validate_json(p.read_text()) for p in tmp_path.glob("out/cells/*.json")]
    by_profile = {str(cell.key.profile): cell for cell in found}
    assert set(by_profile) == {"None", *profiles}
    for name in profiles:
        cell = by_profile[name]
        assert (cell.status, cell.reason) == ("ok", None)
        profile = load_profile(tmp_path / "out" / cell.profiles[name])
        assert profile["named"] is False
    # Of the phase that is the figure: a file is opened, appended to, synchronised and closed.
    counts = by_profile["counts"].counts
    assert counts is not None
    assert 1 <= counts["kmem:kmem_cache_alloc"] < 100


def test_partitions_come_and_go(tmp_path: Path) -> None:
    do = Executor()
    image = tmp_path / "image"
    do.allocate(image, 16 << 20)
    loop = LoopDevice(file=image, direct_io=False)
    loop.apply(do)
    try:
        cut = Partitions(device=loop.devices()[0], count=4, size=16 << 20)
        foreign = ["addpart", cut.device, "5", "30720", "2048"]
        do.run(foreign)
        cut.apply(do)
        assert cut.each == 3 << 20
        assert [Path(cut.node(n)).is_block_device() for n in range(1, 6)] == [True] * 5
        assert cut.show().endswith("has 4 partitions")
        cut.undo(do)
        cut.undo(do)
        assert [Path(cut.node(n)).exists() for n in range(1, 6)] == [False] * 4 + [True]
        do.run(["delpart", cut.device, "5"])
    finally:
        loop.undo(do)


@pytest.fixture
def without_dbench(tmp_path: Path) -> str:
    """A PATH with all of the system's programs but dbench."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for program in os.scandir("/usr/bin"):
        if program.name != "dbench":
            (directory / program.name).symlink_to(program.path)
    return str(directory)


def test_what_is_not_installed_is_skipped(tmp_path: Path, without_dbench: str) -> None:
    options = {"catd": {"files": 50}}
    code, said = start(
        tmp_path, without_dbench, workloads=["dbench", "catd"], options=options, duration=5
    )
    assert code == Exit.GOOD, said
    skipped = cells(tmp_path)["dbench", "ext4"]
    assert (skipped.status, skipped.reason) == (
        "skipped",
        "it needs dbench; apt-get install dbench",
    )
    assert cells(tmp_path)["catd", "ext4"].status == "ok"


def test_what_was_asked_for_and_is_not_installed(tmp_path: Path, without_dbench: str) -> None:
    code, said = start(tmp_path, without_dbench, "--workload", "dbench", duration=5)
    assert code == Exit.SKIPPED
    assert "apt-get install dbench" in said


def test_doctor_lists_the_applications(without_dbench: str) -> None:
    environ = environment() | {"PATH": without_dbench}
    done = subprocess.run(
        command("doctor", "--json"), env=environ, capture_output=True, text=True, check=False
    )
    found = {f["name"]: f for f in json.loads(done.stdout)}
    assert "dbench" in json.dumps(found["load dbench"])
    assert "apt-get install dbench" in json.dumps(found["load dbench"])
    assert "load exim" in found
