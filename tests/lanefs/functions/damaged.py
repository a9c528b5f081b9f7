# SPDX-License-Identifier: GPL-2.0-only
"""A log of which the medium has damaged what was durable: nothing of it is dropped in silence."""

import hashlib
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fscale.vm.crashtest import map_device
from tests.lanefs import blocks
from tests.lanefs.blocks import BLOCK
from tests.lanefs.functions.harness import (
    Failed,
    Place,
    Skipped,
    check,
    equal,
    long_test,
    run,
)
from tests.lanefs.functions.loop import attached, loop_device, mounted
from tests.lanefs.images import survey

NAMES = [f"d{n}" for n in range(8)]


@dataclass(frozen=True)
class Transaction:
    """A transaction in a log, and the blocks of the device that it lies in."""

    seq: int
    blocks: list[int]
    """a descriptor, copies, and at the end the commit block"""


def _log(image: Path) -> list[Transaction]:
    """The transactions in the log of an image of one domain."""
    data = image.read_bytes()
    found = survey("log", image, len(data) >> 20).blocks
    (journal_blocks,) = struct.unpack_from("<I", data, 132)
    (domain,) = found["domain"]
    (epoch,) = struct.unpack_from("<Q", data, domain * BLOCK + 56)
    seq, at = struct.unpack_from("<QQ", data, domain * BLOCK + 80)
    log: list[Transaction] = []
    walked: list[int] = []
    while True:
        place = domain + 1 + at
        block = data[place * BLOCK : (place + 1) * BLOCK]
        if struct.unpack_from("<Q", block, 40) + struct.unpack_from("<Q", block, 56) != (
            seq,
            epoch,
        ):
            return log
        kind = blocks.kind_of(block)
        (count,) = struct.unpack_from("<H", block, 50)
        length = 1 + count if kind == "descriptor" else 1
        walked += [domain + 1 + (at + n) % journal_blocks for n in range(length)]
        at = (at + length) % journal_blocks
        if kind == "commit":
            log.append(Transaction(seq, walked))
            seq, walked = seq + 1, []


def _crashed(place: Place, image: Path) -> list[Transaction]:
    """Make an image as after a power cut, of a log of committed transactions, a name in each."""
    if place.filesystem != "lanefs":
        raise Skipped("the format is lanefs's")
    with (
        loop_device(place, 24, domains=1) as (device, backing),
        mounted(place, device, "dirsync") as mount,
    ):
        for name in NAMES:
            (mount / name).mkdir()
        run("cp", "--sparse=always", str(backing), str(image))
    log = _log(image)
    check(len(log) >= len(NAMES), f"{len(log)} transactions for {len(NAMES)} names")
    return log


def _flip(image: Path, block: int) -> None:
    with image.open("r+b") as file:
        at = block * BLOCK + 3000
        (byte,) = os.pread(file.fileno(), 1, at)
        os.pwrite(file.fileno(), bytes([byte ^ 1]), at)


def _mounted_names(place: Place, device: str, *options: str) -> list[str]:
    with mounted(place, device, *options) as mount:
        return sorted(os.listdir(mount))


def _names(place: Place, image: Path) -> list[str]:
    """What is there after recovery."""
    with attached(image) as device:
        return _mounted_names(place, device)


@contextmanager
def _unreadable(device: str, image: Path, block: int) -> Iterator[str]:
    """The device of an image with an error for one of its blocks."""
    sectors, size = BLOCK // 512, image.stat().st_size // 512
    at = block * sectors
    table = (
        f"0 {at} linear {device} 0\n{at} {sectors} error\n"
        f"{at + sectors} {size - at - sectors} linear {device} {at + sectors}"
    )
    with map_device("lanefs-unreadable", table) as unreadable:
        yield unreadable


