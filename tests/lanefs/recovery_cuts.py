# SPDX-License-Identifier: GPL-2.0-only
"""Power cuts while a crashed image is recovered: by a mount, by fsck.

The writes of a recovery are recorded. A cut during it leaves what was durable and a random subset
of the writes under way; the next mount must recover from that, too, with all that was fsync'd. A
repair is not journaled: one that is cut has marked the file system as damaged, is done again, and
leaves each block that was being written old or new, since a torn one would be lost.
"""

import os
import random
import subprocess
from collections.abc import Callable, Sequence
from typing import BinaryIO

from fscale.vm import crashtest, logwrites
from fscale.vm.crashload import Model
from fscale.vm.crashtest import Add, Spec
from fscale.vm.logwrites import LogEntry
from tests.lanefs.device import MOUNT, Fault, Volume, command
from tests.lanefs.recoveries import examined

# The workload's writes are in another log by then, and its device is not needed any more.
RECORDED = crashtest.DATA
CUTS = 2
"""of each recovery"""
REPAIRED = 1
"""code of fsck.lanefs"""


def _mount(device: str) -> None:
    command(["mount", "-t", "lanefs", device, str(MOUNT)])
    command(["umount", str(MOUNT)])


WAYS: dict[str, Callable[[str], object]] = {
    "mount": _mount,
    "fsck --replay": lambda device: command(["fsck.lanefs", "--replay", device]),
    "fsck -y": lambda device: command(["fsck.lanefs", "-y", device]),
}


def _repair_again(device: str) -> None:
    """After a cut in a repair, which may find what that one has left."""
    done = subprocess.run(
        ["fsck.lanefs", "-y", device], capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, REPAIRED):
        raise Fault(f"a repair after a cut in a repair: {(done.stderr or done.stdout).strip()}")


AGAIN: dict[str, Callable[[str], object]] = {"fsck -y": _repair_again}


def _record(spec: Spec, add: Add | None, recover: Callable[[str], object]) -> list[LogEntry]:
    """The writes and flushes of a recovery, whose data is in RECORDED."""
    with RECORDED.open("r+b") as log:
        log.write(bytes(logwrites.SECTOR * 8))
        log.flush()
        os.fsync(log.fileno())
    with (
        crashtest.power_cut(spec, add) as device,
        crashtest.recorder(device, RECORDED, spec.size) as recorded,
    ):
        recover(recorded)
    with RECORDED.open("rb") as log:
        return logwrites.read_log(log)


def flush_groups(entries: Sequence[LogEntry]) -> list[list[LogEntry]]:
    """The entries in groups, each of which ends with a flush, or where they end."""
    groups: list[list[LogEntry]] = [[]]
    for entry in entries:
        groups[-1].append(entry)
        if entry.durable:
            groups.append([])
    return [group for group in groups if group]


class RecoveryCuts:
    """Cuts the recoveries of each crashed image, recovers again, checks, and counts."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cuts = 0
        self.written = 0
        """cuts that left a write of the recovery"""

    def examine(
        self, spec: Spec, models: Sequence[Model], add: Add | None
    ) -> tuple[str, str] | None:
        """What is wrong after a cut, and its text; None: nothing."""
        for way, recover in WAYS.items():
            groups = flush_groups(_record(spec, add, recover))
            for _ in range(CUTS):
                failure = self._cut(spec, models, add, groups, AGAIN.get(way))
                if failure:
                    return f"{failure[0]} after a cut during {way}", failure[1]
        return None

    def _cut(
        self,
        spec: Spec,
        models: Sequence[Model],
        add: Add | None,
        groups: list[list[LogEntry]],
        again: Callable[[str], object] | None,
    ) -> tuple[str, str] | None:
        last = self.rng.randrange(len(groups))
        seed = self.rng.getrandbits(32)
        durable = [entry for group in groups[:last] for entry in group]
        pending = logwrites.under_way(groups[last])

        def cut(device: BinaryIO) -> None:
            if add:
                add(device)
            with RECORDED.open("rb") as log:
                for entry in durable:
                    logwrites.apply(log, entry, device)
                if not again:
                    logwrites.apply_some(log, pending, device, random.Random(seed))
                    return
                for entry in random.Random(seed).sample(pending, len(pending) // 2):
                    logwrites.apply(log, entry, device)
            device.flush()
            os.fsync(device.fileno())
            again(device.name)

        self.cuts += 1
        self.written += any(entry.length for entry in (*durable, *pending))
        return crashtest.examine(spec, models, cut)


def run(made: Volume, points: int, seed: int) -> str:
    """Recoveries of crashed images at `points` cuts of a workload, each cut itself."""
    if made.fs.kernel != "lanefs":
        return "others recover in their own way"
    cuts = RecoveryCuts(seed)
    result = examined(made, points, seed, cuts.examine)
    if not cuts.written:
        raise Fault("no recovery had written anything before its cut")
    return (
        f"{cuts.cuts} cuts during recoveries of {result.tested + result.subsets} images, "
        f"{cuts.written} after writes of the recovery: all recover"
    )
