# SPDX-License-Identifier: GPL-2.0-only
"""The arguments of a mkfs: what is given later is merged into what stands there already.

mke2fs keeps the last -E and the last -O and forgets those before, mkfs.xfs refuses a suboption that
is given twice. So that an argument of the user's never drops one of the suite's, each option is
given once, a list of suboptions with the later value of each.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fscale.model.errors import FscaleError


@dataclass(frozen=True)
class _Program:
    """What a mkfs takes."""

    valued: str
    """letters of the options with a value"""
    lists: str = ""
    """those whose value is a list of suboptions"""
    long: dict[str, str] = field(default_factory=dict)
    """long options, and the letters that they stand for"""
    same: dict[str, str] = field(default_factory=dict)
    """suboptions that set what another one sets"""
    replaces: dict[str, str] = field(default_factory=dict)
    """options that set by another rule what the options of these letters set"""
    repeated: str = ""
    """options that may be given several times"""
    shown: str = ""
    """those that a description of the file system shows in full"""
    several: bool = False
    """whether it makes one file system of several devices"""
    makes_none: str = ""
    """options with which it ends without a new file system: dry runs, versions, repairs"""


_EXT = _Program(
    valued="bCdeEgGiIJlLmMNoOrRtTUz",
    lists="EJOR",
    repeated="c",
    shown="bCgGiIJmNO",
    same={"stripe-width": "stripe_width", "nodiscard": "discard"},
    replaces={"T": "bi", "N": "i"},
    makes_none="nVS",
)
_PROGRAMS = {
    **dict.fromkeys(("mke2fs", "mkfs.ext2", "mkfs.ext3", "mkfs.ext4"), _EXT),
    "mkfs.xfs": _Program(
        valued="bcdilLmnprs",
        lists="bdilmnrs",
        shown="bdimns",
        same={"agsize": "agcount", "su": "sunit", "sw": "swidth", "logdev": "internal"},
        makes_none="NV",
    ),
    "mkfs.btrfs": _Program(
        valued="AbCdLlmnOrRsU",  # C stands for --csum, which has no letter
        lists="OR",
        shown="nOs",
        long={
            **{"alloc-start": "A", "byte-count": "b", "data": "d", "features": "O", "label": "L"},
            **{"leafsize": "l", "metadata": "m", "nodesize": "n", "rootdir": "r", "uuid": "U"},
            **{"csum": "C", "checksum": "C"},
            **{"runtime-features": "R", "sectorsize": "s", "force": "f", "mixed": "M"},
            **{"nodiscard": "K", "quiet": "q", "verbose": "v", "version": "V"},
        },
        several=True,
        makes_none="V",
    ),
    "mkfs.f2fs": _Program(valued="acCdeEglHoORsStTUwzZ", lists="O", repeated="c", makes_none="V"),
    "mkfs.lanefs": _Program(
        valued="AdiJLU",
        long={
            **{"domains": "d", "journal": "J", "inodes": "i", "alloc": "A", "label": "L"},
            **{"uuid": "U", "force": "f", "no-discard": "K", "quiet": "q"},
        },
        makes_none="h",
    ),
}
_SEPARATORS = re.compile(r"[,\s]+")


@dataclass(frozen=True)
class _Item:
    """An option with its value, or an argument."""

    words: tuple[str, ...]
    """as they were given"""
    key: str = ""
    """the letter, or the long name, of an option"""
    value: str | None = None


def merge(argv: Sequence[str], more: Sequence[str] = ()) -> list[str]:
    """The argv of a mkfs with the arguments `more` before its {device}, each option once.

    Raises:
        FscaleError: `more` has an argument that is no option, an option lacks its value, one has
            the program make no file system, or one that is there already is given to a program
            whose options are not known.
    """
    start, program = _program(argv)
    if program is None:
        return _beside(argv, more)
    new = list(_items(program, more))
    if own := [item.words[0] for item in new if not item.key and not program.several]:
        raise FscaleError(
            f"mkfs= has {' '.join(own)}, which {argv[start - 1]} would take for its device or its "
            "size; give options"
        )
    replaced = {letter for item in new for letter in program.replaces.get(item.key, "")}
    old = [item for item in _items(program, argv[start:]) if item.key not in replaced]
    for item in (*old, *new):
        if item.key == "help" or (item.key and item.key in program.makes_none):
            raise FscaleError(
                f"mkfs has {item.words[0]}, with which {argv[start - 1]} makes no file system; "
                "leave it out"
            )
    place = next((i for i, item in enumerate(old) if "{device}" in item.words[0]), len(old))
    items = _once(program, [*old[:place], *new, *old[place:]])
    return [*argv[:start], *(word for item in items for word in item.words)]


def unlike(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two argvs differ in more than options that a description shows in full."""
    (start, program), (other_start, other_program) = _program(one), _program(other)
    if program is None or program is not other_program:
        return list(one) != list(other)
    rest = [
        [item for item in _items(program, argv[first:]) if item.key not in set(program.shown)]
        for argv, first in ((one, start), (other, other_start))
    ]
    told = [sorted((item.key, item.value or item.words[0]) for item in items) for items in rest]
    return told[0] != told[1]


