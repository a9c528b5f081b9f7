# SPDX-License-Identifier: GPL-2.0-only
"""Workers as threads of one process: what they share, where they run, how they are counted."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support import bench

pytestmark = pytest.mark.live

THREADS = ("--option", "workers=threads")
LONG = ("--duration", "30", "--warmup", "0.1")


def named(pid: int, name: str) -> list[int]:
    """The threads of a process that bear a name."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            found.append(int(task.name))
    return sorted(found)


def start(workload: str, directory: Path, *more: str) -> tuple[subprocess.Popen[str], int]:
    """A run whose window has begun, and the process whose threads are its workers."""
    line = bench.argv(workload, directory, *LONG, *more, count=2)
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for pid in bench.children(process.pid):
            if len(named(pid, "fscale-run")) == 2:
                return process, pid
        time.sleep(0.01)
    process.kill()
    pytest.fail(f"no worker ran: {process.communicate()[0]}")


def data_files(pid: int, tid: int) -> int:
    """How many files of the name `data` are open in a thread's descriptor table."""
    links = Path(f"/proc/{pid}/task/{tid}/fd").iterdir()
    return sum(link.readlink().name == "data" for link in links)


@pytest.mark.parametrize(("workers", "seen"), [("threads", [2, 2]), ("threads_files", [1, 1])])
def test_threads_are_pinned_and_share_what_is_asked(workers, seen, tmp_path):
    process, pid = start("DRBL", tmp_path / "d", "--option", f"workers={workers}")
    try:
        tids = named(pid, "fscale-run")
        assert [data_files(pid, tid) for tid in tids] == seen
        assert [os.sched_getaffinity(tid) for tid in tids] == [{cpu} for cpu in bench.cpus(2)]
        assert bench.children(process.pid) == [pid]
    finally:
        process.send_signal(signal.SIGINT)
        code, out = bench.finish(process)
    assert (code, out.status, out.options["workers"]) == (3, "interrupted", workers)


# One of each kind: private and shared files, stocks, background writers, directories, maps, rings.
KINDS = [
    "DRBL", "DRBM_bg", "DWAL", "DWRL", "MRDL", "MRPM_bg", "MWCL", "MWRL", "MWUM",
    "creat_shared", "fault_shared", "fstat_shared", "rename_dir", "uring_write_shared",
    "bind_mount_private", "bind_mount_dir", "statmount_shared_bg", "copy_up_private",
    "copy_up_dir", "whiteout_private", "whiteout_dir", "fuse_getattr_private", "fuse_getattr_dir",
]  # fmt: skip


@pytest.mark.parametrize("binary", [bench.BENCH, bench.SANITIZED])
@pytest.mark.parametrize("workload", bench.parameters(KINDS))
def test_threads_do_what_processes_do(workload, binary, fast):
    short = (
        "--duration",
        "0.2",
        "--warmup",
        "0.02",
        "--max-stock",
        "5000",
        "--min-window",
        "0.001",
    )
    code, out = bench.run(workload, fast / "d", *short, *THREADS, count=2, binary=binary)
    assert (code, out.status) == (0, "ok"), out.reason
    assert out.ops == sum(w.ops for w in out.workers) > 0
    assert out.options["workers"] == "threads"
    assert {w.cpu for w in out.workers} <= set(out.cpus)


def test_a_thread_is_charged_what_it_uses(tmp_path):
    out = bench.run_good("DRBL", tmp_path / "d", "--duration", "1", *THREADS, count=2)
    for worker in out.workers:
        charged = worker.user_seconds + worker.system_seconds
        assert 0.05 < charged <= out.seconds * 1.02


def test_a_turn_counts_the_operations_of_threads(tmp_path):
    turns = (*THREADS, "--duration", "1", "--slice", "0.1")
    process, told, ask = bench.start_held("DRBL", tmp_path / "d", *turns, count=2)
    with told:
        for _ in range(3):
            os.write(ask, b"x")
            assert told.readline()
        os.close(ask)
    code, out = bench.finish(process)
    assert (code, out.status) == (0, "ok"), out.reason
    assert all(worker.ops > 0 for worker in out.workers)


def test_a_thread_that_fails_ends_all(tmp_path):
    process, _ = start("MRPL", tmp_path / "d", *THREADS)
    (tmp_path / "d/1/0/0/0/0").unlink()
    code, out = bench.finish(process, timeout=bench.SOON)
    assert (code, out.error.call, out.error.name, out.error.worker) == (1, "open", "ENOENT", 1)


def test_a_process_of_threads_that_dies_is_noticed(tmp_path):
    process, pid = start("DRBL", tmp_path / "d", *THREADS)
    os.kill(pid, signal.SIGKILL)
    code, out = bench.finish(process, timeout=bench.SOON)
    assert (code, out.status) == (1, "error")
    assert "killed by signal 9" in out.error.message


def test_threads_have_one_memory_map(tmp_path):
    """A mapping of each worker's own, in one process; each is absent while it is mapped anew."""
    process, pid = start("fault_private", tmp_path / "d", *THREADS)
    missing = {"/0/file", "/1/file"}
    deadline = time.monotonic() + 20
    while missing and time.monotonic() < deadline:
        maps = Path(f"/proc/{pid}/maps").read_text()
        missing = {name for name in missing if name not in maps}
    process.send_signal(signal.SIGINT)
    bench.finish(process)
    assert not missing
