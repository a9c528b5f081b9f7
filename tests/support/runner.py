# SPDX-License-Identifier: GPL-2.0-only
"""Helpers of the runner's tests: a fake microbenchmark, small media, and a look at the machine."""

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from fscale.model import paths
from fscale.runner.machine.journal import exclusive
from fscale.runner.session import machine_held
from tests.support.cli_server import CliServer
from tests.support.files import write_program

ROOT = paths.ROOT
# A state directory of the tests' own: while they hold the machine's real lock, no run of others
# comes between a test's commands. It lies in the real one, so that what it says is to be put back
# is found by tests in another root, too, if these are killed.
STATE = paths.state_dir() / f"test-{os.getpid()}" if os.geteuid() == 0 else paths.state_dir()
_START = f"""
import sys
from pathlib import Path
from fscale.model import paths
paths.state_dir = lambda: Path({str(STATE)!r})
sys.argv[0] = {str(ROOT / "fscale" / "__main__.py")!r}
from fscale import cli
cli.main()
"""

# Speaks the contract of fscale-bench and works by stat(); the option `act` makes it misbehave.
FAKE = """#!/usr/bin/python3
import argparse, json, os, sys, time
workloads = [
    dict(id=name, title=name, operation="stat", paper="none", type=kind, action="read",
         sharing="low", contention="none", setup="none", consumes=False, background=False,
         min_cores=cores, modes=modes, options=[
             dict(name="act", default="work", help="", choices=[]),
             dict(name="way", default="a", help="", choices=["a", "b"])])
    for name, kind, cores, modes in (
        ("DRBL", "data", 1, ["buffered", "direct"]),
        ("MWCL", "metadata", 1, ["buffered"]),
        ("MRPM_bg", "metadata", 2, ["buffered"]))
]
if "--list" in sys.argv:
    print(json.dumps(workloads))
    sys.exit()
parser = argparse.ArgumentParser()
for name in ("workload", "dir", "cpus", "mode", "duration", "warmup", "min-window", "interval",
             "seed", "max-stock", "space", "inodes", "cgroup", "latency", "sync-fds"):
    parser.add_argument("--" + name)
parser.add_argument("--option", action="append", default=[])
a = parser.parse_args()
act = dict(o.split("=") for o in a.option).get("act", "work")
if a.cgroup:
    open(a.cgroup + "/cgroup.procs", "w").write(str(os.getpid()))
if act == "late":
    time.sleep(1000)
open(a.dir + "/file", "w").write("x")
read, write = map(int, a.sync_fds.split(","))
os.write(write, b"ready\\n")
if not os.read(read, 1):
    sys.exit(1)
if act == "hang":
    if os.fork() == 0:
        time.sleep(1000)
    time.sleep(1000)
if act == "garbage":
    print("Segmentation fault", file=sys.stderr)
    sys.exit(139)
if act == "write":
    for n in range(1000):
        open(a.dir + "/file%d" % n, "w").write("x")
        time.sleep(0.01)
ops, seconds = 0, float(a.duration)
end = time.monotonic() + seconds
while time.monotonic() < end:
    os.stat(a.dir + "/file")
    ops += 1
cpus = [int(c) for c in a.cpus.split(",")]
status, error, code = "ok", None, 0
if act == "enospc":
    status, code = "error", 1
    error = dict(call="pwrite", path=a.dir + "/file", errno=28, name="ENOSPC",
                 message="No space left on device", worker=0)
if act == "nodirect":
    status, code = "error", 77
    error = dict(call="open", path=a.dir + "/file", errno=22, name="EINVAL",
                 message="Invalid argument", worker=0)
workers = [dict(id=i, cpu=c, ops=ops if i == 0 else 0, user_seconds=seconds / len(cpus),
                system_seconds=0, voluntary_switches=0, involuntary_switches=0)
           for i, c in enumerate(cpus)]
times = dict(user=seconds, system=0, idle=0, iowait=0, irq=0, softirq=0, steal=0)
print(json.dumps(dict(
    schema=1, workload=a.workload, mode=a.mode, options={}, seed=int(a.seed), status=status,
    reason=None, end="time", ops=ops, executed_ops=ops, seconds=seconds,
    ops_per_second=ops / seconds, setup_seconds=0, warmup_seconds=0, clock="monotonic", cpus=cpus,
    windows=[], workers=workers, background=None, intervals=dict(seconds=[], ops=[]), cpu=times,
    cgroup_cpu_seconds=seconds, busy_cpu_seconds=seconds, stock=None, latency=None, error=error)))
sys.exit(code)
"""

