# SPDX-License-Identifier: GPL-2.0-only
"""Whole runs on this machine, with the fake microbenchmark: what is stored and what is left."""

import errno
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml

from fscale.model import catalogue, paths
from fscale.model.errors import Exit, FscaleError
from fscale.model.results import Cell, Run
from fscale.runner.machine import changes, host
from fscale.runner.prepare import Prepared, prepare
from fscale.runner.profilers.context import Context
from fscale.runner.request import Request
from fscale.runner.run import execute
from fscale.runner.session import Session, Stopped, machine_held, new_tag
from fscale.runner.signals import Signals
from fscale.system import processes
from fscale.system.executor import Executor
from tests.support import ordinary_user
from tests.support.files import write_program
from tests.support.runner import (
    STATE,
    command,
    environment,
    fake_bench,
    fscale,
    state,
    suite,
)
from tests.validation.neighbour import sharing

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("unchanged")]


def start(
    tmp_path: Path, *arguments: object, **changes: object
) -> subprocess.CompletedProcess[str]:
    given = [
        "--output",
        tmp_path / "out",
        "--binary",
        fake_bench(tmp_path),
        "--wait",
        240,
        *arguments,
    ]
    return fscale("run", suite(tmp_path, **changes), *given)


def cells(tmp_path: Path) -> list[Cell]:
    files = sorted((tmp_path / "out" / "cells").glob("*.json"))
    return [Cell.model_validate_json(file.read_text()) for file in files]


def run(tmp_path: Path) -> Run:
    return Run.model_validate_json((tmp_path / "out" / "run.json").read_text())


def test_a_run_on_every_kind_of_file_system(tmp_path: Path) -> None:
    done = start(tmp_path, filesystems=["tmpfs", "ext4", "f2fs"], cores="all", repetitions=2)
    assert done.returncode == Exit.GOOD, done.stderr
    made = cells(tmp_path)
    count = os.cpu_count() or 1
    assert len(made) == 3 * count * 2 == run(tmp_path).planned_cells
    assert run(tmp_path).state == "complete"
    for cell in made:
        if cell.key.filesystem == "f2fs" and cell.status == "skipped":
            assert cell.reason
            continue
        assert cell.status == "ok", cell.reason
        assert cell.ops > 0
        assert cell.cpus == list(range(cell.key.cores))
        argvs = [c.argv for c in cell.commands]
        mkfs = [argv for argv in argvs if argv[0].startswith("mkfs")]
        assert len(mkfs) == (cell.key.filesystem == "ext4")
        mounts = [argv for argv in argvs if argv[0] == "mount" and argv[-1].endswith("/mnt")]
        assert len(mounts) == 1
        assert "noatime" in mounts[0][4]
        assert sum(argv[0] == "umount" for argv in argvs) == 1
    assert "ext4" in done.stdout


def test_other_cpus_are_offline_while_a_cell_runs(tmp_path: Path) -> None:
    probe = tmp_path / "fake-bench"
    text = fake_bench(tmp_path).read_text()
    look = (
        'print(open("/sys/devices/system/cpu/online").read(), file=open(a.dir + "/../../s", "w"))'
    )
    write_program(probe, text.replace('if act == "late":', f'{look}\nif act == "late":'))
    given = ["--output", tmp_path / "out", "--binary", probe]
    done = fscale("run", suite(tmp_path), *given)
    seen = STATE / "s"
    online = seen.read_text().strip()
    seen.unlink()
    assert done.returncode == Exit.GOOD, done.stderr
    assert online == "0"
    assert cells(tmp_path)[0].cpu_control == "hotplug"


class Refusing(Executor):
    """After `good` times, CPUs are taken off no more until `refusals` were refused."""

    good, refusals = 2, 0

    def write(self, path: Path, text: str) -> None:
        """See Executor."""
        if path.name == "online" and text == "0":
            if Refusing.good:
                Refusing.good -= 1
            elif Refusing.refusals:
                Refusing.refusals -= 1
                raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        super().write(path, text)


