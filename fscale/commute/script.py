# SPDX-License-Identifier: GPL-2.0-only
"""Writes tests for the interpreter (main.c), and the lines that it should print."""

import re
from collections.abc import Iterator, Sequence

from fscale.commute.calls import path_text
from fscale.commute.generate import PairTest, execute
from fscale.commute.posix import Result
from fscale.commute.states import (
    DESCRIPTORS,
    DIRECTORIES,
    NAMES,
    PAGES,
    PIPES,
    Initial,
    Value,
    World,
    completed,
)


def written(test: PairTest) -> list[str]:
    """The lines of a test: its initial state, then its calls."""
    return [
        f"test {test.id} {len(_processes(test))}",
        *state(test),
        " ".join(["a", *test.a.words()]),
        " ".join(["b", *test.b.words()]),
    ]


def state(test: PairTest) -> list[str]:
    """The initial state of a test: what makes it, in order."""
    initial = completed(test.known)
    names = _names(initial)
    files = {inode: paths[0] for inode, paths in names.items()}
    lines = []
    for inode, paths in names.items():
        lines.append(_joined("file", paths[0], *_contents(World(initial), inode)))
        lines += [f"link {paths[0]} {path}" for path in paths[1:]]
    for key in sorted(key for key in test.known if key[0] == "queue"):
        lines.append(_joined("queue", key[1], *initial.read(key)))
    for _, process, number in _present(test, "open"):
        kind, *rest = initial.read(("file", process, number))
        if kind == "inode":
            rest = [files[rest[0]], initial.read(("offset", process, number))]
        lines.append(_joined("fd", process, number, "pipe" if kind == "pipe" else "file", *rest))
    for _, process, address in _present(test, "mapped"):
        kind, *inode = initial.read(("memory", process, address))
        if kind == "inode":
            source = ["file", files[inode[0]], initial.read(("position", process, address))]
        else:
            source = ["anonymous", initial.read(("anonymous", process, address))]
        protection = initial.read(("protection", process, address))
        lines.append(_joined("map", process, address, protection, *source))
    lines += [f"unlink {path}" for path in files.values() if path.startswith(_NAMELESS)]
    return lines


def outcome(test: PairTest, order: str) -> list[str]:
    """The lines of an order of the calls, by the model; numbered as by `renumbered`."""
    initial = completed(test.known)
    world, results = execute(World(initial), test.a, test.b, order)
    made = [f"stat #{inode} 1 {initial.read(('length', inode))}" for inode in _names(initial)]
    lines = [_joined("made", *made, *(f"pipe #p{pipe}" for pipe in range(PIPES)))]
    said = {step: _result(world, result) for step, result in zip("ab", results, strict=True)}
    lines += [_joined(step, said[step]) for step in order]
    for path in _paths():
        inode = world.settle(world.value(("name", *path)))
        if inode is not None:
            lines.append(_joined("name", path_text(path), *_file(world, inode)))
    for pipe in range(PIPES):
        lines.append(_joined("queue", pipe, *world.settle(world.value(("queue", pipe)))))
    for process in _processes(test):
        lines += _process(world, process)
    return renumbered([f"test {test.id} {order}", *lines])


def renumbered(lines: Sequence[str]) -> list[str]:
    """Lines with the numbers of inodes (#NUMBER) replaced by those of their first appearance.

    Pipes are of another file system, so one may have the number of a file.
    """
    numbers: dict[str, int] = {}

    def first(found: re.Match[str]) -> str:
        return f"{found[1]}#{numbers.setdefault(found[0], len(numbers))}"

    return [re.sub(r"(pipe |)#\w+", first, line) for line in lines]


def results(lines: Sequence[str]) -> list[str]:
    """The lines of an outcome that the calls returned."""
    return [line for line in lines if line.startswith(("a ", "b "))]


_NAMELESS = "d0/t"


def _joined(*words: Value) -> str:
    return " ".join(map(str, words))


def _processes(test: PairTest) -> list[int]:
    return sorted({test.a.process, test.b.process})


def _paths() -> Iterator[tuple[int, int]]:
    return ((directory, name) for directory in range(DIRECTORIES) for name in range(NAMES))


def _present(test: PairTest, kind: str) -> list[tuple[str | int, ...]]:
    return sorted(key for key, value in test.known.items() if key[0] == kind and value)


def _names(initial: Initial) -> dict[int, list[str]]:
    """The paths of each inode of the initial state; one to be removed if it has no name."""
    used = [value for key, value in initial.known.items() if key[0] == "name"]
    for key, value in initial.known.items():
        if key[0] in ("file", "memory") and value[0] == "inode":
            used.append(value[1])
    return {
        inode: [path_text(path) for path in _paths() if initial.read(("name", *path)) == inode]
        or [f"{_NAMELESS}{inode}"]
        for inode in sorted({inode for inode in used if inode is not None})
    }


def _contents(world: World, inode: int) -> list[int]:
    length = world.settle(world.value(("length", inode)))
    return [world.settle(world.value(("page", inode, page))) for page in range(length)]


def _file(world: World, inode: int) -> list[Value]:
    contents = _contents(world, inode)
    links = world.settle(world.value(("links", inode)))
    return ["stat", f"#{inode}", links, len(contents), *contents]


def _result(world: World, result: Result) -> str:
    kind, *rest = world.settle(result)
    if kind in ("stat", "pipe"):
        rest[0] = f"#{rest[0]}"
    if kind == "fd" and isinstance(rest[0], str):
        rest[0] = "any"
    return _joined(kind, *rest)


def _process(world: World, process: int) -> Iterator[str]:
    for number in (*range(DESCRIPTORS), "a", "b"):
        if not world.settle(world.value(("open", process, number))):
            continue
        kind, thing, *_ = world.settle(world.value(("file", process, number)))
        words = ["pipe", f"#p{thing}"]
        if kind == "inode":
            offset = world.settle(world.value(("offset", process, number)))
            words = [*_file(world, thing), f"@{offset}"]
        slot = number if isinstance(number, int) else "any"
        yield _joined("fd", process, slot, *words)
    for address in range(PAGES):
        yield _joined("memory", process, address, _memory(world, process, address))


def _memory(world: World, process: int, address: int) -> str:
    def part(name: str) -> Value:
        return world.settle(world.value((name, process, address)))

    if not part("mapped"):
        return "SIGSEGV"
    kind, *inode = part("memory")
    if kind == "anonymous":
        value = part("anonymous")
    else:
        contents = _contents(world, inode[0])
        if part("position") >= len(contents):
            return "SIGBUS"
        value = contents[part("position")]
    return f"value {value} {part('protection')}"
