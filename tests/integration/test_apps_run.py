# SPDX-License-Identifier: GPL-2.0-only
"""The applications for real: a short run of each, what goes wrong with it, and what is left."""

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fscale.apps.adapter import LAUNCHER
from fscale.apps.registry import applications
from fscale.model import paths
from fscale.runner.machine import host
from fscale.system import processes

pytestmark = [pytest.mark.root, pytest.mark.live]

INSTALLED = {app.descriptor.id: app.missing() for app in applications()}
SMALL = {
    "rocksdb": ["keys=4000"],
    "catd": ["files=300"],
    "varmail": ["files=100"],
    "fileserver": ["files=100"],
    "sysbench": ["files=4", "total_mb=16"],
    "fio_randwrite": ["file_mb=8"],
    "fio_logwrite": ["file_mb=8"],
    "fio_oltp": ["data_mb=28", "log_mb=4"],
    "exim": ["spools=3"],
}
STALL_SECONDS = 3
UNITS = {"exim": "messages", "dbench": "MB"}


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    subprocess.run(["make", "-s", "-C", str(paths.ROOT / "apps")], check=True)


@pytest.fixture
def cgroup() -> Iterator[Path]:
    root = host.own_cgroup()
    if root is None:
        pytest.skip("there is no writable cgroup v2 hierarchy")
    path = root / f"fscale-test-apps-{os.getpid()}"
    path.mkdir()
    yield path
    left = processes.in_cgroup(path)
    processes.kill(lambda: processes.in_cgroup(path), timeout=10)  # the next test has its own
    path.rmdir()
    assert left == [], "processes are left behind"


def need(name: str) -> None:
    if package := INSTALLED[name]:
        pytest.skip(f"{name} needs {package}")


