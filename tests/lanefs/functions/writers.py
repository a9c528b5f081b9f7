# SPDX-License-Identifier: GPL-2.0-only
"""Writers that note elsewhere what is durable, and a check of their notes after a crash."""

import errno
import itertools
import os
from collections.abc import Callable
from pathlib import Path

from fscale.vm.crashload import sync
from tests.lanefs.functions.files import BLOCK
from tests.lanefs.functions.harness import check, equal

# What a change fails with after an error of the journal or a shutdown: lanefs is read-only then.
STOPPED = (errno.EROFS, errno.EIO)


class Notes:
    """What a writer knows to be durable: lines in a file of another file system."""

    def __init__(self, path: Path, void: Path | None = None) -> None:
        self._file = path.open("a", buffering=1)
        self._void = void

    def void(self) -> bool:
        """Whether what the file system says does not count any more: the file `void` exists."""
        return self._void is not None and self._void.exists()

    def add(self, *words: object) -> None:
        """One more thing is durable."""
        if not self.void():
            self._file.write(" ".join(map(str, words)) + "\n")

    def check(self, error: OSError) -> None:
        """An error must be one of I/O."""
        check(error.errno in STOPPED or self.void(), f"a writer fails with {error}")


def _block(number: int) -> bytes:
    return b"%015d\n" % number * (BLOCK // 16)


def _create(here: Path, notes: Notes, number: int) -> None:
    """New files of 1 to 9 blocks, of which each third is renamed."""
    for n in itertools.count():
        name = f"{number}-{n}"
        with (here / name).open("xb", buffering=0) as file:
            file.write(_block(n) * (n % 9 + 1))
            os.fsync(file.fileno())
        notes.add("file", name, n)
        if n % 3 == 0:
            (here / name).rename(here / f"{name}.moved")
            sync(here)
            notes.add("moved", name, n)


def _overwrite(here: Path, notes: Notes, number: int) -> None:
    """One block of one file, again and again."""
    name = f"{number}-block"
    with (here / name).open("wb", buffering=0) as file:
        for n in itertools.count():
            os.pwrite(file.fileno(), _block(n), 0)
            os.fdatasync(file.fileno())
            notes.add("block", name, n)


def _replace(here: Path, notes: Notes, number: int) -> None:
    """A file that is replaced by rename."""
    name = f"{number}-replaced"
    for n in itertools.count():
        with (here / f"{name}.new").open("wb", buffering=0) as file:
            file.write(_block(n))
            os.fsync(file.fileno())
        (here / f"{name}.new").rename(here / name)
        sync(here)
        notes.add("block", name, n)


def _hasten(here: Path, notes: Notes, number: int) -> None:
    """Directories and files that nobody syncs."""
    del notes
    for n in itertools.count():
        (here / f"{number}-{n}").mkdir()
        (here / f"{number}-{n}" / "f").write_bytes(bytes(n % 50_000))
        if n >= 10:
            (here / f"{number}-{n - 10}" / "f").unlink()
            (here / f"{number}-{n - 10}").rmdir()


KINDS: tuple[Callable[[Path, Notes, int], None], ...] = (_create, _overwrite, _replace, _hasten)


def write(here: Path, notes: Notes, number: int) -> None:
    """Write in `here` as the number says until a call fails, which must be for an error of I/O."""
    try:
        KINDS[number % len(KINDS)](here, notes, number)
    except OSError as error:
        notes.check(error)


def write_on(root: Path, notes: Path, number: int, void: Path | None = None) -> None:
    """Write as `write` does, in a new directory after each error, until none can be made."""
    for n in itertools.count():
        here = root / f"{number}.{n}"
        own = Notes(notes / f"{here.name}-{number}", void)
        try:
            here.mkdir()
        except OSError as error:
            own.check(error)
            return
        try:
            sync(here)
            sync(root)
        except OSError as error:
            own.check(error)
        else:
            write(here, own, number)


def noted(notes: Path, pattern: str = "*") -> int:
    """How many writers have noted something."""
    return sum(1 for path in notes.glob(pattern) if path.stat().st_size)


def look_at_all(root: Path, notes: Path) -> int:
    """All that was noted as durable is there; how much that is.

    A file of notes is named after the directory below `root` that it is about: `DIRECTORY-NUMBER`.
    """
    return sum(_look(root / path.name.partition("-")[0], path) for path in notes.iterdir())


def _look(here: Path, notes: Path) -> int:
    known: dict[str, tuple[str, int]] = {}
    for line in notes.read_text().splitlines():
        kind, name, n = line.split()
        known[name] = (kind, int(n))
    for name, (kind, n) in known.items():
        if kind == "block":
            found = (here / name).read_bytes()
            equal(len(found), BLOCK, f"the size of {name}")
            check(int(found[:15]) >= n, f"{name} holds {int(found[:15])}, {n} was durable")
            check(found == _block(int(found[:15])), f"{name} is torn")
            continue
        paths = [here / f"{name}.moved", here / name]
        there = [path for path in paths if path.exists()]
        equal(len(there), 1, f"the names of {name}")
        check(kind == "file" or there == paths[:1], f"{name} was renamed, which was durable")
        check(there[0].read_bytes() == _block(n) * (n % 9 + 1), f"{name} lacks what was fsync'd")
    return len(known)
