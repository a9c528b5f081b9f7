# SPDX-License-Identifier: GPL-2.0-only
"""The workload of a crash test, and what must be on the disk after a cut in the middle of it.

Each worker does one operation after the other in directories of its own and makes each durable
(fsync of the file and of the directories) before it marks it in the write log and begins the next.
So at any cut at most one operation a worker is under way: every path that it does not touch must
be exactly as the operations before left it, and those that it touches must be as POSIX and the
operation allow: renames atomic, no bytes of anybody else, nothing half replaced. A range is taken
out of a file or put into it (fallocate) as a whole, which is more than Linux promises.
"""

import ctypes
import os
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

Space = Literal["punch", "allocate", "collapse", "insert"]
Change = Literal["append", "overwrite", "truncate", Space, "setxattr", "removexattr"]
Kind = Literal["create", "replace", "rename", "whiteout", "link", "unlink", Change]
KINDS: tuple[Kind, ...] = (
    *("create", "append", "overwrite", "truncate"),
    *("replace", "rename", "link", "unlink"),
)
WORKLOADS: dict[str, tuple[Kind, ...]] = {
    "mix": KINDS,
    "create": ("create", "unlink"),
    "append": ("create", "append"),
    "overwrite": ("create", "overwrite"),
    "truncate": ("create", "append", "truncate"),
    "rename": ("create", "rename", "replace"),
    "link": ("create", "link", "rename", "unlink"),
    "xattr": (
        *("create", "append", "replace", "rename", "whiteout"),
        *("link", "unlink", "setxattr", "setxattr", "removexattr"),
    ),
    "space": ("create", "append", "overwrite", "truncate", "punch", "allocate"),
    "shift": ("create", "append", "overwrite", "punch", "collapse", "insert", "insert"),
}
# They change the bytes or attributes of a file, under all its names.
CHANGES: tuple[Kind, ...] = get_args(Change)
# Below a worker's directory, so that renames and links lead from one directory to another.
DIRECTORIES = ("", "d0/", "d1/", "d2/")
BLOCK = 4096
# Unlinked files that a worker still has open: what they hold must not be lost or leak.
HELD = 4
# More files a directory find no more faults and make every check slower.
MOST_FILES = 24
TEMPORARY = "new"
# fallocate(2), renameat2(2)
MODES: dict[Space, int] = {"punch": 3, "allocate": 0, "collapse": 0x8, "insert": 0x20}
RENAME_WHITEOUT = 4
ATTRIBUTE = "user.crash"
# What the model says of a name that was left to a whiteout.
WHITEOUT = b"\0whiteout"


@dataclass(frozen=True)
class Operation:
    """One operation on `name`, a path below the worker's directory.

    `data` goes to `offset` (append: to the end); truncate cuts or grows to `offset`; punch,
    allocate, collapse and insert are fallocate(2) of `length` bytes at `offset`, with the size kept
    by punch, and of whole blocks before the end of the file for the last two; `target`
    is the new name of a rename or link. setxattr and removexattr are of ATTRIBUTE; whiteout is a
    rename that leaves one.
    """

    kind: Kind
    name: str
    target: str | None = None
    offset: int = 0
    data: bytes = b""
    length: int = 0


def operations(seed: int, worker: int, count: int, kinds: tuple[Kind, ...]) -> Iterator[Operation]:
    """The operations of one worker: the same for the same arguments."""
    rng = random.Random(f"{seed}/{worker}")
    sizes: dict[str, int] = {}
    # Names that once shared a file: changing its bytes would change more than the one name.
    shared: set[str] = set()
    for number in range(count):
        fresh = f"{rng.choice(DIRECTORIES)}f{number}"
        possible = [kind for kind in kinds if kind == "create" or sizes]
        if len(sizes) >= MOST_FILES and "unlink" in possible:
            possible = ["unlink"]
        elif len(sizes) >= MOST_FILES and len(possible) > 1:
            possible = [kind for kind in possible if kind not in ("create", "link")]
        kind = rng.choice(possible)
        name = fresh if kind == "create" else rng.choice(sorted(sizes))
        if kind in CHANGES and name in shared:
            kind, name = "create", fresh
        if kind == "collapse" and sizes[name] <= BLOCK:
            kind = "insert"
        yield from _one(rng, kind, name, fresh, sizes, shared)


