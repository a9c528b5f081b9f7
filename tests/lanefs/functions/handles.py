# SPDX-License-Identifier: GPL-2.0-only
"""Handles, as NFS has them: name_to_handle_at() and open_by_handle_at()."""

import ctypes
import errno
import mmap
import os
import random
import struct
import time
import zlib
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from tests.lanefs.functions.harness import (
    Failed,
    Place,
    Skipped,
    check,
    children,
    equal,
    fails,
    libc,
    load_ends,
    long_test,
    optional,
    test,
)

SECONDS = 6.0
ENOUGH = 100
MOST = 128
# As lanefs has them: the number (40 bits of it are the index in its domain) and the generation.
FID, DOMAIN_SHIFT, INDICES = struct.Struct("<QI"), 40, 32
SLOT, SLOTS = 256, 64
# What ext4 says where the number is being given to a new inode.
BEING_CREATED = errno.ENOMEM


class _FileHandle(ctypes.Structure):
    _fields_ = (
        ("bytes", ctypes.c_uint),
        ("type", ctypes.c_int),
        ("data", ctypes.c_ubyte * MOST),
    )


Handle = tuple[int, bytes]
"""its type, and its bytes"""


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def handle_of(place: Place, path: Path) -> Handle:
    """Of an object, not following links; Skipped where there are none."""
    made, mount = _FileHandle(bytes=MOST), ctypes.c_int()
    with nullcontext() if place.filesystem == "lanefs" else optional("handles"):
        _checked(
            libc.name_to_handle_at(
                -100, os.fsencode(path), ctypes.byref(made), ctypes.byref(mount), 0
            )
        )
    return made.type, bytes(made.data[: made.bytes])


def opened(place: Place, handle: Handle, flags: int = os.O_RDONLY) -> int:
    """A descriptor of the object that the handle is of."""
    kind, data = handle
    asked = _FileHandle(len(data), kind, (ctypes.c_ubyte * MOST)(*data))
    mount = os.open(place.mount_point, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return _checked(libc.open_by_handle_at(mount, ctypes.byref(asked), flags))
    finally:
        os.close(mount)


def forget(place: Place) -> None:
    """Let the kernel forget names and inodes that nobody uses."""
    if os.geteuid() != 0:
        raise Skipped("no right to drop caches")
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("2")


def _is_stale(place: Place, handle: Handle, what: str) -> None:
    with fails(errno.ESTALE, what):
        os.close(opened(place, handle, os.O_PATH))


@test
def handles_open_what_they_are_of(place: Place) -> None:
    """All kinds of objects: with the caches dropped, after a rename, and after a remount."""
    below = place.directory / "a" / "b"
    below.mkdir(parents=True)
    other = place.directory / "other"
    other.mkdir()
    (below / "file").write_text("content")
    (below / "link").symlink_to("file")
    os.mkfifo(below / "fifo")
    paths = [place.mount_point, below.parent, below, *below.iterdir()]
    handles = {path: handle_of(place, path) for path in paths}
    equal(len(set(handles.values())), len(paths), "handles that differ")

    def same(paths: dict[Path, Path], when: str) -> None:
        for old, path in paths.items():
            fd = opened(place, handles[old], os.O_PATH | os.O_NOFOLLOW)
            found, right = os.fstat(fd), path.lstat()
            equal((found.st_ino, found.st_mode), (right.st_ino, right.st_mode), f"{old}, {when}")
            os.close(fd)

    def connected(path: Path, handle: Handle, when: str) -> None:
        fd = opened(place, handle, os.O_RDONLY | os.O_DIRECTORY)
        equal(os.readlink(f"/proc/self/fd/{fd}"), str(path), f"the path of a directory, {when}")
        equal(sorted(os.listdir(fd)), ["fifo", "file", "link"], f"its names, {when}")
        os.close(fd)

    events: dict[str, Callable[[], None]] = {
        "at once": lambda: None,
        "caches dropped": lambda: forget(place),
        "after a remount": place.cycle,
    }
    for when, event in events.items():
        event()
        # Directories first, while nothing has looked their names up.
        connected(below, handles[below], when)
        same({path: path for path in paths}, when)
        fd = opened(place, handles[below / "file"])
        equal(os.read(fd, 100), b"content", f"the file's content, {when}")
        os.close(fd)
    below.rename(other / "moved")
    forget(place)
    connected(other / "moved", handles[below], "after a rename")
    same({path: other / "moved" / path.name for path in paths[3:]}, "after a rename")


@long_test
def handles_of_what_is_gone_are_stale(place: Place) -> None:
    """Also when the number is another's, with the caches dropped, and after a remount."""
    gone: dict[int, Handle] = {}
    paths = [place.directory / f"f{n}" for n in range(20)]
    for n, path in enumerate(paths):
        path.mkdir() if n % 4 == 0 else path.write_text("old")
        gone[path.lstat().st_ino] = handle_of(place, path)
    os.link(paths[1], place.directory / "kept")
    kept = handle_of(place, paths[1])
    held = os.open(paths[2], os.O_RDONLY)
    del gone[paths[1].stat().st_ino], gone[os.fstat(held).st_ino]
    for path in paths:
        path.rmdir() if path.is_dir() else path.unlink()
    for handle in gone.values():
        _is_stale(place, handle, "a handle of what was removed")
    again = 0
    for n in range(200):
        path = place.directory / f"g{n}"
        path.write_text("new")
        again += path.stat().st_ino in gone
    check(bool(again) or place.filesystem != "lanefs", "numbers are given out again")
    for when, event in (
        ("with the numbers in use", lambda: None),
        ("with the caches dropped", lambda: forget(place)),
    ):
        event()
        for handle in gone.values():
            _is_stale(place, handle, f"a handle of what was removed, {when}")
        os.close(opened(place, kept))
    equal(os.read(held, 10), b"old", "what was held open")
    os.close(held)
    place.cycle()
    for handle in gone.values():
        _is_stale(place, handle, "a handle of what was removed, after a remount")
    fd = opened(place, kept)
    equal(os.read(fd, 10), b"old", "what still has a name")
    os.close(fd)


@test
def forged_handles_are_stale(place: Place) -> None:
    """Numbers that are nobody's, out of range or reserved, with any generation; bits flipped."""
    path = place.directory / "f"
    path.write_text("mine")
    kind, data = handle_of(place, path)
    mine = path.stat().st_ino
    rng = random.Random(1)
    forged = [
        (kind, data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :])
        for at in range(len(data))
        for _ in range(4)
    ]
    forged += [(kind, rng.randbytes(len(data))) for _ in range(2000)]
    forged += [(kind, data[:-1]), (kind, b""), (kind ^ 1, data)]
    if place.filesystem == "lanefs":
        number, generation = FID.unpack(data)
        equal(number, mine, "the number in the handle")
        for domain in range(8):
            for index in range(2 if domain == 0 else 0, INDICES):
                forged += [
                    (kind, FID.pack(domain << DOMAIN_SHIFT | index, gen)) for gen in (0, generation)
                ]
        for wrong in (0, 2**24 - 1, 2**39, 2**40 - 1, 2**63, 2**64 - 1, 300 << DOMAIN_SHIFT | 40):
            forged.append((kind, FID.pack(wrong, generation)))
    for handle in forged:
        try:
            fd = opened(place, handle, os.O_PATH)
        except OSError as error:
            # A handle of 0 bytes is none at all; some have a length that the kernel refuses.
            right = (
                (errno.ESTALE,)
                if handle[0] == kind and len(handle[1]) == len(data)
                else (errno.ESTALE, errno.EINVAL)
            )
            if error.errno not in right:
                raise Failed(f"{handle} gives {error}") from None
        else:
            equal(os.fstat(fd).st_ino, mine, f"the object of {handle}")
            equal(handle[1][: FID.size], data[: FID.size], "the handle of one's own")
            os.close(fd)
    path.write_text("still writable")