def arguments(argv: Sequence[str]) -> list[str]:
    """The arguments of a mkfs that are no options: devices and sizes; none of an unknown program.

    FscaleError where an option lacks its value.
    """
    start, program = _program(argv)
    if program is None:
        return []
    return [item.words[0] for item in _items(program, argv[start:]) if not item.key]


def _program(argv: Sequence[str]) -> tuple[int, _Program | None]:
    """Where the arguments of a mkfs begin, and what it takes; `nice` and the like may be before."""
    for index, word in enumerate(argv):
        name = Path(word).name
        if name == "mkfs" and argv[index + 1 : index + 2] == ["-t"]:
            return index + 3, _PROGRAMS.get(f"mkfs.{''.join(argv[index + 2 : index + 3])}")
        if name in _PROGRAMS:
            return index + 1, _PROGRAMS[name]
    return 0, None


def _beside(argv: Sequence[str], more: Sequence[str]) -> list[str]:
    """Both, where nothing can be merged, and so nothing may be given twice."""
    given = {word.partition("=")[0] for word in argv}
    if twice := [w for w in more if w.startswith("-") and w.partition("=")[0] in given]:
        raise FscaleError(
            f"mkfs= has {' '.join(twice)}, which `{' '.join(argv)}` has already, and fscale does "
            "not know how that program takes it twice; write a TOML file for this file system"
        )
    place = next((i for i, word in enumerate(argv) if "{device}" in word), len(argv))
    return [*argv[:place], *more, *argv[place:]]


def _items(program: _Program, words: Sequence[str]) -> Iterator[_Item]:
    """The items of an argv, as getopt takes it apart."""
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":  # what follows is no option
            yield from (_Item((after,)) for after in left)
            return
        if word.startswith("--"):
            name, equals, value = word.removeprefix("--").partition("=")
            key = program.long.get(name, name)
            if equals:
                yield _Item((word,), key, value)
            elif key in program.valued:
                yield _Item((word, after := _value(word, left)), key, after)
            else:
                yield _Item((word,), key)
        elif word.startswith("-") and len(word) > 1:
            yield from _short(program, word[1:], left)
        else:
            yield _Item((word,))


def _short(program: _Program, letters: str, left: list[str]) -> Iterator[_Item]:
    for place, letter in enumerate(letters):
        if letter not in program.valued:
            yield _Item((f"-{letter}",), letter)
        elif value := letters[place + 1 :]:
            yield _Item((f"-{letter}{value}",), letter, value)
            return
        else:
            yield _Item((f"-{letter}", after := _value(f"-{letter}", left)), letter, after)


def _value(option: str, left: list[str]) -> str:
    if not left or "{device}" in left[0]:
        raise FscaleError(f"mkfs: {option} needs a value")
    return left.pop(0)


def _once(program: _Program, items: Sequence[_Item]) -> Iterator[_Item]:
    """Each option once, where it stood first, with all that is given to it."""
    given: dict[str, list[_Item]] = {}
    for item in items:
        given.setdefault(item.key, []).append(item)
    for item in items:
        same = given[item.key]
        if not item.key or item.key in program.repeated:
            yield item
        elif item is same[0]:
            yield _united(program, same)


def _united(program: _Program, same: Sequence[_Item]) -> _Item:
    first, last = same[0], same[-1]
    if len(first.key) == 1 and first.key in program.lists and last.value is not None:
        text = ",".join(item.value or "" for item in same)
        parts = [part for part in _SEPARATORS.split(text) if part]
        found = {_subkey(program, part): part for part in parts}
        if len(found) < len(parts) or len(same) > 1:
            # A later value takes its own place: some features are edited in their order.
            later = {_subkey(program, part): i for i, part in enumerate(parts)}
            kept = [part for i, part in enumerate(parts) if later[_subkey(program, part)] == i]
            return _Item((f"-{first.key}", ",".join(kept)), first.key)
    return last


def _subkey(program: _Program, part: str) -> str:
    name = part.partition("=")[0].lstrip("^+")
    return program.same.get(name, name)