@pytest.mark.skipif(os.cpu_count() != 2, reason="each cell of one CPU takes one CPU off")
@pytest.mark.parametrize("refusals", [4, 10**6])
def test_cells_of_a_point_have_one_control(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusals: int
) -> None:
    monkeypatch.setattr(host, "PATIENCE", 0.2)
    monkeypatch.setattr(host, "PATIENCE_AFTERWARDS", 0.05)
    monkeypatch.setattr(paths, "state_dir", lambda: STATE)
    # Once for the try at the beginning, once for a cell.
    Refusing.good, Refusing.refusals = 2, refusals
    request = Request(
        suite=suite(tmp_path, cores=[1, 2], repetitions=4),
        output=tmp_path / "out",
        binary=fake_bench(tmp_path),
    )
    with machine_held(STATE, print):
        made = prepare(request)
        execute(made, Signals(), executor=Refusing)
    found = cells(tmp_path)
    assert {cell.cpu_control for cell in found} == {"hotplug"}
    # A CPU that is off line stays so for the cells of one core that come next, in random order.
    runs = itertools.groupby(key.cores for key in made.cells)
    served = next(len(list(group)) for cores, group in runs if cores == 1)
    good = 8 if refusals == 4 else 4 + served
    assert Counter(cell.status for cell in found) == Counter({"ok": good, "error": 8 - good})
    assert any("CPU 1 offline" in warning for warning in run(tmp_path).warnings)
    # What is missing is measured later, in the same way.
    Refusing.refusals = 0
    with machine_held(STATE, print):
        execute(prepare(request), Signals(), executor=Refusing)
    found = cells(tmp_path)
    assert {(cell.status, cell.cpu_control) for cell in found} == {("ok", "hotplug")}


@pytest.mark.skipif(os.cpu_count() == 1, reason="one CPU")
def test_a_cell_with_other_cpus_online_than_its_own_is_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = prepared(tmp_path)
    session = Session(made.setup, made.store, STATE, Executor(new_tag()), Signals())
    monkeypatch.setattr(
        Freezer, "start", lambda *_: Path("/sys/devices/system/cpu/cpu1/online").write_text("1")
    )
    with machine_held(STATE, print), session.opened():
        cell = session.cell(made.cells[0])
    assert (cell.status, cell.cpus) == ("invalid", [0])
    assert "CPUs 1 are online" in (cell.reason or "")


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_a_neighbour_of_a_tenth_of_a_cpu_disturbs_a_cell(tmp_path: Path, share: float) -> None:
    with sharing(share):
        done = start(tmp_path, filesystems=["tmpfs"], duration=1, repetitions=2)
    assert done.returncode == Exit.GOOD, done.stderr
    for cell in cells(tmp_path):
        assert cell.disturbed
        assert cell.extra["others_cpus"] > 0.7 * share


def test_cells_that_a_neighbour_disturbed_are_measured_again_once(tmp_path: Path) -> None:
    budgets: list[str] = []

    def run_beside(share: float) -> dict[str, Cell]:
        with sharing(share):
            done = start(tmp_path, filesystems=["tmpfs"], duration=1, repetitions=4, remeasure=1)
        assert done.returncode == Exit.GOOD, done.stderr
        left = re.search(r"; up to (\S+) more to measure disturbed cells again\n", done.stderr)
        budgets.append(left[1] if left else "")
        assert (again := re.search(r"; (\d+) measured again", done.stdout)), done.stdout
        replaced = {cell.id: cell for cell in cells(tmp_path) if cell.replaces}
        assert len(replaced) == int(again[1])
        return replaced

    first = run_beside(0.3)
    for file in (tmp_path / "out" / "replaced").iterdir():
        earlier = Cell.model_validate_json(file.read_text())
        assert first[earlier.id].replaces == earlier.disturbed
        assert first[earlier.id].started > earlier.started
    assert first.items() <= run_beside(0).items()
    assert budgets[0] == "0:07"
    assert budgets[1] in ("", *(f"0:0{n}" for n in range(1, 7)))


