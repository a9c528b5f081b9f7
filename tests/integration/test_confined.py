# SPDX-License-Identifier: GPL-2.0-only
"""Runs in places like containers: quotas, limits, namespaces, missing rights."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from fscale.model.errors import Exit
from fscale.model.paths import ROOT
from fscale.model.results import Cell, Run
from fscale.model.store import Store
from fscale.runner.cell.accounting import cpu_times
from fscale.runner.machine.confinement import MAX_THROTTLED
from fscale.system import cgroups
from tests.support import ordinary_user
from tests.support.namespaces import unshare
from tests.support.runner import command, environment

pytestmark = [
    pytest.mark.root,
    pytest.mark.live,
    pytest.mark.skipif(os.geteuid() != 0, reason="makes control groups and namespaces"),
    pytest.mark.usefixtures("unchanged"),
]

MIB = 1 << 20
QUICK = ("run", "quick", "--workload", "DRBL", "--repetitions", 1, "--duration", 0.3)


@contextlib.contextmanager
def groups(limits: dict[str, str]) -> Iterator[list[Path]]:
    """Control groups with limits (names and values of v2), on whichever version there is."""
    made: list[Path] = []
    try:
        for name, value in limits.items():
            controller = name.partition(".")[0]
            chain = cgroups.chain(controller)
            if chain is None:
                pytest.skip(f"there is no control group for {controller}")
            place = chain.groups[0]
            if chain.version == 2:  # one for all controllers, where they can be handed on
                place = chain.groups[-1]
                (place / "cgroup.subtree_control").write_text(f"+{controller}")
            path = place / f"test-confined-{os.getpid()}"
            if path not in made:
                path.mkdir()
                made.append(path)
            for file, text in [(name, value)] if chain.version == 2 else _older(name, value):
                (path / file).write_text(text)
        yield made
    finally:
        for path in made:
            path.rmdir()


def _older(name: str, value: str) -> list[tuple[str, str]]:
    if name == "cpu.max":
        quota, period = value.split()
        return [("cpu.cfs_period_us", period), ("cpu.cfs_quota_us", quota)]
    return [("memory.limit_in_bytes", value)]


def inside(joined: Sequence[Path], *argv: object) -> list[str]:
    """A command as a member of groups."""
    join = "".join(f"echo $$ > {path}/cgroup.procs; " for path in joined)
    return ["/bin/sh", "-ec", f'{join}exec "$@"', "-", *map(str, argv)]


def start(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, env=environment(), cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )


def results(output: Path) -> tuple[Run, list[Cell]]:
    store = Store(output)
    run = store.load_run()
    assert run is not None
    return run, store.cells()


def test_a_cell_that_a_quota_stops_is_invalid(tmp_path: Path) -> None:
    # Little enough that it is used up beside others' load, too.
    with groups({"cpu.max": "30000 100000"}) as made:
        argv = command(*QUICK, "--fs", "tmpfs", "--cores", 1, "--output", tmp_path / "out")
        done = start(inside(made, *argv))
    assert done.returncode == Exit.FAILED, done.stderr
    run, (cell,) = results(tmp_path / "out")
    assert run.machine.confinement is not None
    assert run.machine.confinement.cpus == 0.3
    assert any("may use 0.30 CPUs" in text for text in run.warnings)
    assert cell.status == "invalid"
    assert (cell.throttled_seconds or 0) > MAX_THROTTLED * 0.3
    assert "CPU quota" in (cell.reason or "")


@pytest.mark.parametrize(
    ("limit", "arguments"),
    [
        (512 * MIB, ["smoke", "--fs", "ext4", "--media", "ram"]),
        (300 * MIB, ["smoke", "--fs", "tmpfs"]),
        (800 * MIB, ["quick"]),
    ],
)
def test_what_the_limit_is_too_small_for_is_refused(
    tmp_path: Path, limit: int, arguments: list[str]
) -> None:
    with groups({"memory.max": str(limit)}) as made:
        argv = command("run", *arguments, "--output", tmp_path / "out")
        done = start(inside(made, *argv))
    assert done.returncode == Exit.USAGE, done.stderr
    assert f"limit of this cgroup is {limit // MIB} MiB" in done.stderr
    assert not (tmp_path / "out").exists()


def test_media_are_a_share_of_the_limit(tmp_path: Path) -> None:
    with groups({"memory.max": str(1 << 30)}) as made:
        argv = command(*QUICK, "--cores", 1, "--output", tmp_path / "out")
        done = start(inside(made, *argv))
    run, cells = results(tmp_path / "out")
    assert run.machine.confinement is not None
    assert run.machine.confinement.memory_bytes == 1 << 30
    status = {cell.key.filesystem: cell.status for cell in cells}
    assert status == {"tmpfs": "ok", "ext4": "ok", "btrfs": "ok", "xfs": "skipped"}, done.stderr
    assert any("xfs is skipped: its mkfs needs 300 MiB" in text for text in run.warnings)


@contextlib.contextmanager
def hogs() -> Iterator[None]:
    """A busy process on each CPU."""
    spin = "while :; do :; done"
    busy = [
        subprocess.Popen(["taskset", "--cpu-list", str(cpu), "sh", "-c", spin])
        for cpu in sorted(os.sched_getaffinity(0))
    ]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def test_a_neighbour_outside_of_the_pid_namespace_is_noticed(tmp_path: Path) -> None:
    argv = command(*QUICK, "--dir", tmp_path, "--cores", 1, "--output", tmp_path / "out")
    with hogs():
        done = start([*unshare("--pid", "--fork", "--mount-proc"), *argv])
    assert done.returncode == Exit.GOOD, done.stderr
    run, (cell,) = results(tmp_path / "out")
    assert "CPUs" in (cell.disturbed or "")
    assert any("processes of others" in text for text in run.warnings)


@pytest.mark.parametrize(
    ("without", "says"),
    [
        (["setpriv", "--bounding-set=-sys_admin"], "CAP_SYS_ADMIN"),
        (["unshare", "--user", "--map-root-user"], "root of a user namespace"),
    ],
)
def test_root_that_may_not_mount_is_told_so(tmp_path: Path, without: list[str], says: str) -> None:
    if start([*without, "true"]).returncode:
        pytest.skip(f"{without[0]} is denied here, as a user namespace is in a chroot")
    argv = command("run", "smoke", "--output", tmp_path / "out")
    done = start([*without, *argv])
    assert done.returncode == Exit.USAGE
    assert says in done.stderr
    assert "--dir DIRECTORY" in done.stderr
    # What `make run` asks before it chooses.
    asked = start([*without, sys.executable, "-m", "fscale.system.powers"])
    assert (asked.returncode, says in asked.stderr) == (1, True)
    argv = command(*QUICK, "--media", "dir", "--cores", 1, "--output", tmp_path / "dir")
    done = start([*without, *argv])
    assert done.returncode == Exit.GOOD, done.stderr
    run, (cell,) = results(tmp_path / "dir")
    assert run.machine.confinement is not None
    assert says in run.machine.confinement.denied["mount"]
    assert cell.status == "ok"


def busy_cpus() -> float:
    """How many CPUs are busy now."""

    def busy() -> float:
        return sum(cpu.total - cpu.idle - cpu.iowait for cpu in cpu_times().values())

    before = busy()
    time.sleep(0.5)
    return (busy() - before) / 0.5


SEES_NO_QUOTA = (
    "mount --make-rprivate /sys; "
    "if umount /sys/fs/cgroup/cpu 2>/dev/null; then mount -t cgroup -o cpu none /sys/fs/cgroup/cpu;"
    'else umount /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; fi; exec "$@"'
)


def test_a_quota_above_a_cgroup_namespace_is_found(tmp_path: Path) -> None:
    """The group below the one with the quota is all that is seen there."""
    if busy_cpus() > 0.3:
        pytest.skip("others use what the quota leaves idle: nothing tells it from their load")
    argv = command(*QUICK, "--fs", "tmpfs", "--cores", 1, "--output", tmp_path / "out")
    container = [*unshare("--cgroup"), "/bin/sh", "-ec", SEES_NO_QUOTA, "-", *argv]
    with groups({"cpu.max": "20000 100000"}) as made:
        below = made[0] / "below"
        below.mkdir()
        try:
            done = start(inside([below], *container))
        finally:
            below.rmdir()
    assert done.returncode == Exit.FAILED, done.stderr
    run, (cell,) = results(tmp_path / "out")
    assert run.machine.confinement is not None
    assert run.machine.confinement.cpus is None
    assert 0.05 < (run.machine.confinement.cpus_found or 0) < 0.6
    assert any("ancestor cgroups" in text for text in run.warnings)
    assert cell.status == "invalid"


READ_ONLY = 'mount -o remount,ro,bind /sys; exec "$@"'


def test_an_ordinary_user_in_a_container(tmp_path: Path) -> None:
    """One CPU's quota, 1 GiB, namespaces, /sys read-only: it says what it cannot do."""
    tree = Path(tempfile.mkdtemp(prefix="fscale-confined-"))
    shutil.chown(tree, ordinary_user.NOBODY)
    fscale = [sys.executable, "-m", "fscale", *map(str, QUICK), "--media", "dir"]
    as_nobody = [sys.executable, "-m", "tests.support.ordinary_user", str(tree), str(tree), *fscale]
    container = unshare("--pid", "--fork", "--mount-proc", "--cgroup", "--uts")
    argv = [*container, "/bin/sh", "-ec", READ_ONLY, "-", *as_nobody]
    argv += ["--cores", "1,2", "--output", str(tree / "out")]
    env = environment() | {"HOME": str(tree)}
    env.pop("XDG_RUNTIME_DIR", None)
    try:
        with groups({"cpu.max": "100000 100000", "memory.max": str(1 << 30)}) as made:
            done = subprocess.run(
                inside(made, *argv),
                env=env, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
        run, cells = results(tree / "out")
    finally:
        shutil.rmtree(tree)
    found = run.machine.confinement
    assert found is not None, done.stderr
    assert (found.cpus, found.memory_bytes) == (1.0, 1 << 30)
    assert set(found.denied) == {"mount", "hotplug", "drop caches"}
    assert {kind for kind, initial in found.namespaces.items() if initial is False} >= {
        "cgroup", "pid", "uts",
    }  # fmt: skip
    said = "\n".join(run.warnings)
    for word in ("may use 1.00 CPUs", "1024 MiB", "processes of others", "caches are not dropped"):
        assert word in said
    scored = [cell for cell in cells if not cell.key.control]
    assert len(scored) == len([count for count in (1, 2) if count <= (os.cpu_count() or 1)])
    for cell in cells:
        lost = (cell.throttled_seconds or 0) / (len(cell.cpus) * cell.extra["accounted_seconds"])
        assert cell.status == ("invalid" if lost > MAX_THROTTLED else "ok"), cell.reason
        assert cell.throttled_seconds is not None
        # A control touches no file, so that no cache is dropped before it.
        assert cell.caches_dropped is (None if cell.key.control else False)
        assert cell.cpu_control == "affinity"
    good = all(cell.status == "ok" for cell in cells)
    assert done.returncode == (Exit.GOOD if good else Exit.FAILED), done.stderr