def start(
    name: str,
    *dirs: Path,
    cgroup: Path,
    options: list[str],
    duration: float = 1,
    scratch: Path | None = None,
    cpus: int = 1,
) -> Any:
    allowed = ",".join(map(str, sorted(os.sched_getaffinity(0))[:cpus]))
    argv = [*LAUNCHER, "--workload", name, "--cpus", allowed]
    argv += ["--duration", str(duration), "--warmup", "0.3", "--space", str(256 << 20)]
    # The largest that the runner gives.
    argv += ["--cgroup", str(cgroup), "--seed", str(2**32 - 1)]
    for directory in dirs:
        argv += ["--dir", str(directory)]
    for option in options:
        argv += ["--option", option]
    if scratch:
        argv += ["--scratch", str(scratch)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(
    name: str,
    *dirs: Path,
    cgroup: Path,
    options: list[str],
    duration: float = 1,
    scratch: Path | None = None,
    cpus: int = 1,
) -> tuple[int, dict[str, Any]]:
    given: dict[str, Any] = {"duration": duration, "scratch": scratch, "cpus": cpus}
    process = start(name, *dirs, cgroup=cgroup, options=options, **given)
    out, err = process.communicate(timeout=100)
    assert out, err
    return process.returncode, json.loads(out)


@pytest.mark.parametrize("name", list(INSTALLED))
def test_a_short_run(name: str, tmp_path: Path, cgroup: Path) -> None:
    need(name)
    duration = 5 if name == "dbench" else 1
    code, said = run(name, tmp_path, cgroup=cgroup, options=SMALL.get(name, []), duration=duration)
    assert (code, said["status"], said["reason"]) == (0, "ok", None)
    assert said["unit"] == UNITS.get(name, "ops")
    assert said["amount"] > 0
    if name != "catd":  # which runs to its end
        # Some programs end late by as much as the machine stalled.
        assert 0.7 * duration < said["seconds"] < duration + STALL_SECONDS
    assert 0 < said["own_cpu_seconds"] < said["usage_seconds"] * 1.1
    assert all(c["argv"][0] == "taskset" for c in said["commands"])
    assert said["extra"]["version"] not in ("", "unknown")
    for option in SMALL.get(name, []):
        key, _, value = option.partition("=")
        assert str(said["extra"]["options"][key]) == value
    if name == "exim":
        assert "smtp_connect_backlog" in said["extra"]["configuration"]
        assert 0 < said["extra"]["generator"]["share_of_own_cpu"] < 0.5


def test_sysbench_may_have_a_process_for_each_core(tmp_path: Path, cgroup: Path) -> None:
    need("sysbench")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("it needs two CPUs")
    options = [*SMALL["sysbench"], "instances=each"]
    code, said = run("sysbench", tmp_path, cgroup=cgroup, options=options, cpus=2)
    assert (code, said["reason"]) == (0, None)
    *_, one, other = (command["argv"] for command in said["commands"])
    assert one == other
    assert one[-1] == "run" and "--threads=1" in one
    assert sorted(path.name for path in tmp_path.iterdir()) == ["instance0", "instance1"]
    assert len(list(tmp_path.glob("*/test_file.*"))) == 8
    done = [float(n) for n in re.findall(r"writes/s: +([0-9.]+)", said["extra"]["output"])]
    assert len(done) == 2
    assert said["amount"] == pytest.approx(sum(done) * said["seconds"], rel=0.1)


@pytest.mark.parametrize("name", ["exim", "rocksdb", "varmail"])
def test_partitions_are_all_used(name: str, tmp_path: Path, cgroup: Path) -> None:
    need(name)
    dirs = [tmp_path / str(n) for n in range(2)]
    for directory in dirs:
        directory.mkdir()
    options = [*SMALL[name], *(["databases=2"] if name == "rocksdb" else [])]
    code, said = run(name, *dirs, cgroup=cgroup, options=options)
    assert (code, said["reason"]) == (0, None)
    assert said["extra"]["partitions"] == 2
    if name == "varmail":  # one worker, one partition
        assert any(dirs[0].iterdir())
    else:
        assert all(any(p.is_file() for p in d.rglob("*")) for d in dirs)


def test_paths_may_be_relative(
    tmp_path: Path, cgroup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("rocksdb")
    monkeypatch.chdir(tmp_path)
    for name in ("data", "scratch"):
        Path(name).mkdir()
    options = [*SMALL["rocksdb"], "databases=2"]
    code, said = run(
        "rocksdb", Path("data"), cgroup=cgroup, options=options, scratch=Path("scratch")
    )
    assert (code, said["reason"]) == (0, None)


def test_rocksdb_reads_as_often_as_asked(tmp_path: Path, cgroup: Path) -> None:
    need("rocksdb")
    code, said = run("rocksdb", tmp_path, cgroup=cgroup, options=[*SMALL["rocksdb"], "reads=95"])
    assert (code, said["reason"]) == (0, None)
    counted = re.search(r"reads:(\d+) writes:(\d+)", said["extra"]["output"])
    assert counted
    reads, writes = map(int, counted.groups())
    assert reads / (reads + writes) == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize("fsync", ["on", "off"])
def test_exim_without_fsync(fsync: str, tmp_path: Path, cgroup: Path) -> None:
    """The preloaded library reaches every process of Exim's that writes."""
    need("exim")
    trace = tmp_path / "trace"
    where = tmp_path / "work"
    where.mkdir()
    argv = ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(trace), *LAUNCHER]
    argv += ["--workload", "exim", "--dir", str(where), "--cpus", "0", "--duration", "1"]
    argv += ["--option", "spools=1", "--option", f"fsync={fsync}", "--cgroup", str(cgroup)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=100, check=False)
    said = json.loads(done.stdout)
    assert said["status"] == "ok", said
    calls = trace.read_text().count("sync(")
    messages = said["extra"]["messages_checked_in_mail_boxes"]
    assert said["extra"]["label"].startswith(f"fsync {fsync}")
    assert calls == 0 if fsync == "off" else calls >= 4 * messages


def test_exim_port_in_use(tmp_path: Path, cgroup: Path) -> None:
    need("exim")
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        options = ["spools=1", f"port={port}"]
        code, said = run("exim", tmp_path, cgroup=cgroup, options=options)
    assert code == 1
    assert said["reason"].startswith(f"exim: port {port} is in use")


def test_exim_that_dies_in_the_middle(tmp_path: Path, cgroup: Path) -> None:
    need("exim")
    process = start("exim", tmp_path, cgroup=cgroup, options=["spools=2"], duration=20)
    deadline = time.monotonic() + 30
    while not list(tmp_path.glob("mail/*/mbox")) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in (cgroup / "cgroup.procs").read_text().split():
        command = Path(f"/proc/{pid}/cmdline")
        if command.exists() and b"-bdf" in command.read_bytes():
            os.kill(int(pid), signal.SIGKILL)
    out, _ = process.communicate(timeout=30)
    said = json.loads(out)
    assert (process.returncode, said["status"]) == (1, "error")
    assert "exim" in said["reason"]
    assert "amount" not in said


# The first argument of the process that does the work, and when it can be killed.
WORKING = {
    "rocksdb": "--benchmarks=overwrite",
    "dbench": "-t",
    "fio_randwrite": "--output-format=json+",
    "sysbench": "run",
    "varmail": "--personality",
}


@pytest.mark.parametrize("name", list(WORKING))
def test_a_program_that_dies_in_the_middle(name: str, tmp_path: Path, cgroup: Path) -> None:
    need(name)
    process = start(name, tmp_path, cgroup=cgroup, options=SMALL.get(name, []), duration=20)
    deadline = time.monotonic() + 30
    victims: set[int] = set()
    while not victims and time.monotonic() < deadline:
        working = at_work(name, cgroup)
        time.sleep(1)  # into its warm-up or its window; one that only prepares is gone by then
        victims = working & at_work(name, cgroup)
    os.kill(max(victims), signal.SIGKILL)
    out, _ = process.communicate(timeout=60)
    said = json.loads(out)
    assert (process.returncode, said["status"]) == (1, "error")
    assert "amount" not in said


def at_work(name: str, cgroup: Path) -> set[int]:
    pids = map(int, (cgroup / "cgroup.procs").read_text().split())
    return {pid for pid in pids if WORKING[name].encode() in command_line(pid)}


def command_line(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def test_a_stopped_run_leaves_nothing(tmp_path: Path, cgroup: Path) -> None:
    need("exim")
    process = start("exim", tmp_path, cgroup=cgroup, options=["spools=2"], duration=20)
    while not list(tmp_path.glob("mail/*/mbox")):
        assert process.poll() is None
        time.sleep(0.05)
    process.terminate()
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, json.loads(out)["status"]) == (3, "interrupted")


@pytest.mark.parametrize(
    "name", ["exim", "rocksdb", "dbench", "varmail", "fio_randwrite", "sysbench"]
)
def test_a_full_file_system_is_an_error(name: str, tmp_path: Path, cgroup: Path) -> None:
    need(name)
    small = tmp_path / "small"
    small.mkdir()
    size = "1m" if name == "exim" else "12m"
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "x", str(small)], check=True)
    try:
        if name == "exim":
            (small / "ballast").write_bytes(b"x" * (900 << 10))
        code, said = run(name, small, cgroup=cgroup, options=[], duration=5)
    finally:
        subprocess.run(["umount", str(small)], check=True)
    assert (code, said["status"]) == (1, "error")
    assert "No space left" in said["reason"] or "full" in said["reason"], said["reason"]


def test_bad_input(tmp_path: Path, cgroup: Path) -> None:
    for name, options, message in (
        ("catd", ["phase=sideways"], "phase cannot be sideways; give create or "),
        ("catd", ["files=1"], "files cannot be 1; give a whole number from 2 "),
        ("rocksdb", ["databases=0"], "databases cannot be 0; give a whole number, 1 or more"),
        ("catd", ["colour=red"], "has no option colour"),
        ("dbench", ["load=/nonexistent"], "/nonexistent"),
    ):
        need(name)
        code, said = run(name, tmp_path, cgroup=cgroup, options=options, duration=5)
        assert (code, said["status"]) == (1, "error")
        assert message in said["reason"]
