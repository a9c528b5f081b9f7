# SPDX-License-Identifier: GPL-2.0-only
"""Operations of several domains that come without end while an fsync needs earlier ones."""

import mmap
import os
import re
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fscale.vm.crashload import sync
from tests.lanefs.functions.harness import Place, Skipped, check, children, equal, long_test
from tests.lanefs.functions.loop import loop_device, mounted, slow_device
from tests.lanefs.functions.traced import traced, tracefs

CPUS = 4
PROBES = 40
FIRST_ALONE, COMMITTED = 3.5, 5.6
"""seconds after which the second domain is tied to the first, and which the first's timer takes"""
LOAD, LONGEST = 15.0, 5.0
"""seconds for which operations come, and of an fsync beside them"""
DOMAINS = 16
SYNCS = 50
"""of each task"""
EVENTS = ("lanefs/lanefs_commit", "block/block_bio_queue")


@contextmanager
def _slow_joins() -> Iterator[None]:
    """A handle that has joined a transaction is held up by many probes before it can tie it.

    They are in a function that is called with the domain's lock held, so that on the domain that
    all join there is one after the other of such handles.
    """
    root = tracefs()
    events, instance = root / "kprobe_events", root / "instances" / "fscale-ties"
    if not events.exists():
        raise Skipped("no probes in this kernel")
    names = [f"fscale/join{number}" for number in range(PROBES)]
    instance.mkdir(exist_ok=True)
    enable = instance / "events" / "fscale" / "enable"
    try:
        with events.open("a", buffering=1) as file:
            file.writelines(f"p:{name} lanefs_slot_share\n" for name in names)
        (instance / "options" / "stacktrace").write_text("1")
        enable.write_text("1")
        yield
    finally:
        if enable.exists():
            enable.write_text("0")
        instance.rmdir()
        with events.open("a", buffering=1) as file:
            file.writelines(f"-:{name}\n" for name in names)


def _tie(directory: Path) -> None:
    """A file of CPU 0's domain, whose transaction its timer commits before that of CPU 1's."""
    os.sched_setaffinity(0, {0})
    (directory / "f").touch()
    time.sleep(FIRST_ALONE)
    os.sched_setaffinity(0, {1})
    (directory / "g").touch()
    time.sleep(COMMITTED - FIRST_ALONE)


def _sync_beside_joins(directory: Path) -> float:
    """Seconds of the file's fsync, while the other CPUs create and remove names in its domain."""
    took = mmap.mmap(-1, 8)
    end = time.monotonic() + LOAD

    def work(number: int) -> None:
        os.sched_setaffinity(0, {number})
        if not number:
            time.sleep(0.3)
            began = time.monotonic()
            sync(directory / "f")
            struct.pack_into("=d", took, 0, time.monotonic() - began)
        while number and took[:] == bytes(8) and time.monotonic() < end:
            (directory / str(number) / "name").touch()
            (directory / str(number) / "name").unlink()

    children(CPUS, work)
    return float(struct.unpack("=d", took)[0])


@long_test
def an_fsync_does_not_wait_for_ties_that_it_does_not_need(place: Place) -> None:
    """Its own transaction is on disk; others tie the next one of its domain all the time."""
    place.own_lanefs("others have one journal")
    if len(os.sched_getaffinity(0)) < CPUS:
        raise Skipped(f"it needs {CPUS} CPUs")
    with loop_device(place, 256, domains=CPUS) as (device, _), mounted(place, device) as mount:
        os.sched_setaffinity(0, {0})
        for number in range(1, CPUS):
            (mount / "0" / str(number)).mkdir(parents=True)
        os.sync()
        with _slow_joins():
            before = traced(device, lambda: _tie(mount / "0"), "lanefs/lanefs_commit")
            seconds: list[float] = []
            during = traced(
                device, lambda: seconds.append(_sync_beside_joins(mount / "0")), "lanefs_commit"
            )
        first, second = (
            f" domain {(mount / '0' / name).stat().st_ino >> 40} " for name in ("f", "g")
        )
    half = any(first in line for line in before) and not any(second in line for line in before)
    if not half or not any(second in line for line in during):
        raise Skipped("the timers did not leave one of two transactions to the fsync")
    print(f"{seconds[0]:.2f} s", flush=True)
    check(seconds[0] < LONGEST, f"an fsync took {seconds[0]:.1f} s")


def _counts(lines: list[str]) -> tuple[int, int, int, int]:
    """Commits, flushes of the cache, writes behind it (FUA) and other writes that were traced."""
    kinds = re.findall(r"block_bio_queue: \d+,\d+ (\w+)", "\n".join(lines))
    flushes = sum(kind.startswith("F") for kind in kinds)
    forced = sum(kind.startswith("WF") for kind in kinds)
    return len(lines) - len(kinds), flushes, forced, len(kinds) - flushes - forced


@long_test
def an_fsync_commits_each_tied_domain_behind_one_flush(place: Place) -> None:
    """Names of a directory change whose inodes are in other domains; then a file is synced."""
    place.own_lanefs("others have one journal")
    with (
        slow_device(place, 1024, 0.0005, DOMAINS, cache=True) as device,
        mounted(place, device, "placement=roundrobin") as mount,
    ):
        names = [mount / "d" / f"f{number}" for number in range(DOMAINS)]
        names[0].parent.mkdir()
        for name in names:
            name.touch()
        own = (mount / "d").stat().st_ino >> 40
        synced, *others = sorted(names, key=lambda name: name.stat().st_ino >> 40 != own)
        for ties in (0, 1, 3, 7, 15):
            os.sync()
            synced.chmod(0o600 + ties)
            for other in others[:ties]:
                other.rename(other.with_suffix(".moved"))
            found = _counts(traced(device, lambda: sync(synced), *EVENTS))
            for other in others[:ties]:
                other.with_suffix(".moved").rename(other)
            print(f"{ties} ties: {found}", flush=True)
            domains = ties + 1
            equal(found, (domains, 1, domains, domains), f"counts of an fsync with {ties} ties")


@long_test
def fsyncs_at_the_same_time_share_the_commits_of_tied_domains(place: Place) -> None:
    """Of files that are created in a directory of each CPU's own, and in one that all share."""
    place.own_lanefs("others have one journal")
    if len(os.sched_getaffinity(0)) < CPUS:
        raise Skipped(f"it needs {CPUS} CPUs")
    with (
        slow_device(place, 512, 0.002, CPUS, cache=True) as device,
        mounted(place, device) as mount,
    ):

        def create(number: int, directory: Path) -> None:
            os.sched_setaffinity(0, {number})
            directory.mkdir(parents=True, exist_ok=True)
            for n in range(SYNCS):
                name = directory / f"{number}-{n}"
                name.touch()
                sync(name)

        for what in ("own", "shared"):
            paths = [mount / what / (str(n) if what == "own" else "") for n in range(CPUS)]
            lines = traced(
                device,
                lambda paths=paths: children(CPUS, lambda number: create(number, paths[number])),
                *EVENTS,
            )
            found = [count / (CPUS * SYNCS) for count in _counts(lines)]
            print(f"{what}: {' '.join(f'{count:.2f}' for count in found)} per fsync", flush=True)
            check(found[0] < CPUS + 0.5, f"{found[0]:.2f} commits per fsync of {CPUS} domains")
