# SPDX-License-Identifier: GPL-2.0-only
"""Measures fsync in a guest beside operations that tie domains of lanefs to each other.

    bin/fscale vm exec --kernel trixie --smp 8 --deterministic --fs lanefs -- \
        python3 -m tests.lanefs.tied_fsync --domains 8

A task on CPU 0, or on every CPU, appends 4 KiB to a file in its own domain and syncs it. Other
tasks create and remove a name, again and again:

  own1   one, on CPU 1, in its own domain
  pair   one, on CPU 1, in domain 0, which ties the two
  own    one on every CPU, in its own domain
  ring   one on every CPU, in the next domain, which ties all of them
  shared one on every CPU, where all CPUs share a single domain

The fsyncs of all CPUs share commits with ring and with shared, and wait for the commit before; with
own they do neither.

In a guest whose clock counts instructions the device's time is real and the emulator's is not. The
CPUs take turns, so the tasks pause after each name, or all would wait for CPU time.
"""

import json
import os
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from fscale.model import catalogue
from tests.lanefs.device import MOUNT, Fault, Volume, slow_disk
from tests.lanefs.functions.harness import children
from tests.lanefs.functions.traced import traced

MIB = 1024
JOURNAL = "4M"
PAGE = b"x" * 4096
# By load: the CPUs with a task (None: all), and how many domains further its directory is.
LOADS: dict[str, tuple[tuple[int, ...] | None, int]] = {
    "own1": ((1,), 0),
    "pair": ((1,), -1),
    "own": (None, 0),
    "ring": (None, 1),
    "shared": (None, 0),
}
app = typer.Typer(add_completion=False)


@app.command()
def measure(
    domains: Annotated[str, typer.Option(help="Numbers of domains, with a CPU each.")] = "8",
    loads: Annotated[str, typer.Option(help="Loads, separated by commas.")] = ",".join(LOADS),
    syncs: Annotated[int, typer.Option(min=10, help="Number of fsyncs of each task.")] = 100,
    pause: Annotated[float, typer.Option(help="Pause after each name in ms.")] = 5,
    delay: Annotated[int, typer.Option(help="Delay of each read, write and flush in ms.")] = 2,
    options: Annotated[str, typer.Option("-o", help="Mount options to add.")] = "",
    rounds: Annotated[int, typer.Option(min=1, help="Rounds over all rows.")] = 1,
) -> None:
    """Print a row for each number of domains, syncing tasks and load: the median, p99 and maximum
    of an fsync in ms; per fsync: commits, write requests, flushes, and names of the load."""
    print("domains syncers load p50_ms p99_ms max_ms commits writes flushes names")
    for count in (int(word) for word in domains.split(",")):
        for _ in range(rounds):
            for syncers in (1, count):
                for load in loads.split(","):
                    with slow_disk(MIB, delay) as device:
                        _row(count, syncers, load, syncs, pause / 1000, device, options)


def _row(
    domains: int, syncers: int, load: str, syncs: int, pause: float, device: str, options: str
) -> None:
    filesystem = catalogue.load_filesystem("lanefs")
    volume = Volume(filesystem, device, options.split(",") if options else [])
    made = 1 if load == "shared" else domains
    volume.make("--domains", str(made), "--journal", JOURNAL)
    # Not `mounted()`: fsck of a slow disk takes too long.
    volume.mount()
    try:
        took, counts = _measure_load(domains, syncers, load, syncs, pause, device)
    finally:
        volume.unmount()
    p99 = statistics.quantiles(took, n=100, method="inclusive")[-1]
    times = f"{statistics.median(took):.1f} {p99:.1f} {max(took):.1f}"
    print(domains, syncers, load, times, *(f"{n / len(took):.2f}" for n in counts), flush=True)


def _measure_load(
    domains: int, syncers: int, load: str, syncs: int, pause: float, device: str
) -> tuple[list[float], list[int]]:
    """Milliseconds of each fsync; commits, writes, flushes and names in the meantime."""
    for cpu in range(domains):
        os.sched_setaffinity(0, {cpu})
        (MOUNT / str(cpu)).mkdir()
    os.sync()
    cpus, step = LOADS[load]
    directories = {
        cpu: MOUNT / str((cpu + step) % domains)
        for cpu in (range(domains) if cpus is None else cpus)
    }
    with tempfile.TemporaryDirectory(dir="/run") as scratch:

        def work(cpu: int) -> None:
            (Path(scratch) / f"{cpu}.json").write_text(json.dumps(_sync(cpu, syncs)))

        with _names_come_and_go(directories, pause, Path(scratch)) as names:
            before = [*_requests(device), names()]
            commits = len(traced(device, lambda: children(syncers, work, 600), "lanefs_commit"))
            after = [*_requests(device), names()]
        took = [
            milliseconds
            for cpu in range(syncers)
            for milliseconds in json.loads((Path(scratch) / f"{cpu}.json").read_text())
        ]
    return took, [commits, *(b - a for a, b in zip(before, after, strict=True))]


def _sync(cpu: int, count: int) -> list[float]:
    """Milliseconds of each fsync of a growing file in this CPU's domain."""
    os.sched_setaffinity(0, {cpu})
    took = []
    fd = os.open(MOUNT / str(cpu) / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for _ in range(count):
        os.write(fd, PAGE)
        began = time.monotonic()
        os.fsync(fd)
        took.append(1000 * (time.monotonic() - began))
    os.close(fd)
    return took


@contextmanager
def _names_come_and_go(
    directories: dict[int, Path], pause: float, scratch: Path
) -> Iterator[Callable[[], int]]:
    """A task on each of these CPUs creates and removes a name in its directory, and pauses for so
    many seconds; gives a function that returns how many names there were so far."""
    tasks = []
    for cpu, directory in directories.items():
        task = os.fork()
        if task == 0:
            os.sched_setaffinity(0, {cpu})
            made = os.open(scratch / f"made{cpu}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            path = directory / f"f{cpu}"
            while True:
                path.touch()
                path.unlink()
                os.write(made, b"x")
                time.sleep(pause)
        tasks.append(task)
    try:
        yield lambda: sum(path.stat().st_size for path in scratch.glob("made*"))
    finally:
        for task in tasks:
            os.kill(task, signal.SIGKILL)
            os.waitpid(task, 0)


def _requests(device: str) -> tuple[int, int]:
    """Writes and flushes that the disk has ended."""
    words = Path(f"/sys/block/{Path(device).name}/stat").read_text().split()
    return int(words[4]), int(words[15])


if __name__ == "__main__":
    try:
        app()
    except Fault as fault:
        raise SystemExit(str(fault)) from None
