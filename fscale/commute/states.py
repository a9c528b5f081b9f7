# SPDX-License-Identifier: GPL-2.0-only
"""The state of the model: parts by key, of which an initial state has only those that were read.

| key | value |
|---|---|
| `name`, directory, name | inode, or None |
| `length`, inode; `links`, inode | pages; links beyond those of the initial state |
| `page`, inode, page | value: 0 in a hole |
| `open`, process, descriptor | whether it is open |
| `file`, process, descriptor | (`inode`, inode) or (`pipe`, pipe, `r` or `w`) |
| `offset`, process, descriptor | pages |
| `queue`, pipe | values that were written and not read |
| `mapped`, process, address | whether that page of the address space is mapped |
| `memory`, process, address | (`anonymous`,) or (`inode`, inode) |
| `position`, process, address | page of the file |
| `protection`, process, address | `r` or `rw` |
| `anonymous`, process, address | value: 0 if never written |
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fscale.commute.choices import Choices

DIRECTORIES = 2
NAMES = 3
INODES = 3
PIPES = 2
PAGES = 2
VALUES = 2
DESCRIPTORS = 2

Key = tuple[str | int, ...]
Value = Any


class Initial:
    """An initial state; `determine` gives a part when it is first read."""

    def __init__(self, known: dict[Key, Value], determine: Callable[[Key], Value]) -> None:
        self.known = known
        self._determine = determine

    def read(self, key: Key) -> Value:
        """The value of a part."""
        if key not in self.known:
            self.known[key] = self._determine(key)
        return self.known[key]


def lazily(choices: Choices) -> Initial:
    """An initial state whose parts are chosen when they are read."""

    def inode() -> int:
        return choices.symbol("inode", INODES)

    def value() -> int:
        return 1 + choices.symbol("value", VALUES)

    def file() -> Value:
        kind = choices.pick(3)
        end = (choices.symbol("pipe", PIPES), "rw"[kind - 1]) if kind else (inode(),)
        return ("pipe" if kind else "inode", *end)

    parts: dict[str | int, Callable[[], Value]] = {
        "name": lambda: inode() if choices.pick(2) else None,
        "open": lambda: bool(choices.pick(2)),
        "file": file,
        "offset": lambda: choices.pick(PAGES + 1),
        "length": lambda: choices.pick(PAGES + 1),
        "links": lambda: 0,
        "page": value,
        "queue": lambda: tuple(value() for _ in range(choices.pick(PAGES + 1))),
        "mapped": lambda: bool(choices.pick(2)),
        "memory": lambda: ("inode", inode()) if choices.pick(2) else ("anonymous",),
        "position": lambda: choices.pick(PAGES),
        "protection": lambda: ("r", "rw")[choices.pick(2)],
        "anonymous": lambda: value() if choices.pick(2) else 0,
    }
    return Initial({}, lambda key: parts[key[0]]())


# Neither what a call writes first, nor where it seeks first: a kernel does not store an offset that
# is there already, and a page that was not written has to differ from one that was.
_UNWRITTEN = 1 + VALUES
_DEFAULTS: dict[str | int, Value] = {
    "name": None,
    "open": False,
    "file": ("pipe", 0, "r"),
    "offset": 1,
    "length": 1,
    "page": _UNWRITTEN,
    "queue": (),
    "mapped": False,
    "memory": ("anonymous",),
    "position": 0,
    "protection": "rw",
    "anonymous": _UNWRITTEN,
}


def completed(known: dict[Key, Value]) -> Initial:
    """An initial state whose other parts are absent, or an arbitrary value where one is needed."""
    names = [inode for key, inode in known.items() if key[0] == "name"]

    def determine(key: Key) -> Value:
        return names.count(key[1]) if key[0] == "links" else _DEFAULTS[key[0]]

    return Initial({key: value for key, value in known.items() if key[0] != "links"}, determine)


@dataclass(frozen=True)
class Unread:
    """The initial value of a part that decided nothing."""

    key: Key


@dataclass(frozen=True)
class Access:
    """An access of a call to a part of the state."""

    step: str
    kind: str
    key: Key
    value: Value


class World:
    """A state that calls change."""

    def __init__(self, initial: Initial) -> None:
        self.initial = initial
        self.changed: dict[Key, Value] = {}
        self.step = ""
        """the call that is executed, which names what it makes"""
        self.trace: list[Access] = []

    def get(self, *key: str | int) -> Value:
        """A part on which the execution depends."""
        value = self.settle(self.value(key))
        self.trace.append(Access(self.step, "get", key, value))
        return value

    def peek(self, *key: str | int) -> Value:
        """A part that is only passed on; Unread if nobody changed it."""
        self.trace.append(Access(self.step, "peek", key, None))
        return self.value(key)

    def put(self, value: Value, *key: str | int) -> None:
        """Change a part."""
        self.trace.append(Access(self.step, "put", key, value))
        self.changed[key] = value

    def value(self, key: Key) -> Value:
        """A part's value, of which no call learns."""
        return self.changed.get(key, Unread(key))

    def settle(self, value: Value) -> Value:
        """A value, or a tuple of values, without Unread."""
        if isinstance(value, tuple):
            return tuple(map(self.settle, value))
        return self.initial.read(value.key) if isinstance(value, Unread) else value


def same(one: World, other: World) -> bool:
    """Whether two worlds with the same initial state are in the same state."""
    return all(
        one.settle(one.value(key)) == other.settle(other.value(key))
        for key in one.changed | other.changed
        if one.value(key) != other.value(key) and not _beyond(one, key)
    )


def _beyond(world: World, key: Key) -> bool:
    """Whether a part is a page beyond the end of its file."""
    return key[0] == "page" and int(key[2]) >= world.settle(world.value(("length", key[1])))
