# SPDX-License-Identifier: GPL-2.0-only
"""What goes wrong is noticed at once, said clearly, and never counted as a result."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support import bench
from tests.support.bench import mounted, needs_root

pytestmark = pytest.mark.live

QUICK = ("--duration", "0.1", "--warmup", "0.02")
LONG = ("--duration", "60", "--warmup", "0.02")


def tmpfs(where, options):
    return mounted(where, "-t", "tmpfs", "-o", options, "fscale-test")


def gone(pids):
    deadline = time.monotonic() + 5
    while any(Path(f"/proc/{p}").exists() for p in pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not any(Path(f"/proc/{p}").exists() for p in pids)


# The 256 operations of the pilot, and a part of the first window.
SLOW_AT_FIRST = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

ssize_t write(int fd, const void *data, size_t bytes)
{
	static ssize_t (*next)(int, const void *, size_t);
	static int calls;

	if (!next)
		next = dlsym(RTLD_NEXT, "write");
	if (bytes == 4096 && calls++ < 400)
		usleep(200);
	return next(fd, data, bytes);
}
"""


def test_a_stock_grows_when_operations_become_faster_after_a_window(fast, monkeypatch):
    """Such as writes to memory that a host has to provide first."""
    library = bench.preloaded(fast / "slow.so", SLOW_AT_FIRST)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    out = bench.run_good("DWAL", fast / "d", "--duration", "0.1", "--warmup", "0", count=1)
    assert len(out.windows) > 1
    assert out.stock.per_worker > 2000


@pytest.mark.parametrize("workload", ["DRBL", "MWCL", "MRPL"])
def test_dead_worker(workload, tmp_path):
    process, workers = bench.start(workload, tmp_path / "d", *LONG)
    killed = time.monotonic()
    os.kill(workers[-1], signal.SIGKILL)
    code, out = bench.finish(process)
    assert time.monotonic() - killed < 2
    assert (code, out.status, out.end) == (1, "error", "error")
    assert out.error.worker == len(workers) - 1
    assert "killed by signal 9" in out.error.message
    assert gone(workers)


def test_dead_worker_at_a_barrier(tmp_path):
    """Worker 0 waits for the go-ahead when it dies: nobody waits for it for ever."""
    process, told, ask = bench.start_held("DRBL", tmp_path / "d", *LONG)
    os.kill(bench.children(process.pid)[0], signal.SIGKILL)
    code, out = bench.finish(process, timeout=bench.SOON)
    assert (code, out.error.worker) == (1, 0)
    told.close()
    os.close(ask)


def test_sync_partner_goes_away(tmp_path):
    process, told, ask = bench.start_held("DRBL", tmp_path / "d", *LONG)
    told.close()
    os.close(ask)
    code, out = bench.finish(process, timeout=bench.SOON)
    assert (code, out.error.name, out.ops) == (1, "EPIPE", 0)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("workload", ["DWOL", "MWUL"])
def test_signal(workload, signum, tmp_path):
    # A small stock, so that it is interrupted between windows too: these may be short.
    short = ("--max-stock", "5000", "--min-window", "0.001")
    process, workers = bench.start(workload, tmp_path / "d", *LONG, *short)
    time.sleep(0.5)
    process.send_signal(signum)
    code, out = bench.finish(process, timeout=bench.SOON)
    assert (code, out.status, out.end) == (3, "interrupted", "interrupted")
    assert out.ops > 0
    assert gone(workers)


def test_workers_do_not_outlive_their_parent(tmp_path):
    process, workers = bench.start("DRBL", tmp_path / "d", *LONG)
    process.kill()
    process.communicate()
    assert gone(workers)


def test_failing_operation(tmp_path):
    """The first failing call ends the run and names itself."""
    process, _ = bench.start("MRPL", tmp_path / "d", *LONG)
    (tmp_path / "d/0/0/0/0/0").unlink()
    code, out = bench.finish(process, timeout=bench.SOON)
    assert (code, out.status, out.end) == (1, "error", "error")
    assert (out.error.call, out.error.name, out.error.worker) == ("open", "ENOENT", 0)
    assert out.error.path == str(tmp_path / "d/0/0/0/0/0")
    assert "No such file" in out.error.message


def test_a_window_without_operations(tmp_path):
    process, workers = bench.start("DRBL", tmp_path / "d", "--warmup", "1", "--duration", "0.2")
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(1.5)
    for pid in workers:
        os.kill(pid, signal.SIGCONT)
    code, out = bench.finish(process, timeout=bench.SOON)
    assert (code, out.status, out.ops) == (1, "invalid", 0)
    assert "--duration" in out.reason