def _one(
    rng: random.Random,
    kind: Kind,
    name: str,
    fresh: str,
    sizes: dict[str, int],
    shared: set[str],
) -> Iterator[Operation]:
    if kind == "unlink":
        del sizes[name]
        yield Operation(kind, name)
    elif kind in ("rename", "whiteout"):
        sizes[fresh] = sizes.pop(name)
        if name in shared:
            shared.add(fresh)
        yield Operation(kind, name, target=fresh)
    elif kind in ("setxattr", "removexattr"):
        yield Operation(kind, name, data=_bytes(rng, rng.randrange(1, 3000)))
    elif kind == "link":
        sizes[fresh] = sizes[name]
        shared |= {name, fresh}
        yield Operation(kind, name, target=fresh)
    elif kind == "truncate":
        sizes[name] = rng.randrange(2 * sizes[name] + 2)
        yield Operation(kind, name, offset=sizes[name])
    elif kind in ("collapse", "insert"):
        yield _shift(rng, kind, name, sizes)
    elif kind in MODES:
        yield _space(rng, kind, name, sizes)
    elif kind == "overwrite":
        offset = rng.randrange(sizes[name] // BLOCK + 1) * BLOCK
        length = min(rng.randrange(1, 4 * BLOCK), max(sizes[name] - offset, 1))
        yield Operation(kind, name, offset=offset, data=_bytes(rng, length))
        sizes[name] = max(sizes[name], offset + length)
    else:
        length = rng.choice([rng.randrange(1, BLOCK), rng.randrange(BLOCK, 12 * BLOCK)])
        yield Operation(kind, name, data=_bytes(rng, length))
        sizes[name] = length + (sizes[name] if kind == "append" else 0)
        if kind == "replace":
            shared.discard(name)


def _space(rng: random.Random, kind: Kind, name: str, sizes: dict[str, int]) -> Operation:
    offset, length = rng.randrange(sizes[name] + BLOCK), rng.randrange(1, 12 * BLOCK)
    if rng.random() < 0.5:
        offset, length = offset // BLOCK * BLOCK, -(-length // BLOCK) * BLOCK
    if kind == "allocate":
        sizes[name] = max(sizes[name], offset + length)
    return Operation(kind, name, offset=offset, length=length)


def _shift(rng: random.Random, kind: Kind, name: str, sizes: dict[str, int]) -> Operation:
    # The last block cannot be taken out.
    whole = (sizes[name] - 1) // BLOCK
    first = rng.randrange(whole + (kind == "insert"))
    count = rng.randrange(1, 12) if kind == "insert" else rng.randrange(1, whole - first + 1)
    sizes[name] += (count if kind == "insert" else -count) * BLOCK
    return Operation(kind, name, offset=first * BLOCK, length=count * BLOCK)


def _bytes(rng: random.Random, length: int) -> bytes:
    """Bytes without zero, so that what was never written can be told from what was."""
    pattern = bytes(rng.randrange(1, 256) for _ in range(251))
    return (pattern * (length // len(pattern) + 1))[:length]


def sync(path: Path) -> None:
    """Have a file, or the names in a directory, durable (fsync). OSError."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _write(path: Path, offset: int, data: bytes, flags: int = 0) -> None:
    fd = os.open(path, os.O_WRONLY | flags, 0o644)
    try:
        done = 0
        while done < len(data):
            done += os.pwrite(fd, data[done:], offset + done)
        os.fsync(fd)
    finally:
        os.close(fd)


def _fallocate(path: Path, mode: int, offset: int, length: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(path, os.O_WRONLY)
    try:
        if libc.fallocate(fd, mode, ctypes.c_int64(offset), ctypes.c_int64(length)) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
        os.fsync(fd)
    finally:
        os.close(fd)


def _give_name(path: Path, target: Path, kind: Kind) -> list[Path]:
    """Rename or link; the directories that are to be made durable."""
    if kind == "link":
        target.hardlink_to(path)
        return [target.parent]
    libc = ctypes.CDLL(None, use_errno=True)
    flags = ctypes.c_uint(RENAME_WHITEOUT if kind == "whiteout" else 0)
    if libc.renameat2(-100, os.fsencode(path), -100, os.fsencode(target), flags) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
    return [path.parent, target.parent]


def _set_attribute(path: Path, value: bytes | None) -> None:
    if value is not None:
        os.setxattr(path, ATTRIBUTE, value)
    elif ATTRIBUTE in os.listxattr(path):
        os.removexattr(path, ATTRIBUTE)


def perform(directory: Path, operation: Operation, held: deque[int]) -> None:
    """Do an operation and make it durable; `held` are open files whose names are gone."""
    path = directory / operation.name
    changed = [path.parent]
    match operation.kind:
        case "create":
            _write(path, 0, operation.data, os.O_CREAT | os.O_EXCL)
        case "append":
            _write(path, path.stat().st_size, operation.data)
        case "overwrite":
            _write(path, operation.offset, operation.data)
        case "truncate":
            os.truncate(path, operation.offset)
            changed = [path]
        case "punch" | "allocate" | "collapse" | "insert":
            _fallocate(path, MODES[operation.kind], operation.offset, operation.length)
        case "replace":
            _write(directory / TEMPORARY, 0, operation.data, os.O_CREAT | os.O_EXCL)
            (directory / TEMPORARY).rename(path)
            changed.append(directory)
        case "rename" | "whiteout" | "link":
            changed = _give_name(path, directory / (operation.target or ""), operation.kind)
        case "setxattr" | "removexattr":
            _set_attribute(path, operation.data if operation.kind == "setxattr" else None)
            changed = [path]
        case "unlink":
            held.append(os.open(path, os.O_RDONLY))
            path.unlink()
            if len(held) > HELD:
                os.close(held.popleft())
    # The new name first: a file system may make them durable one by one.
    for parent in dict.fromkeys(reversed(changed)):
        sync(parent)


def work(directory: Path, plan: Iterator[Operation], mark: Callable[[int], None]) -> None:
    """Do the operations of a worker; `mark(n)` is called when the first n are durable."""
    directory.mkdir()
    for name in DIRECTORIES:
        (directory / name).mkdir(exist_ok=True)
        sync(directory / name)
    sync(directory)
    sync(directory.parent)
    mark(0)
    held: deque[int] = deque()
    for number, operation in enumerate(plan, start=1):
        perform(directory, operation, held)
        mark(number)


@dataclass
class Model:
    """What a worker's directory must hold: the durable state, and the operation under way."""

    plan: list[Operation]
    done: int | None = None
    """durable operations; None before the directory itself is durable"""
    files: dict[str, bytes] = field(default_factory=dict)

    def advance(self, done: int) -> None:
        """The first `done` operations are durable."""
        for operation in self.plan[self.done or 0 : done]:
            self.files = after(self.files, operation)
        self.done = done

    def faults(self, directory: Path) -> list[str]:
        """What is wrong with the directory as found after the cut; empty when all is well."""
        if self.done is None:
            return []
        if not directory.is_dir():
            return [f"{directory.name}/ is missing, though fsync'd"]
        pending = self.plan[self.done] if self.done < len(self.plan) else None
        missing = [name for name in DIRECTORIES if not (directory / name).is_dir()]
        if missing:
            return [f"{directory.name}/{name} is missing, though fsync'd" for name in missing]
        faults = _compare(self.files, _look(directory), pending)
        when = f"after {self.done} durable operations of {directory.name}"
        if pending:
            when += f", {pending.kind} of {pending.name} under way"
        return [f"{fault} ({when})" for fault in faults]


def after(files: dict[str, bytes], operation: Operation) -> dict[str, bytes]:
    """The files when `operation` is done."""
    files = dict(files)
    name, target = operation.name, operation.target or ""
    match operation.kind:
        case "create" | "replace":
            files[name] = operation.data
        case "append":
            files[operation.name] += operation.data
        case "overwrite":
            old, start = files[operation.name], operation.offset
            files[operation.name] = (
                old[:start] + operation.data + old[start + len(operation.data) :]
            )
        case "truncate":
            size = operation.offset
            files[operation.name] = files[operation.name][:size].ljust(size, b"\0")
        case "punch":
            old, start = files[operation.name], operation.offset
            end = min(start + operation.length, len(old))
            files[operation.name] = old[:start] + bytes(max(end - start, 0)) + old[end:]
        case "allocate":
            size = operation.offset + operation.length
            files[operation.name] = files[operation.name].ljust(size, b"\0")
        case "collapse":
            old, start = files[operation.name], operation.offset
            files[operation.name] = old[:start] + old[start + operation.length :]
        case "insert":
            old, start = files[operation.name], operation.offset
            files[operation.name] = old[:start] + bytes(operation.length) + old[start:]
        case "rename" | "whiteout":
            files[target] = files.pop(name)
            if operation.kind == "whiteout":
                files[name] = WHITEOUT
        case "link":
            files[target] = files[name]
        case "unlink":
            del files[name]
    _change_attributes(files, operation)
    return files


def _change_attributes(files: dict[str, bytes], operation: Operation) -> None:
    old, new = attribute_of(operation.name), attribute_of(operation.target or "")
    match operation.kind:
        case "setxattr":
            files[old] = operation.data
        case "removexattr" | "create" | "replace" | "unlink":
            files.pop(old, None)
        case "rename" | "whiteout" if old in files:
            files[new] = files.pop(old)
        case "link" if old in files:
            files[new] = files[old]


def attribute_of(name: str) -> str:
    """The key of a file's ATTRIBUTE among the files: no file has such a name."""
    return f"{name} ({ATTRIBUTE})"


def _look(directory: Path) -> dict[str, bytes]:
    """The files that are there, and their attributes."""
    actual: dict[str, bytes] = {}
    for path in directory.rglob("*"):
        if path.is_dir():
            continue
        name = str(path.relative_to(directory))
        if path.is_char_device():
            actual[name] = WHITEOUT
            continue
        actual[name] = path.read_bytes()
        if ATTRIBUTE in os.listxattr(path):
            actual[attribute_of(name)] = os.getxattr(path, ATTRIBUTE)
    return actual


def _compare(
    files: dict[str, bytes], actual: dict[str, bytes], pending: Operation | None
) -> list[str]:
    touched: set[str] = set()
    faults = []
    if pending:
        touched = {pending.name, pending.target or pending.name}
        faults += _attribute_faults(files, actual, pending, touched)
        touched |= {attribute_of(name) for name in touched}
        faults += _pending_faults(files, actual, pending)
        if pending.kind == "replace":
            touched.add(TEMPORARY)
    for name in sorted((files.keys() | actual.keys()) - touched):
        if name not in actual:
            faults.append(f"{name} is missing, though fsync'd")
        elif name not in files:
            faults.append(f"{name} exists, although it was removed and fsynced, or never created")
        elif actual[name] != files[name]:
            faults.append(f"{name} {_difference(files[name], actual[name])}")
    return faults


def _attribute_faults(
    files: dict[str, bytes], actual: dict[str, bytes], pending: Operation, touched: set[str]
) -> list[str]:
    """The attributes of the paths that the operation under way touches: old or new."""
    faults = []
    for name in sorted(touched & actual.keys()):
        key = attribute_of(name)
        states = [state for state in (files, after(files, pending)) if name in state]
        if states and actual.get(key) not in [state.get(key) for state in states]:
            faults.append(f"{key} is neither the old nor the new attribute")
    return faults


def _pending_faults(
    files: dict[str, bytes], actual: dict[str, bytes], pending: Operation
) -> list[str]:
    """The paths that the operation under way touches."""
    new = after(files, pending)
    name, target = pending.name, pending.target
    if target is not None:
        faults_of = {"link": _link_faults, "whiteout": _whiteout_faults, "rename": _rename_faults}
        return faults_of[pending.kind](name, target, files[name], actual)
    if name not in actual:
        return [] if pending.kind in ("create", "unlink") else [f"{name} is missing"]
    data = actual[name]
    if pending.kind == "unlink":
        return [] if data == files[name] else [f"{name} {_difference(files[name], data)}"]
    if pending.kind in ("replace", "collapse", "insert"):
        whole = data in (files[name], new[name])
        fault = f"{name} is neither the old nor the new file: the {pending.kind} is not atomic"
        return [] if whole else [fault]
    return _partial_faults(name, files.get(name, b""), new[name], data)


def _rename_faults(name: str, target: str, right: bytes, actual: dict[str, bytes]) -> list[str]:
    there = [n for n in (name, target) if n in actual]
    if len(there) != 1:
        what = "both names are" if there else "neither name is"
        return [f"the rename of {name} to {target} is not atomic: {what} there"]
    if actual[there[0]] != right:
        return [f"{there[0]} {_difference(right, actual[there[0]])}"]
    return []


def _whiteout_faults(name: str, target: str, right: bytes, actual: dict[str, bytes]) -> list[str]:
    done = actual.get(name) == WHITEOUT
    if name not in actual or done != (target in actual):
        return [f"the rename of {name} to {target}, which leaves a whiteout, is not atomic"]
    there = target if done else name
    return [] if actual[there] == right else [f"{there} {_difference(right, actual[there])}"]


def _link_faults(name: str, target: str, right: bytes, actual: dict[str, bytes]) -> list[str]:
    if name not in actual:
        return [f"{name} is missing, though only a link to it was made"]
    return [
        f"{there} {_difference(right, actual[there])}"
        for there in (name, target)
        if there in actual and actual[there] != right
    ]


def _partial_faults(name: str, old: bytes, new: bytes, data: bytes) -> list[str]:
    """A write or cut under way: each byte is old, new, or, beyond an end, zero."""
    if not min(len(old), len(new)) <= len(data) <= max(len(old), len(new)):
        return [f"{name} has {len(data)} bytes; {len(old)} or up to {len(new)} are right"]
    for position, byte in enumerate(data):
        was = old[position] if position < len(old) else 0
        will = new[position] if position < len(new) else 0
        if byte not in (was, will):
            return [f"{name} contains data at byte {position} that was never written there"]
    return []


def _difference(right: bytes, wrong: bytes) -> str:
    if len(right) != len(wrong):
        return f"has {len(wrong)} bytes, not the {len(right)} that were fsync'd"
    at = next(i for i, (a, b) in enumerate(zip(right, wrong, strict=True)) if a != b)
    return f"differs at byte {at} of {len(right)} from what was fsync'd"
