# SPDX-License-Identifier: GPL-2.0-only
"""What an fsync commits and writes where operations tie domains."""

import os
import re
from pathlib import Path

from fscale.vm.crashload import sync
from tests.lanefs.functions.harness import Place, Skipped, check, children, equal, long_test
from tests.lanefs.functions.loop import mounted, slow_device
from tests.lanefs.functions.traced import traced

CPUS = 4
DOMAINS = 16
SYNCS = 50
"""of each task"""
EVENTS = ("lanefs/lanefs_commit", "block/block_bio_queue")


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
            equal(found[:3], (ties + 1, 1, ties + 1), f"counts of an fsync with {ties} ties")
            # A domain writes its journal, and apart from it what it revokes: the block that had the
            # old name, unless the new one has its hash, whose seed is random, in the same block.
            check(ties < found[3] <= 2 * ties + 1, f"{found[3]} writes of {ties + 1} journals")


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