def _fsck(image: Path, option: str) -> tuple[int, str]:
    argv = ["fsck.lanefs", option, str(image)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def _refused(place: Place, device: str, options: str) -> str:
    """Mount, which must fail; its message."""
    point = place.directory / "m"
    point.mkdir(exist_ok=True)
    argv = ["mount", "-t", "lanefs", "-o", options, device, str(point)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        names = sorted(os.listdir(point))
        run("umount", str(point))
        check(False, f"mounted, with {' '.join(names)}")
    return done.stderr


def _lost(place: Place, image: Path, block: int, first: int, last: int) -> None:
    """The image is refused and stays as it is; fsck tells of these transactions, and mends."""
    before = hashlib.sha256(image.read_bytes()).digest()
    with attached(image) as device:
        for options in ("rw", "ro", "ro,ablate=recovery"):
            said = _refused(place, device, options)
            check("needs cleaning" in said, f"the mount fails with {said.strip()}")
    told = f"domain 0: block {block} is damaged or lost, and with it transactions {first} to {last}"
    check(told in run("dmesg"), f"the kernel does not say: {told}")
    check(hashlib.sha256(image.read_bytes()).digest() == before, "what is refused was changed")
    code, said = _fsck(image, "-n")
    equal(code, 4, "fsck -n")
    check(told in said, f"fsck -n says {said}")
    check(hashlib.sha256(image.read_bytes()).digest() == before, "fsck -n changed something")
    code, said = _fsck(image, "-y")
    equal(code, 1, f"fsck -y ({said})")
    code, said = _fsck(image, "-n")
    equal(code, 0, f"fsck -n after -y ({said})")


@long_test
def a_log_that_lacks_what_was_committed_is_not_mounted(place: Place) -> None:
    """One byte of a transaction's blocks is wrong, and its commit block or a later one is there."""
    place.own()
    here = place.directory
    whole, image = here / "whole", here / "image"
    log = _crashed(place, whole)
    middle, last = log[len(log) // 2], log[-1]
    for what, block, first in (
        ("a copy", middle.blocks[1], middle.seq),
        ("a descriptor", middle.blocks[0], middle.seq),
        ("a commit block", middle.blocks[-1], middle.seq),
        ("a copy of the last transaction", last.blocks[-2], last.seq),
        ("the last transaction's descriptor", last.blocks[0], last.seq),
    ):
        shutil.copy(whole, image)
        _flip(image, block)
        try:
            _lost(place, image, block, first, last.seq)
        except Failed as error:
            raise Failed(f"{what}: {error}") from None
        names = _names(place, image)
        equal(names, NAMES[: len(names)], f"{what}: the names that are left")
        check(0 < len(names) < len(NAMES), f"{what}: {len(names)} names are left")
        equal(_fsck(image, "-n")[0], 0, f"{what}: fsck -n after the mount")


@long_test
def a_log_that_ends_as_a_power_cut_leaves_it_is_recovered(place: Place) -> None:
    """All is there; or, when the last commit block is not whole, all but its transaction."""
    place.own()
    here = place.directory
    whole, image = here / "whole", here / "image"
    last = _crashed(place, whole)[-1]
    for what, damaged, right in (
        ("a whole log", [], NAMES),
        ("a torn commit block", last.blocks[-1:], NAMES[:-1]),
        ("a transaction torn all over", last.blocks, NAMES[:-1]),
    ):
        shutil.copy(whole, image)
        for block in damaged:
            _flip(image, block)
        code, said = _fsck(image, "-n")
        equal(code, 0, f"{what}: fsck -n ({said})")
        equal(_names(place, image), right, f"{what}: names")
        equal(_fsck(image, "-n")[0], 0, f"{what}: fsck -n after the mount")


@long_test
def a_log_that_cannot_be_read_is_not_mounted(place: Place) -> None:
    """The device gives an error for a block of it; without the error all is there."""
    place.own()
    here = place.directory
    image = here / "image"
    log = _crashed(place, image)
    for block in (log[len(log) // 2].blocks[1], log[-1].blocks[-1]):
        with attached(image) as device, _unreadable(device, image, block) as unreadable:
            for options in ("rw", "rw,ablate=recovery"):
                said = _refused(place, unreadable, options)
                check("needs cleaning" not in said, f"the mount fails with {said.strip()}")
    equal(_names(place, image), NAMES, "names")


@long_test
def a_block_behind_the_log_need_not_be_readable(place: Place) -> None:
    """Recovery reads ahead; an error of a block that is not of the log stops nobody."""
    place.own()
    whole, image = place.directory / "whole", place.directory / "image"
    last = _crashed(place, whole)[-1].blocks[-1]
    for ablated in ("none", "recovery"):
        shutil.copy(whole, image)
        with attached(image) as device, _unreadable(device, image, last + 100) as unreadable:
            equal(_mounted_names(place, unreadable, f"ablate={ablated}"), NAMES, ablated)
