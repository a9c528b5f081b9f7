# SPDX-License-Identifier: GPL-2.0-only
"""Building and running the microbenchmarks, for their tests."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TextIO, TypeVar

import pytest
from _pytest.mark import ParameterSet

from fscale.model.bench import BenchOutput, Descriptor
from fscale.model.paths import PACKAGE, ROOT

BUILD = ROOT / "build" / "microbench"
BENCH = BUILD / "fscale-bench"
SOURCES = (PACKAGE / "microbench" / "workloads").glob("*.c")
WORKLOADS = sorted(re.findall(r'\.id = "(\w+)"', "".join(s.read_text() for s in SOURCES)))
SOON = 25.0  # seconds: a run that is ended is over long before one that was let alone
# What makes a run longer, and by how much: of a stock that a count is made for, a part is room.
LENGTHS = {"--duration": 5, "--window-ops": 10}
SANITIZED = BUILD / "san" / "fscale-bench"

Ended = TypeVar("Ended", bound=tuple[Any, ...])  # (exit code, output, what else is known)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
# What workloads mount, which takes root.
MOUNTING = ("bind_mount", "copy_up", "fuse", "statmount", "whiteout")


def parameters(workloads: Iterable[str]) -> list[ParameterSet]:
    """Parameters of a test; those of workloads that mount are skipped without root."""
    return [pytest.param(name, marks=[needs_root] if mounts(name) else []) for name in workloads]


def mounts(workload: str) -> bool:
    """Whether a workload works in a mount namespace."""
    return workload.startswith(MOUNTING)


@contextmanager
def mounted(where: Path, *argv: str) -> Iterator[Path]:
    """A mount that is gone afterwards."""
    where.mkdir(exist_ok=True)
    subprocess.run(["mount", *argv, str(where)], check=True)
    try:
        yield where
    finally:
        subprocess.run(["umount", str(where)], check=True)


@cache
def build(target: str) -> None:
    """Make a target of microbench/Makefile, once a session."""
    argv = ["make", "-C", str(ROOT / "microbench"), "-j2", target]
    with (ROOT / "microbench" / "Makefile").open() as lock:  # other workers make it as well
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@cache
def descriptors() -> dict[str, Descriptor]:
    """All workloads by id."""
    build("all")
    listed = subprocess.run([BENCH, "--list"], check=True, capture_output=True, text=True)
    return {d["id"]: Descriptor.model_validate(d) for d in json.loads(listed.stdout)}


def preloaded(library: Path, source: str) -> Path:
    """Compile a library for LD_PRELOAD."""
    argv = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
    subprocess.run(argv, input=source, text=True, check=True)
    return library


def cpus(count: int) -> list[int]:
    """That many online CPUs; skips the test where there are fewer."""
    for _ in range(5):
        found: list[int] = []
        for part in Path("/sys/devices/system/cpu/online").read_text().strip().split(","):
            first, _, last = part.partition("-")
            found += range(int(first), int(last or first) + 1)
        if len(found) >= count:
            return found[:count]
        time.sleep(0.1)
    pytest.skip(f"needs {count} online CPUs")


def argv(
    workload: str, directory: Path, *more: str, count: int | None = None, binary: Path = BENCH
) -> list[str]:
    """The command line for a workload on as many CPUs as it needs, or `count`."""
    build("san" if binary == SANITIZED else "all")
    use = cpus(count or descriptors()[workload].min_cores)
    directory.mkdir(exist_ok=True)
    return [
        *(str(binary), "--workload", workload, "--dir", str(directory)),
        *("--cpus", ",".join(map(str, use)), *more),
    ]


def finish(process: subprocess.Popen[str], timeout: float = 60) -> tuple[int, BenchOutput]:
    """Wait for a run; its exit code and its output, validated."""
    out, _ = process.communicate(timeout=timeout)
    return process.returncode, BenchOutput.model_validate_json(out)


def retry_longer(
    attempt: Callable[..., Ended],
    directory: Path,
    more: tuple[str, ...],
    few: int = 0,
    bound: str | None = None,
) -> Ended:
    """Attempt a run, for longer each time, until its window has more operations than a few.

    A window is one of wall time. Other tests have the CPUs as well, and some operations wait for a
    grace period of RCU. A background writer needs an operation, too, and the stock this `bound`, if
    one is given: a pilot without a CPU asks for less. A window that ends by count ends early if one
    worker has no CPU while another one uses up its stock.
    """
    ended = attempt(*more)
    for _ in range(2):
        length = next((name for name in LENGTHS if name in more), None)
        if length is None or not _starved(ended[1], few, bound):
            break
        at = len(more) - more[::-1].index(length)  # the last one holds
        longer = LENGTHS[length] * float(more[at])
        more = (*more[:at], f"{longer:g}", *more[at + 1 :])
        for left in directory.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        ended = attempt(*more)
    return ended


def _starved(out: BenchOutput, few: int, bound: str | None) -> bool:
    if out.status != "ok":
        reason = out.reason or ""
        return out.status == "invalid" and ("--duration" in reason or "last window" in reason)
    idle = out.background is not None and out.background.ops == 0
    bounded = bound is None or (out.stock is not None and out.stock.bound == bound)
    return out.ops <= few or idle or not bounded


def run(
    workload: str,
    directory: Path,
    *more: str,
    count: int | None = None,
    binary: Path = BENCH,
    few: int = 0,
    bound: str | None = None,
) -> tuple[int, BenchOutput]:
    """Run a workload to its end; for longer, if its window had no more than a few operations."""

    def attempt(*given: str) -> tuple[int, BenchOutput]:
        line = argv(workload, directory, *given, count=count, binary=binary)
        return finish(subprocess.Popen(line, stdout=subprocess.PIPE, text=True))

    return retry_longer(attempt, directory, more, few, bound)


def run_good(
    workload: str,
    directory: Path,
    *more: str,
    count: int | None = None,
    few: int = 0,
    bound: str | None = None,
) -> BenchOutput:
    """Run a workload that must succeed."""
    code, out = run(workload, directory, *more, count=count, few=few, bound=bound)
    assert (code, out.status, out.error) == (0, "ok", None), out.reason
    return out


def start(
    workload: str, directory: Path, *more: str, count: int | None = None
) -> tuple[subprocess.Popen[str], list[int]]:
    """Start a run; it and its workers once these execute operations."""
    line = argv(workload, directory, *more, count=count)
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        workers = children(process.pid)
        if workers and all(comm(pid) in ("fscale-run", "fscale-bg") for pid in workers):
            return process, workers
        time.sleep(0.01)
    process.kill()
    pytest.fail("the run did not start")


def start_held(
    workload: str, directory: Path, *more: str, count: int | None = None
) -> tuple[subprocess.Popen[str], TextIO, int]:
    """A bench that is ready, what it answers, and the descriptor through which it is asked."""
    requests, ask = os.pipe()
    answers, theirs = os.pipe()
    line = argv(workload, directory, *more, "--sync-fds", f"{requests},{theirs}", count=count)
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, pass_fds=(requests, theirs))
    os.close(requests)
    os.close(theirs)
    told = os.fdopen(answers)
    assert told.readline() == "ready\n"
    return process, told, ask


def wait_for(state: Callable[[], bool]) -> bool:
    """Whether a state comes within a minute."""
    deadline = time.monotonic() + 60
    while not state() and time.monotonic() < deadline:
        time.sleep(0.01)
    return state()


def children(pid: int) -> list[int]:
    """The worker processes of a bench."""
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def comm(pid: int) -> str:
    """The name that a process bears."""
    return Path(f"/proc/{pid}/comm").read_text().strip()