def test_short_read(tmp_path):
    process, _ = bench.start("DRBL", tmp_path / "d", *LONG)
    os.truncate(tmp_path / "d/0/data", 100)
    code, out = bench.finish(process, timeout=bench.SOON)
    assert (code, out.error.call, out.error.name) == (1, "pread", "EIO")
    assert "100 of 4096 bytes" in out.error.message


def test_too_many_open_files(tmp_path):
    argv = ["prlimit", "--nofile=5:5", *bench.argv("DRBL", tmp_path / "d", *QUICK)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    code, out = bench.finish(process)
    assert (code, out.status, out.error.name) == (1, "error", "EMFILE")


@needs_root
@pytest.mark.root
def test_no_inodes_for_the_set_up(tmp_path):
    with tmpfs(tmp_path / "m", "nr_inodes=1000") as mount:
        code, out = bench.run("MRPM", mount, *QUICK)
    assert (code, out.status, out.end) == (1, "error", "no_space")
    assert (out.error.call, out.error.name) in {("open", "ENOSPC"), ("mkdir", "ENOSPC")}
    assert out.error.path.startswith(str(mount))


@needs_root
@pytest.mark.root
@pytest.mark.parametrize(
    ("workload", "options", "bound", "most"),
    [
        ("DWAL", "size=4m", "space", 768),
        ("DWTL", "size=4m", "space", 768),
        ("MWCL", "size=1g,nr_inodes=400", "inodes", 360),
        ("MWUM", "size=1g,nr_inodes=400", "inodes", 360),
    ],
)
def test_stock_stays_within_bounds(workload, options, bound, most, tmp_path):
    with tmpfs(tmp_path / "m", options) as mount:
        out = bench.run_good(workload, mount, *QUICK, "--warmup", "0", "--min-window", "0.0001")
    assert out.stock.bound == bound
    assert most * 0.9 < out.stock.per_worker <= most < out.stock.wanted


@needs_root
@pytest.mark.root
def test_tmpfs_without_limits(tmp_path):
    with tmpfs(tmp_path / "m", "size=0,nr_inodes=0") as mount:
        out = bench.run_good("MWCL", mount, *QUICK)
    assert out.stock.bound == "pilot"


@pytest.mark.parametrize(("flag", "value", "bound"), [
    ("--space", "1048576", "space"),
    ("--inodes", "512", "inodes"),
    ("--max-stock", "512", "maximum"),
])  # fmt: skip
def test_given_bounds(flag, value, bound, fast):
    given = (*QUICK, "--warmup", "0", "--min-window", "0.0001", flag, value)
    out = bench.run("MWCL", fast / "d", *given, bound=bound)[1]
    assert (out.stock.bound, out.stock.per_worker) == (bound, 512)


def test_no_room_at_all(tmp_path):
    code, out = bench.run("DWAL", tmp_path / "d", *QUICK, "--space", "4000")
    assert (code, out.status, out.end, out.error.name) == (1, "error", "no_space", "ENOSPC")
    assert "--space" in out.reason


def test_window_too_short(tmp_path):
    # However long the worker waits for a CPU, twenty files do not last for a minute.
    minute = ("--duration", "60", "--min-window", "60", "--warmup", "0.02")
    code, out = bench.run("MWCL", tmp_path / "d", *minute, "--max-stock", "20")
    assert (code, out.status, out.end) == (1, "invalid", "exhausted")
    assert (out.stock.bound, out.stock.per_worker) == ("maximum", 20)
    assert "--max-stock" in out.reason
    assert (out.windows, out.ops, out.ops_per_second, out.error) == ([], 0, 0, None)


@needs_root
@pytest.mark.root
def test_tmpfs_is_not_direct(tmp_path):
    with tmpfs(tmp_path / "m", "size=10m") as mount:
        code, out = bench.run("DRBL", mount, *QUICK, "--mode", "direct")
    assert (code, out.status) == (77, "error")
    assert (out.error.call, out.error.name) == ("open(O_DIRECT)", "EOPNOTSUPP")


@needs_root
@pytest.mark.root
@pytest.mark.parametrize(
    ("mkfs", "mount", "direct"),
    [([], "rw", True), (["-O", "inline_data"], "rw", True), ([], "data=journal", False)],
    ids=["plain", "inline", "journal"],
)
def test_direct_io_that_is_none_is_refused(tmp_path, mkfs, mount, direct):
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", *mkfs, str(image)], check=True)
    with mounted(tmp_path / "m", "-o", f"loop,{mount}", str(image)) as place:
        code, out = bench.run("DWOL", place / "d", *QUICK, "--mode", "direct")
        left = list((place / "d").rglob("direct-*"))
    assert (code, out.status) == ((0, "ok") if direct else (77, "error"))
    if not direct:
        assert (out.error.call, out.error.name) == ("open(O_DIRECT)", "EOPNOTSUPP")
    assert left == []


@needs_root
@pytest.mark.root
def test_dontcache_where_it_is_lacking(tmp_path):
    with tmpfs(tmp_path / "m", "size=10m") as mount:
        code, out = bench.run("DRBL", mount, *QUICK, "--mode", "dontcache")
    assert (code, out.error.call, out.error.name) == (77, "pwritev2", "EOPNOTSUPP")


@needs_root
@pytest.mark.root
def test_worker_stuck_in_the_kernel(tmp_path):
    """A frozen file system holds the writer in D state, where SIGKILL does not reach it."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    with mounted(tmp_path / "m", "-o", "loop", str(image)) as mount:
        directory = mount / "d"
        process, workers = bench.start("DWOL", directory, *LONG)
        subprocess.run(["fsfreeze", "-f", str(mount)], check=True)
        try:
            process.send_signal(signal.SIGINT)
            code, out = bench.finish(process, timeout=bench.SOON)
        finally:
            subprocess.run(["fsfreeze", "-u", str(mount)], check=True)
        assert gone(workers)
    assert (code, out.status) == (3, "interrupted")
    assert "1 workers are stuck" in out.reason


def test_latency(tmp_path):
    (tmp_path / "l").mkdir()
    out = bench.run_good("DWAL", tmp_path / "d", *QUICK, "--latency", str(tmp_path / "l"))
    assert out.latency.files == ["worker-0.hist"]
    recorded = histogram(tmp_path / "l/worker-0.hist")
    (samples,), (dropped,) = out.latency.samples, out.latency.dropped
    assert sum(recorded.values()) == samples
    assert dropped == max(0, out.ops - samples)
    # Only what ends while the parent takes note of an edge is on one side of it alone.
    assert samples == pytest.approx(out.ops, rel=0.01, abs=2 * len(out.windows))
    assert min(recorded) > 0
    # The operations fill the window but for the loop around them; one may have begun before it.
    longest = max(recorded)
    filled = sum(ns * count for ns, count in recorded.items()) - longest
    assert 0.3 * out.seconds < filled / 1e9 <= out.seconds * 1.01


def histogram(path):
    """Nanoseconds -> count."""
    numbers = memoryview(path.read_bytes()).cast("Q").tolist()
    return dict(zip(numbers[::2], numbers[1::2], strict=True))


def test_the_warm_up_takes_no_room_from_the_latencies(tmp_path, fast):
    """Nor does any number of operations: here as many as 32 MiB a worker once held."""
    (tmp_path / "l").mkdir()
    more = ("--warmup", "2.5", "--duration", "1.2", "--latency", str(tmp_path / "l"))
    out = bench.run_good("control_syscall", fast / "d", *more)
    recorded = histogram(tmp_path / "l/worker-0.hist")
    assert sum(recorded.values()) == pytest.approx(out.ops, rel=0.01)
    assert out.executed_ops > 1.5 * out.ops
    # The mean of all is the window by the number of operations, less the loop.
    mean = sum(ns * count for ns, count in recorded.items()) / sum(recorded.values())
    assert mean == pytest.approx(1e9 * out.seconds / out.ops, rel=0.5)


@needs_root
@pytest.mark.root
def test_cgroup(tmp_path):
    with mounted(tmp_path / "c", "-t", "cgroup2", "none") as mount:
        group = mount / f"fscale-test-{os.getpid()}"
        group.mkdir()
        try:
            out = bench.run_good(
                "DWOL", tmp_path / "d", "--duration", "0.5", "--cgroup", str(group)
            )
        finally:
            group.rmdir()
    charged = sum(w.user_seconds + w.system_seconds for w in out.workers)
    assert out.cgroup_cpu_seconds == pytest.approx(charged, rel=0.15)


def usage(*argv):
    bench.build("all")
    done = subprocess.run([bench.BENCH, *argv], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_usage(tmp_path):
    """Each error names the option or value at fault and what is right instead."""
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    directory = ("--dir", str(tmp_path / "empty"))
    good = (*directory, "--cpus", "0")
    cpu = ("--cpus", "0")
    crowd = ("--workers-per-cpu", "2")
    wrong: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
        (("--workload", "DRBLL", *good), ('"DRBLL"', " DRBL?", "--list")),
        (good, ("--workload", "--list")),
        (("--workload", "DRBL", *cpu), ("--dir",)),
        (("--workload", "DRBL", *directory), ("--cpus",)),
        (("--workload", "DRBL", "--dir", str(tmp_path / "file"), *cpu), ("Not a directory",)),
        (("--workload", "DRBL", "--dir", "/no/where", *cpu), ("/no/where", "No such file")),
        (("--workload", "DRBL", "--dir", str(tmp_path), *cpu), ("not empty", "--dir")),
        (("--workload", "DRBL", *directory, "--cpus", "4095"), ("CPU 4095", "online")),
        (("--workload", "DRBL_bg", *good), ("at least 2 CPUs", "names 1")),
        (("--workload", "DRBL", *good, "--workers-per-cpu", "0"), ("from 1 to 256", '"0"')),
        (("--workload", "DRBL", *good, "--workers-per-cpu", "257"), ("from 1 to 256", '"257"')),
        (("--workload", "DRBL", *good, *crowd, "--windows", "5"), ("cpu 2", "--windows")),
        (("--workload", "DRBL", *good, *crowd, "--slice", "1", "--sync-fds", "0,1"), ("--slice",)),
        (("--workload", "MWCL", *good, "--mode", "direct"), ("direct", ": buffered")),
        (("--workload", "MWCL", *good, "--mode", "x"), ("--mode", "dontcache", '"x"')),
        (("--workload", "DRBL", *good, "--option", "size=4"), ('"size"', "--list")),
        (("--workload", "DRBL", *good, "--option", "block"), ("NAME=VALUE", '"block"')),
        (("--workload", "DRBL", *good, "--option", "block=1000"), ("multiple of 512", '"1000"')),
        (("--workload", "MRPL", *good, "--option", "access=read"), ('"read"', "--list")),
        (("--workload", "DRBL", *good, "--interval", "0"), ("--interval", "more than 0", '"0"')),
        (("--workload", "DRBL", *good, "--duration", "0"), ("--duration", "more than 0", '"0"')),
        (("--workload", "DRBL", *good, "--duration", "nan"), ("--duration", '"nan"')),
        (("--workload", "DRBL", *good, "--duration", "0.01"), ("0.01 s", "--min-window 0.02 s")),
        (("--workload", "DRBL", *good, "--max-stock", "-1"), ("--max-stock", "from 1", '"-1"')),
        (("--workload", "DRBL", *good, "--sync-fds", "3"), ("R,W", '"3"')),
        (("--workload", "DRBL", *good, "--latency", "/no"), ("--latency", '"/no"')),
        (("--workload", "DRBL", *good, "stray"), ('"stray"', "--help")),
    ]
    for bad in ("", "x", "0,0", "1-0", "0,", "99999999"):
        wrong.append((("--workload", "DRBL", *directory, "--cpus", bad), ("--cpus", f'"{bad}"')))
    for argv, named in wrong:
        message = usage(*argv)
        assert [word for word in named if word not in message] == [], message
    assert list((tmp_path / "empty").iterdir()) == []


def test_the_list_says_which_numbers_an_option_takes(tmp_path):
    """A value just beyond what the list says is refused; the default is not."""
    given = {}
    for workload in bench.descriptors().values():
        for option in workload.options:
            assert option.accepts(option.default)
            if not option.choices:
                given[option.name] = (workload.id, option)
    assert {"block", "fill", "keep", "entries"} <= given.keys()
    for workload, option in given.values():
        step = option.multiple_of or 1
        between = [option.least + 1] if option.multiple_of else []
        for value in (option.least - step, option.most + step, "4k", *between):
            assert not option.accepts(value)
            argv = ("--dir", str(tmp_path), "--cpus", "0", "--option", f"{option.name}={value}")
            assert f"option {option.name} of {workload} takes" in usage(
                "--workload", workload, *argv
            )


@needs_root
@pytest.mark.root
def test_read_only_directory(tmp_path):
    with tmpfs(tmp_path / "m", "ro") as mount:
        message = usage("--workload", "DRBL", "--dir", str(mount), "--cpus", "0")
    assert str(mount) in message
    assert "Read-only file system" in message
