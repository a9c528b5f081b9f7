# SPDX-License-Identifier: GPL-2.0-only
"""Tasks that get no CPU while others wait for what they are to do."""

import mmap
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fscale.vm.crashload import sync
from tests.lanefs.functions.harness import Place, Skipped, check, children, long_test
from tests.lanefs.functions.loop import mounted, slow_device

REQUEST = 0.2
"""seconds of the device for each request; a commit takes three of them"""
LONGEST = 2.5
"""seconds of an fsync: twelve requests; a commit that nobody makes waits for the 5 s timer"""
_ROUNDS = 4
_RUNTIME = Path("/proc/sys/kernel/sched_rt_runtime_us")


def _kernel_threads() -> Iterator[tuple[int, str]]:
    """Number and name of each thread of the kernel."""
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if not (path / "cmdline").read_bytes():
                yield int(path.name), (path / "comm").read_text()


@contextmanager
def _only_tasks_starve() -> Iterator[None]:
    """A task of real time may take all of CPU 1, but what the kernel has to do there comes first.

    No journal's thread runs there. A kernel with a server for other tasks lets them run a little.
    """
    before = _RUNTIME.read_text()
    first: list[int] = []
    moved: dict[int, set[int]] = {}
    _RUNTIME.write_text("-1")
    for pid, name in _kernel_threads():
        with suppress(OSError):
            if name.startswith("lanefs-"):
                moved[pid] = os.sched_getaffinity(pid)
                os.sched_setaffinity(pid, {0, 2})
            elif os.sched_getaffinity(pid) == {1} and not os.sched_getscheduler(pid):
                os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(2))
                first.append(pid)
    try:
        yield
    finally:
        for pid in first:
            with suppress(OSError):
                os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))
        for pid, cpus in moved.items():
            with suppress(OSError):
                os.sched_setaffinity(pid, cpus)
        _RUNTIME.write_text(before)


def _sync_beside_a_starved_task(mount: Path, round_: int) -> tuple[bool, float]:
    """Whether a task starved that had asked for a commit; the seconds of an fsync that needs it."""
    times = mmap.mmap(-1, 24)

    def note(number: int) -> None:
        struct.pack_into("=d", times, 8 * number, time.monotonic())

    def noted(number: int) -> float:
        return float(struct.unpack_from("=d", times, 8 * number)[0])

    def commit_before() -> None:
        os.sched_setaffinity(0, {2})
        (mount / "1" / "before").chmod(0o600 + round_)
        sync(mount / "1" / "before")

    def starve() -> None:
        os.sched_setaffinity(0, {1})
        time.sleep(REQUEST)
        (mount / "1" / "starved").chmod(0o600 + round_)
        sync(mount / "1" / "starved")
        note(0)

    def take_the_cpu() -> None:
        os.sched_setaffinity(0, {1})
        time.sleep(2 * REQUEST)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        end = time.monotonic() + 10
        while not noted(2) and time.monotonic() < end:
            pass

    def need_it() -> None:
        os.sched_setaffinity(0, {0})
        time.sleep(5 * REQUEST)
        note(1)
        (mount / "1" / f"f{round_}").touch()
        sync(mount / "1" / f"f{round_}")
        note(2)

    # Nothing is tied to another domain any more: the request is left to who waits.
    os.sync()
    tasks = (commit_before, starve, take_the_cpu, need_it)
    children(len(tasks), lambda number: tasks[number]())
    return noted(0) > noted(1), noted(2) - noted(1)


@long_test
def a_task_that_starves_holds_up_no_commit_that_others_need(place: Place) -> None:
    """It has asked for the next commit of a domain, and was woken to make it; others are tied."""
    place.own_lanefs("others have one journal")
    if len(os.sched_getaffinity(0)) < 3:
        raise Skipped("it needs three CPUs")
    with (
        slow_device(place, 256, REQUEST, 2, cache=True, queues=os.cpu_count() or 1) as device,
        mounted(place, device) as mount,
    ):
        os.sched_setaffinity(0, {1})
        (mount / "1").mkdir()
        for name in ("before", "starved"):
            (mount / "1" / name).touch()
        os.sched_setaffinity(0, {0, 1, 2})
        os.sync()
        with _only_tasks_starve():
            found = [_sync_beside_a_starved_task(mount, round_) for round_ in range(_ROUNDS)]
    print(f"starved, and seconds: {found}", flush=True)
    waits = [seconds for starved, seconds in found if starved]
    if not waits:
        raise Skipped("no task starved")
    check(max(waits) < LONGEST, f"fsyncs beside a task that starves took {waits} s")
