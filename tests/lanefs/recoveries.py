# SPDX-License-Identifier: GPL-2.0-only
"""Crashed images, each recovered in every way there is: what is left must be the same bytes."""

import re
import subprocess
from collections.abc import Sequence

from fscale.vm import crashtest, snapshot
from fscale.vm.crashload import Model
from fscale.vm.crashtest import Add, Result, Spec
from tests.lanefs.device import (
    Fault,
    Volume,
    command,
    kernel_messages,
    mount_read_only,
    unmount,
)

MIB, DOMAINS, WORKERS = 48, 4, 4
# Owners of blocks, and segments.
MIB_OF_LOG = 64
# A read-only mount recovers, and changes nothing else.
MOUNTS = ("ablate=recovery", "ablate=none")
THREADS = (1, 16)
_SAID_BY_MOUNT = re.compile(
    r"recovered: (\d+) transactions replayed, (\d+) discarded; (\d+) blocks of \d+ domains"
)
_SAID_BY_FSCK = re.compile(r"Replayed (\d+) transactions \((\d+) blocks\), (\d+) discarded")


class Recoveries:
    """Recovers each crashed image, compares, and counts."""

    def __init__(self) -> None:
        self.images = 0
        self.transactions = 0
        self.discarding = 0
        """images of which some transactions are beyond the cut"""

    def examine(
        self, spec: Spec, models: Sequence[Model], add: Add | None
    ) -> tuple[str, str] | None:
        """Two that differ, None when none do."""
        del models
        first: tuple[tuple[int, ...], dict[int, bytes]] | None = None
        for way in (*MOUNTS, *THREADS):
            with crashtest.power_cut(spec, add) as device:
                counts = _mount(device, way) if isinstance(way, str) else _replay(device, way)
            found = counts, snapshot.changed(crashtest.CHANGES, crashtest.IMAGE)
            first = first or found
            if found[0] != first[0]:
                return f"recovery {way}", f"{counts} replayed, discarded, blocks; not {first[0]}"
            if found[1] != first[1]:
                return f"recovery {way}", f"not as {MOUNTS[0]}: {_differences(found[1], first[1])}"
        assert first
        self.images += 1
        self.transactions += first[0][0]
        self.discarding += first[0][1] > 0
        return None


def _differences(one: dict[int, bytes], other: dict[int, bytes]) -> str:
    numbers = sorted(n for n in one.keys() | other.keys() if one.get(n) != other.get(n))
    return f"{len(numbers)} blocks, the first {numbers[:5]}"


def _mount(device: str, option: str) -> tuple[int, ...]:
    """Transactions replayed and discarded, and blocks, as the kernel's log has them."""
    with kernel_messages() as messages:
        try:
            mount_read_only("lanefs", device, option)
        except Fault as fault:
            # Why, which is gone with the guest: what the kernel said, and what the logs hold.
            raise Fault("\n".join([str(fault), messages(), *_logs(device)])) from None
        unmount()
        said = _SAID_BY_MOUNT.search(messages())
    return tuple(int(number) for number in said.groups()) if said else (0, 0, 0)


def _logs(device: str) -> list[str]:
    """What each domain's log holds, as far as it can be read."""
    return [
        subprocess.run(
            ["lanefs-dump", device, what, str(domain)], capture_output=True, text=True, check=False
        ).stdout
        for domain in range(DOMAINS)
        for what in ("domain", "journal")
    ]


def _replay(device: str, threads: int) -> tuple[int, ...]:
    """The same by fsck."""
    said = _SAID_BY_FSCK.search(command(["fsck.lanefs", "--replay", "-j", str(threads), device]))
    replayed, blocks, discarded = (int(number) for number in said.groups()) if said else (0, 0, 0)
    return replayed, discarded, blocks


def _workload(made: Volume, points: int, seed: int) -> Spec:
    """A workload over domains, cut at `points` points, and with a part of the writes under way."""
    return Spec(
        filesystem="lanefs",
        mkfs=[*made.fs.mkfs[:-1], "--domains", str(DOMAINS), made.fs.mkfs[-1]],
        # Objects in turns, so that most transactions need others.
        mount_options=[*made.fs.mount_options, "placement=roundrobin", *made.options],
        fsck=made.fs.check or made.fs.fsck,
        workload="mix",
        workers=WORKERS,
        operations=points // WORKERS + 1,
        points=points,
        seed=seed,
        size=(MIB_OF_LOG if "log" in made.fs.mkfs else MIB) << 20,
        plant=None,
        subsets=1,
    )


def _crash(spec: Spec) -> None:
    """Record the workload; the image is as before it."""
    with crashtest.IMAGE.open("r+b") as image:
        image.write(bytes(spec.size))
    crashtest.record(spec)


def examined(made: Volume, points: int, seed: int, examine: crashtest.Examine) -> Result:
    """What the examination of each crashed image found; Fault: of one it found something wrong."""
    spec, result = _workload(made, points, seed), Result()
    _crash(spec)
    crashtest.replay(spec, result, examine)
    if result.first:
        raise Fault(
            f"{result.failing} images fail; after log entry {result.first['entry']}, "
            f"{result.first['what']}: {result.first['text']}"
        )
    return result


def run(made: Volume, points: int, seed: int) -> str:
    """Crashed images at `points` cuts, and with a part of the writes under way; what was found."""
    if made.fs.kernel != "lanefs":
        return "nothing to compare"
    recoveries = Recoveries()
    examined(made, points, seed, recoveries.examine)
    if not recoveries.transactions:
        raise Fault("no image had anything to recover")
    threads = " and ".join(map(str, THREADS))
    return (
        f"{recoveries.images} images, {recoveries.transactions} transactions, "
        f"{recoveries.discarding} images with some beyond the cut: the same bytes by "
        f"{' and '.join(MOUNTS)} and by fsck.lanefs --replay -j {threads}"
    )