class _Shared:
    """Handles with what belongs to them, in memory that processes share."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, SLOT * SLOTS)

    def put(self, number: int, name: str, handle: Handle) -> None:
        kind, data = handle
        record = struct.pack("<BiB", len(name), kind, len(data)) + name.encode() + data
        whole = struct.pack("<I", zlib.crc32(record)) + record
        self.memory[number * SLOT : (number + 1) * SLOT] = whole.ljust(SLOT, b"\0")

    def get(self, number: int) -> tuple[str, Handle] | None:
        """None: there is none, or only half of one as yet."""
        whole = self.memory[number * SLOT : (number + 1) * SLOT]
        length, kind, size = struct.unpack_from("<BiB", whole, 4)
        middle, end = 10 + length, 10 + length + size
        if struct.unpack_from("<I", whole)[0] != zlib.crc32(whole[4:end]) or not length:
            return None
        return whole[10:middle].decode(), (kind, whole[middle:end])


@long_test
def stale_handles_are_opened_beside_removals(place: Place) -> None:
    """Processes create and remove; others open handles of it all, and find that object or none."""
    handle_of(place, place.directory)
    shared, end = _Shared(), load_ends(SECONDS)
    counts = mmap.mmap(-1, 64)

    def goes_on() -> bool:
        """Until it ends, and until enough handles were stale: a guest may be slow."""
        return time.monotonic() < end or sum(struct.unpack_from("<3I", counts)) <= ENOUGH

    def create(number: int) -> None:
        """Each has a quarter of the slots."""
        rng, turn = random.Random(number), 0
        while goes_on():
            turn += 1
            made = []
            for _ in range(rng.randrange(1, 5)):
                slot = number * (SLOTS // 4) + rng.randrange(SLOTS // 4)
                name = f"{number}-{turn}-{len(made)}"
                path = place.directory / name
                if rng.random() < 0.3:
                    (path / name).mkdir(parents=True)
                    shared.put(slot, f"d{name}", handle_of(place, path / name))
                else:
                    path.write_text(name)
                    shared.put(slot, f"f{name}", handle_of(place, path))
                made.append(path)
            for path in made:
                if path.is_dir():
                    (path / path.name).rename(path / "moved")
                    (path / "moved").rmdir()
                    path.rmdir()
                else:
                    path.unlink()

    def read(number: int) -> None:
        rng, stale = random.Random(number), 0
        while goes_on():
            record = shared.get(rng.randrange(SLOTS))
            if not record:
                continue
            name, handle = record
            try:
                fd = opened(place, handle)
            except OSError as error:
                if place.filesystem == "lanefs" or error.errno != BEING_CREATED:
                    equal(error.errno, errno.ESTALE, "errno of a handle of what may be gone")
                stale += 1
                struct.pack_into("<I", counts, 4 * (number - 4), stale)
                continue
            if name[0] == "d":
                equal(os.listdir(fd), [], "the names in an empty directory")
            else:
                equal(os.read(fd, 100).decode(), name[1:], "the content of the object")
            os.close(fd)

    def work(number: int) -> None:
        if number < 4:
            create(number)
        elif number < 7:
            read(number)
        else:
            while goes_on():
                Path("/proc/sys/vm/drop_caches").write_text("2")
                time.sleep(0.05)

    children(8 if os.geteuid() == 0 else 7, work)
    (place.directory / "last").write_text("still writable")
    place.cycle()
    equal(os.listdir(place.directory), ["last"], "the names in the end")