MEDIUM = 'title = "small"\nkind = "loop"\nsize = "64M"\n'


def fake_bench(directory: Path) -> Path:
    """The fake microbenchmark, as an executable file."""
    return write_program(directory / "fake-bench", FAKE)


def suite(directory: Path, **changes: object) -> Path:
    """A suite of one cell on a small loop device, with some keys changed."""
    (directory / "small.toml").write_text(MEDIUM)
    keys: dict[str, object] = {
        "title": "test",
        "workloads": ["DRBL"],
        "filesystems": ["ext4"],
        "media": [str(directory / "small.toml")],
        "cores": [1],
        "duration": 0.1,
        "warmup": 0.0,
        "repetitions": 1,
        "remeasure": 0,
    }
    keys |= changes
    options = keys.pop("options", {})
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    assert isinstance(options, dict)
    for name, table in options.items():
        lines += [f"[options.{name}]", *(f"{k} = {json.dumps(v)}" for k, v in table.items())]
    path = directory / "suite.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def command(*arguments: object) -> list[str]:
    """The argv of the command line interface, with the tests' state directory."""
    return [sys.executable, "-c", _START, *map(str, arguments)]


def environment() -> dict[str, str]:
    """The environment for it; tests may themselves run below a tagged process."""
    kept = {k: v for k, v in os.environ.items() if k != "FSCALE_RUN"}
    return {**kept, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}


@functools.cache
def _server(environ: frozenset[tuple[str, str]]) -> CliServer:
    return CliServer(STATE, dict(environ))


def fscale(*arguments: object, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a command of fscale to its end."""
    environ = environment()
    # Some of it is read when fscale is imported, so that each environment has its own server.
    environ.pop("PYTEST_CURRENT_TEST", None)
    return _server(frozenset(environ.items())).run(list(map(str, arguments)), environ, timeout)


@contextlib.contextmanager
def hold_machine() -> Iterator[None]:
    """Hold the machine, so that no run of others changes what a test looks at."""
    with exclusive(paths.state_dir(), wait=280), temporary_state():
        yield


def restore_machine() -> None:
    """Undo what a run left here that was killed, of anybody's or of the tests'.

    Else a CPU that is offline since then would be missing to all tests.
    """
    with machine_held(paths.state_dir(), print, wait=280):
        for left in paths.state_dir().glob("test-*"):
            with machine_held(left, print):
                pass
            shutil.rmtree(left)


@contextlib.contextmanager
def temporary_state() -> Iterator[None]:
    """Remove the tests' state directory in the end; OSError when something is left in it."""
    try:
        yield
    finally:
        if paths.state_dir() != STATE and STATE.exists():
            (STATE / "lock").unlink(missing_ok=True)
            STATE.rmdir()


def state() -> dict[str, object]:
    """What a run changes on the machine."""
    losetup = ["losetup", "--list", "--noheadings", "--output", "BACK-FILE"]
    loops = subprocess.run(losetup, capture_output=True, text=True, check=True).stdout.split()
    cgroups = [*Path("/sys/fs/cgroup").glob("fscale-*"), *Path("/sys/fs/cgroup").glob("*/fscale-*")]
    tagged = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"\0FSCALE_RUN=" in b"\0" + (entry / "environ").read_bytes():
                tagged.append((entry / "comm").read_text())
    return {
        "cpus": Path("/sys/devices/system/cpu/online").read_text().strip(),
        "mounts": [m for m in Path("/proc/mounts").read_text().splitlines() if str(STATE) in m],
        "loops": [name for name in loops if str(STATE) in name],
        "cgroups": cgroups,
        "processes": tagged,
        "files": sorted(p.name for p in STATE.glob("*") if p.name != "lock"),
        "writeback": Path("/proc/sys/vm/dirty_writeback_centisecs").read_text().strip(),
    }