def test_mkfs_sees_all_cpus_whatever_is_under_test(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    mkfs = tmp_path / "mkfs"
    write_program(
        mkfs, f'#!/bin/sh\ngetconf _NPROCESSORS_ONLN >> {seen}\nexec mkfs.ext4 -q -F "$1"\n'
    )
    fs = tmp_path / "by_cpus.toml"
    fs.write_text(f'title = "t"\nkernel = "ext4"\nmkfs = ["{mkfs}", "{{device}}"]\n')
    done = start(tmp_path, filesystems=[str(fs)], cores="all", repetitions=2)
    assert done.returncode == Exit.GOOD, done.stderr
    count = os.cpu_count() or 1
    assert [cell.cpu_control for cell in cells(tmp_path)] == ["hotplug"] * 2 * count
    assert seen.read_text().split() == [str(count)] * 2 * count


def of_others(tmp_path: Path, *restricted: object) -> None:
    """Run as a process that may use the last CPU only; it keeps to that one."""
    given = ["run", suite(tmp_path), "--output", tmp_path / "out", "--binary", fake_bench(tmp_path)]
    argv = [*map(str, restricted), *command(*given)]
    done = subprocess.run(argv, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == Exit.GOOD, done.stderr
    last = (os.cpu_count() or 1) - 1
    (cell,) = cells(tmp_path)
    assert (cell.cpus, cell.cpu_control) == ([last], "affinity")
    assert run(tmp_path).machine.cpu_order == [last]
    assert "all CPUs stay online" in done.stderr


@pytest.mark.skipif(os.cpu_count() == 1, reason="one CPU")
def test_an_affinity_is_kept(tmp_path: Path) -> None:
    of_others(tmp_path, "taskset", "--cpu-list", (os.cpu_count() or 1) - 1)


@pytest.mark.skipif(os.cpu_count() == 1, reason="one CPU")
def test_a_cpuset_is_kept(tmp_path: Path) -> None:
    root = Path("/sys/fs/cgroup/cpuset")
    if not root.is_dir():
        root = Path("/sys/fs/cgroup")
        (root / "cgroup.subtree_control").write_text("+cpuset")
    group = root / f"test-cpus-{os.getpid()}"
    group.mkdir()
    try:
        (group / "cpuset.mems").write_text("0")
        (group / "cpuset.cpus").write_text(str((os.cpu_count() or 1) - 1))
        join = 'echo $$ > "$0" && exec "$@"'
        of_others(tmp_path, "/bin/sh", "-c", join, group / "cgroup.procs")
    finally:
        group.rmdir()


@pytest.mark.parametrize(
    ("act", "limit", "says"),
    [
        ("enospc", {}, "ENOSPC"),
        ("garbage", {}, "printed no valid result (exit code 139): Segmentation fault"),
        ("hang", {"margin": 0.5}, "the load did not end within 0.6 s; it was killed"),
        (
            "late",
            {"setup_limit": 0.5},
            "the load was not ready within 0.5 s (setup_limit of the suite); it was killed",
        ),
    ],
)
def test_a_failed_cell_is_told_and_the_run_goes_on(
    tmp_path: Path, act: str, limit: dict[str, float], says: str
) -> None:
    done = start(tmp_path, workloads=["DRBL", "MWCL"], options={"DRBL": {"act": act}}, **limit)
    assert done.returncode == Exit.FAILED
    by_workload = {cell.key.workload: cell for cell in cells(tmp_path)}
    assert by_workload["DRBL"].status == "error"
    assert says in (by_workload["DRBL"].reason or "")
    assert by_workload["MWCL"].status == "ok"


def test_what_the_file_system_cannot_do_is_skipped(tmp_path: Path) -> None:
    done = start(tmp_path, options={"DRBL": {"act": "nodirect"}})
    assert cells(tmp_path)[0].status == "skipped"
    assert done.returncode == Exit.SKIPPED


@pytest.mark.parametrize(
    ("act", "says"),
    [
        ("work", "ext4 is damaged after the cell: `e2fsck -f -n"),
        ("enospc", "ENOSPC (No space left on device); ext4 is damaged"),
    ],
)
def test_damage_that_the_check_finds_fails_the_cell(tmp_path: Path, act: str, says: str) -> None:
    described = (
        paths.FILESYSTEMS / "ext4.toml"
    ).read_text() + 'check = ["e2fsck", "-f", "-n", "{device}"]\n'
    good = tmp_path / "good.toml"
    good.write_text(described)
    bad = tmp_path / "bad.toml"
    bad.write_text(
        described.replace(
            '"e2fsck", "-f", "-n", "{device}"', '"e2fsck", "-f", "-n", "-b", "7", "{device}"'
        )
    )
    done = start(tmp_path, filesystems=[str(good), str(bad)], options={"DRBL": {"act": act}})
    assert done.returncode == Exit.FAILED
    found = {cell.key.filesystem: cell for cell in cells(tmp_path)}
    assert found["good"].status == ("ok" if act == "work" else "error")
    assert "damaged" not in (found["good"].reason or "")
    assert found["bad"].status == "error"
    assert says in (found["bad"].reason or "")
    argvs = [command.argv[0] for command in found["good"].commands]
    assert argvs.index("umount") < argvs.index("e2fsck")


def test_mkfs_that_fails_fails_the_cell(tmp_path: Path) -> None:
    # 64 MiB are too few for XFS.
    done = start(tmp_path, filesystems=["xfs"])
    assert done.returncode == Exit.FAILED
    assert "mkfs.xfs" in (cells(tmp_path)[0].reason or "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_restored_and_continued(tmp_path: Path, number: signal.Signals) -> None:
    path = suite(tmp_path, repetitions=4, duration=0.5)
    given = ["--output", tmp_path / "out", "--binary", fake_bench(tmp_path)]
    argv = ["env", "--default-signal"]  # a background job of a script has SIGINT ignored
    argv += command("run", path, *given, "--junit", tmp_path / "run.xml")
    child = subprocess.Popen(argv, env=environment(), stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not cells(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    child.send_signal(number)
    _, err = child.communicate(timeout=60)
    assert child.returncode == Exit.INTERRUPTED, err
    assert number.name in err and "state is restored" in err
    assert run(tmp_path).state == "interrupted"
    told = JUnitXml.fromfile(str(tmp_path / "run.xml"))
    assert told.errors >= 1  # what it did not come to
    assert told.tests > told.errors
    finished = {cell.id: cell.started for cell in cells(tmp_path) if cell.status == "ok"}
    assert 1 <= len(finished) < 4
    (boot,) = run(tmp_path).machine.boots or []
    record = tmp_path / "out" / "run.json"
    record.write_text(record.read_text().replace(boot, "an earlier boot"))
    done = fscale("run", path, *given)
    assert done.returncode == Exit.GOOD, done.stderr
    after = {cell.id: cell for cell in cells(tmp_path)}
    assert len(after) == 4
    assert all(cell.status == "ok" for cell in after.values())
    assert all(after[name].started == started for name, started in finished.items())
    assert run(tmp_path).state == "complete"
    assert len(run(tmp_path).command) == 2
    assert run(tmp_path).machine.boots == ["an earlier boot", boot]


def test_another_run_in_the_same_directory_is_refused(tmp_path: Path) -> None:
    assert start(tmp_path).returncode == Exit.GOOD
    before = {p: p.read_text() for p in (tmp_path / "out").rglob("*.json")}
    done = start(tmp_path, duration=0.2)
    assert done.returncode == Exit.USAGE
    assert "duration: 0.1 -> 0.2" in done.stderr
    assert {p: p.read_text() for p in (tmp_path / "out").rglob("*.json")} == before


def test_another_microbenchmark_does_not_go_on_with_a_run(tmp_path: Path) -> None:
    path, binary = suite(tmp_path), fake_bench(tmp_path)
    given = ["--output", tmp_path / "out", "--binary", binary]
    assert fscale("run", path, *given).returncode == Exit.GOOD
    binary.write_text(binary.read_text() + "# rebuilt\n")
    done = fscale("run", path, *given)
    assert done.returncode == Exit.USAGE
    assert "fscale-bench: sha256:" in done.stderr


def test_what_was_missing_is_measured_once_it_is_there(tmp_path: Path) -> None:
    tool = tmp_path / "mkfs.later"
    later = tmp_path / "later.toml"
    ext4 = (paths.FILESYSTEMS / "ext4.toml").read_text()
    later.write_text(f'{ext4}needs = ["{tool}"]\n')
    filesystems = ["ext4", str(later)]
    start(tmp_path, filesystems=filesystems)
    before = {cell.key.filesystem: cell for cell in cells(tmp_path)}
    assert before["later"].status == "skipped"
    assert any("later is skipped" in warning for warning in run(tmp_path).warnings)
    write_program(tool, "#!/bin/sh\n")
    assert start(tmp_path, filesystems=filesystems).returncode == Exit.GOOD
    after = {cell.key.filesystem: cell for cell in cells(tmp_path)}
    assert after["later"].status == "ok", after["later"].reason
    assert after["ext4"] == before["ext4"]
    assert not any("skipped" in warning for warning in run(tmp_path).warnings)


@pytest.mark.parametrize(
    ("name", "key", "says"),
    [
        ("ext4", "Inode size", "256"),
        ("xfs", "meta-data.agcount", "4"),
        ("btrfs", "nodesize", "16384"),
    ],
)
def test_a_cell_tells_the_geometry_that_mkfs_chose(
    tmp_path: Path, name: str, key: str, says: str
) -> None:
    small = tmp_path / "small.toml"
    path = suite(tmp_path, filesystems=[name])
    small.write_text(small.read_text().replace("64M", "320M"))
    done = fscale("run", path, "--output", tmp_path / "out", "--binary", fake_bench(tmp_path))
    assert done.returncode == Exit.GOOD, done.stderr
    (cell,) = cells(tmp_path)
    assert cell.geometry is not None
    assert cell.geometry[key] == says
    described = catalogue.load_filesystem(name).geometry
    assert described is not None
    assert set(described.keys) == cell.geometry.keys()


def test_each_cell_is_told_to_other_test_programs(tmp_path: Path) -> None:
    path = suite(tmp_path, cores=[1], repetitions=2)
    junit, binary = tmp_path / "run.xml", fake_bench(tmp_path)
    given = ["--output", tmp_path / "out", "--binary", binary, "--junit", junit, "--wait", 240]
    done = fscale("run", path, *given, "--ktap", "-")
    assert done.returncode == Exit.GOOD, done.stderr
    (point,) = [line for line in done.stdout.splitlines() if re.match(r"ok \d", line)]
    assert done.stdout.startswith("KTAP version 1\n1..1\n")
    assert len(re.findall(r"^  ok \d", done.stdout, re.MULTILINE)) == 2
    assert str(cells(tmp_path)[0].key.filesystem) in point
    assert "results are in" in done.stderr  # beside what the other program reads
    found = JUnitXml.fromfile(str(junit))
    assert (found.tests, found.failures, found.errors) == (2, 0, 0)
    broken = tmp_path / "nowhere" / "run.xml"
    done = fscale("run", path, "--output", tmp_path / "new", "--binary", binary, "--junit", broken)
    assert done.returncode == Exit.USAGE
    assert f"--junit {broken}: {broken.parent} does not exist" in done.stderr
    assert not (tmp_path / "new").exists()


def test_two_runs_at_a_time_are_refused(tmp_path: Path) -> None:
    with machine_held(STATE, print):
        done = fscale(
            "run", suite(tmp_path), "--output", tmp_path / "out", "--binary", fake_bench(tmp_path)
        )
        assert done.returncode == Exit.USAGE
        assert f"another fscale (pid {os.getpid()}, user " in done.stderr
        assert fscale("restore").returncode == Exit.USAGE


def test_dry_run_prints_what_a_run_does_and_does_nothing(tmp_path: Path) -> None:
    before = state()
    dry = start(tmp_path, "--seed", 1, "--dry-run")
    assert state() == before
    assert dry.returncode == Exit.GOOD
    assert not (tmp_path / "out").exists()
    assert start(tmp_path, "--seed", 1).returncode == Exit.GOOD
    printed = [line.split() for line in dry.stdout.splitlines()]
    for done in cells(tmp_path)[0].commands:
        same = [w for w in printed if w[:1] == done.argv[:1] and len(w) == len(done.argv)]
        assert same, done.argv


def test_an_ordinary_user_measures_a_directory(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, ordinary_user.NOBODY, ordinary_user.NOBODY)
    argv = [sys.executable, "-m", "fscale", "run", suite(tmp_path), "--media", "dir"]
    argv += ["--output", home / "out", "--binary", fake_bench(tmp_path)]
    env = environment() | {"HOME": str(home), "XDG_RUNTIME_DIR": "", "XDG_STATE_HOME": ""}
    done = ordinary_user.run(argv, tmp_path, home, env)
    assert done.returncode == Exit.GOOD, done.stderr
    (file,) = (home / "out" / "cells").glob("*.json")
    cell = json.loads(file.read_text())
    assert cell["status"] == "ok"
    assert cell["cpu_control"] == "affinity"
    assert not any(c["argv"][0] in ("mount", "losetup") for c in cell["commands"])
    assert [p.name for p in home.iterdir() if not p.name.startswith(".")] == ["out"]


class Freezer:
    """A profiler that freezes the file system, so that writers hang in the kernel."""

    name = "freezer"

    def start(self, context: Context) -> None:
        subprocess.run(["fsfreeze", "--freeze", context.directory.parent], check=True)

    def stop(self) -> None:
        pass

    def complete(self, cell: Cell) -> None:
        pass


def prepared(tmp_path: Path, **changes: Any) -> Prepared:
    request = Request(
        suite=suite(tmp_path, **changes), output=tmp_path / "out", binary=fake_bench(tmp_path)
    )
    made = prepare(request)
    made.setup.profilers = {"freezer": Freezer()}
    made.cells = [cell.model_copy(update={"profile": "freezer"}) for cell in made.cells]
    return made


def test_a_worker_that_hangs_in_the_kernel_does_not_hang_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All patience is a tenth of what it is: with the whole of it, this lasts a minute.
    kill = processes.kill
    monkeypatch.setattr(processes, "kill", lambda find, timeout: kill(find, timeout / 10))
    monkeypatch.setattr(changes, "_BUSY", changes._BUSY / 10)
    made = prepared(tmp_path, margin=0.5, options={"DRBL": {"act": "write"}})
    messages: list[str] = []
    target = STATE / "mnt"
    session = Session(made.setup, made.store, STATE, Executor(new_tag()), Signals())
    began = time.monotonic()
    try:
        with machine_held(STATE, messages.append):
            made.store.save_run(made.run)
            with pytest.raises(Stopped, match="fscale restore"), session.opened():
                session.cell(made.cells[0])
        assert time.monotonic() - began < 30
        (cell,) = cells(tmp_path)
        assert cell.status == "error"
        assert "hangs in the kernel" in (cell.reason or "")
        assert "state D" in cell.extra["stuck"][0]
        assert "kernel stack" in cell.extra["stuck"][0]
        # The next start refuses as long as the cause is there.
        with (
            pytest.raises(FscaleError, match="cannot be undone"),
            machine_held(STATE, messages.append),
        ):
            pass
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", target], check=False)
        restored = fscale("restore")
    assert restored.returncode == Exit.GOOD, restored.stderr


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A loop device with a stable path, as a disk has."""
    image = tmp_path / "disk"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    argv = ["losetup", "--find", "--show", str(image)]
    node = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()
    (tmp_path / "by-id").mkdir()
    (tmp_path / "by-id" / "wwn-1").symlink_to(node)
    yield tmp_path / "by-id" / "wwn-1"
    subprocess.run(["losetup", "--detach", node], check=True)


def test_a_device_needs_the_users_word_once(tmp_path: Path, disk: Path) -> None:
    request = Request(
        suite=suite(tmp_path),
        output=tmp_path / "out",
        binary=fake_bench(tmp_path),
        device=disk,
        by_id=disk.parent,
    )
    with machine_held(STATE, print):
        with pytest.raises(FscaleError, match="--yes-format wwn-1"):
            prepare(request)
        for number, word in enumerate(["wwn-1", None]):
            request.yes_format, request.output = word, tmp_path / f"out{number}"
            made = prepare(request)
            session = Session(made.setup, made.store, STATE, Executor(new_tag()), Signals())
            with session.opened():
                cell = session.cell(made.cells[0])
            assert cell.status == "ok", cell.reason
            assert cell.key.medium == "device"
            assert cell.commands[0].argv[-1] == str(disk.resolve())


def test_latencies_are_kept_as_a_histogram(tmp_path: Path) -> None:
    if not paths.BENCH.exists():
        pytest.skip("the microbenchmark is not built")
    path = suite(tmp_path, latency=True, filesystems=["tmpfs"])
    done = fscale("run", path, "--output", tmp_path / "out")
    assert done.returncode == Exit.GOOD, done.stderr
    latency = cells(tmp_path)[0].latency
    assert latency is not None
    assert latency["count"] > 0
    assert 0 < latency["quantiles"]["50"] <= latency["quantiles"]["99"]
