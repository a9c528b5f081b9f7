# SPDX-License-Identifier: GPL-2.0-only
"""Workloads that mount: what else they keep in use, what others see, what is left of a mount."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fscale.model.paths import ROOT
from tests.support import bench

pytestmark = [pytest.mark.live, bench.needs_root]

MOUNTING = [workload for workload in bench.WORKLOADS if bench.mounts(workload)]
# A small stock, for the time until a window begins.
LONG = ("--duration", "60", "--warmup", "0.02", "--max-stock", "2000", "--min-window", "0.001")
STRACE = ("strace", "-f", "-o", os.devnull)
STATMOUNT = 457  # the system call, on all but Alpha


def mounts(pid: int | str) -> list[str]:
    """Where the mounts are that a process sees."""
    lines = Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
    return [line.split()[4] for line in lines]


def ended(argv):
    """The exit code and the answer of a bench that was started by another program."""
    return bench.finish(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=ROOT))


def namespace(pid: int | str) -> Path:
    """The mount namespace of a process."""
    return Path(f"/proc/{pid}/ns/mnt").readlink()


@pytest.mark.parametrize("workload", MOUNTING)
def test_mounts_are_a_run_s_own(workload, tmp_path):
    """Nobody else sees them, and no mount of the machine is kept in use."""
    process, workers = bench.start(workload, tmp_path / "d", *LONG)
    try:
        assert not any(where.startswith(str(tmp_path)) for where in mounts("self"))
        for worker in workers:
            assert namespace(worker) != namespace("self")
            assert not {"/proc", "/dev", "/sys"} & {*mounts(worker)}
            assert len(mounts(worker)) <= 1 + len(workers)
    finally:
        process.send_signal(signal.SIGINT)
        code, out = bench.finish(process)
    assert (code, out.status) == (3, "interrupted")


@pytest.mark.parametrize("victim", ["worker", "parent"])
@pytest.mark.parametrize("workload", MOUNTING)
def test_a_kill_leaves_no_mount(workload, victim, tmp_path):
    """The image's loop device is free as soon as no mount keeps the file system."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    with bench.mounted(tmp_path / "m", "-o", "loop", str(image)) as place:
        process, workers = bench.start(workload, place / "d", *LONG)
        os.kill(workers[-1] if victim == "worker" else process.pid, signal.SIGKILL)
        process.communicate(timeout=20)
        assert bench.wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
    listed = ["losetup", "--associated", str(image)]
    assert bench.wait_for(
        lambda: not subprocess.run(listed, check=True, capture_output=True).stdout
    )


@pytest.mark.parametrize("workload", MOUNTING)
def test_who_may_not_mount_skips(workload, tmp_path):
    argv = ["setpriv", "--bounding-set=-sys_admin", *bench.argv(workload, tmp_path / "d", *LONG)]
    code, out = ended(argv)
    assert (code, out.error.call, out.error.name) == (77, "unshare(CLONE_NEWNS)", "EPERM")


@pytest.mark.parametrize("workload", ["copy_up_private", "whiteout_private"])
def test_a_kernel_without_overlays_skips(workload, tmp_path):
    """The first mount makes the namespace private."""
    inject = ("-e", "trace=mount", "-e", "inject=mount:error=ENODEV:when=2+")
    code, out = ended([*STRACE, *inject, *bench.argv(workload, tmp_path / "d", *LONG)])
    assert (code, out.error.call, out.error.name) == (77, "mount(overlay)", "ENODEV")


@pytest.mark.parametrize("workload", ["copy_up_dir", "whiteout_dir"])
def test_an_upper_layer_that_cannot_be_one_skips(workload, tmp_path):
    """An overlay is none."""
    layers = [tmp_path / name for name in ("lower", "upper", "work")]
    for layer in layers:
        layer.mkdir()
    lower, upper, work = layers
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    with bench.mounted(tmp_path / "m", "-t", "overlay", "-o", options, "overlay") as place:
        code, out = bench.run(workload, place / "d", *LONG)
    assert (code, out.error.call, out.error.name) == (77, "mount(overlay)", "EINVAL")


def test_a_kernel_without_statmount_skips(tmp_path):
    argv = [sys.executable, "-m", "tests.support.syscall_fault", str(STATMOUNT)]
    argv += bench.argv("statmount_shared", tmp_path / "d", *LONG)
    code, out = ended(argv)
    assert (code, out.error.call, out.error.name) == (77, "statmount", "ENOSYS")


FUSE = ["fuse_getattr_private", "fuse_getattr_dir"]


@pytest.mark.parametrize("workload", FUSE)
def test_a_kernel_without_fuse_skips(workload, tmp_path):
    inject = ("-P", "/dev/fuse", "-e", "inject=openat:error=ENODEV")
    code, out = ended([*STRACE, *inject, *bench.argv(workload, tmp_path / "d", *LONG)])
    assert (code, out.status, out.error.name) == (77, "error", "ENODEV")


@pytest.mark.parametrize("workload", FUSE)
def test_requests_are_answered_on_the_worker_s_cpu(workload, tmp_path):
    """By a process of its own, which keeps nothing of the file system under test open."""
    process, workers = bench.start(workload, tmp_path / "d", *LONG, count=2)
    try:
        for cpu, worker in zip(bench.cpus(2), workers, strict=True):
            (answering,) = bench.children(worker)
            assert bench.comm(answering) == "fscale-fuse"
            assert os.sched_getaffinity(answering) == {cpu}
            assert namespace(answering) == namespace("self")
            open_files = [link.readlink() for link in Path(f"/proc/{answering}/fd").iterdir()]
            assert {*map(str, open_files)} == {"/dev/null", "/dev/fuse"}
            assert Path(f"/proc/{answering}/cwd").readlink() == Path("/")
    finally:
        process.send_signal(signal.SIGINT)
        bench.finish(process)


@pytest.mark.parametrize("workload", FUSE)
def test_a_worker_ends_with_the_process_that_answers(workload, tmp_path):
    process, workers = bench.start(workload, tmp_path / "d", *LONG, count=2)
    answering = [pid for worker in workers for pid in bench.children(worker)]
    os.kill(answering[1], signal.SIGKILL)
    code, out = bench.finish(process, timeout=bench.SOON)
    assert (code, out.status) == (1, "error")
    # In one file system of all, it may have taken another worker's request.
    assert out.error.worker == 1 or workload == "fuse_getattr_dir"
    # Its request fails before the signal comes, if it has one that was taken.
    gone = out.error.name in ("ECONNABORTED", "ENOTCONN")
    assert gone or f"signal {int(signal.SIGUSR1)}" in out.error.message
    assert not any(Path(f"/proc/{pid}").exists() for pid in (*workers, *answering))


@pytest.mark.parametrize(
    "workload", [w for w in MOUNTING if not w.startswith(("copy_up", "whiteout"))]
)
def test_only_directories_are_left(workload, tmp_path):
    """Empty ones: nothing was written to the file system under test."""
    bench.run_good(workload, tmp_path / "d", "--duration", "0.3", "--warmup", "0.02")
    assert all(path.is_dir() for path in (tmp_path / "d").rglob("*"))
