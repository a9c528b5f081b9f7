# SPDX-License-Identifier: GPL-2.0-only
"""Merges arguments of the user into the mkfs command of a file system.

mke2fs keeps only the last -E and the last -O; mkfs.xfs refuses a suboption that is given twice. So
that an argument of the user never drops one of the TOML file, the merged command has each option
once, with the last value of each suboption.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fscale.model.errors import FscaleError


@dataclass(frozen=True)
class _Program:
    """The options of one mkfs program."""

    valued: str
    """letters of the options that take a value"""
    lists: str = ""
    """options whose value is a list of suboptions"""
    long: dict[str, str] = field(default_factory=dict)
    """long option -> its letter"""
    same: dict[str, str] = field(default_factory=dict)
    """suboption -> the suboption that sets the same thing"""
    replaces: dict[str, str] = field(default_factory=dict)
    """option -> letters of the options that it makes obsolete"""
    repeated: str = ""
    """options that may be given several times"""
    shown: str = ""
    """options that a description of the file system shows in full"""
    several: bool = False
    """whether it can make one file system on several devices"""
    makes_none: str = ""
    """options with which it makes no file system: dry runs, versions, repairs"""


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
        valued="AbCdLlmnOrRsU",  # C means --csum, which has no letter
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
        valued="AbdiJLsU",
        long={
            **{"domains": "d", "journal": "J", "inodes": "i", "alloc": "A", "label": "L"},
            **{"block-size": "b", "size": "s", "uuid": "U", "force": "f", "no-discard": "K"},
            **{"quiet": "q"},
        },
        makes_none="h",
    ),
}
_SEPARATORS = re.compile(r"[,\s]+")


@dataclass(frozen=True)
class _Item:
    """An option with its value, or a positional argument."""

    words: tuple[str, ...]
    """the words as given"""
    key: str = ""
    """the letter or long name of an option; empty for a positional argument"""
    value: str | None = None


def merge(argv: Sequence[str], more: Sequence[str] = ()) -> list[str]:
    """Return the argv of a mkfs with `more` inserted before its {device}, each option once.

    Raises:
        FscaleError: `more` has an argument that is not an option; an option lacks its value; an
            option prevents the program from making a file system; or an option is already given
            and fscale does not know the options of the program.
    """
    start, program = _find_program(argv)
    if program is None:
        return _insert_unmerged(argv, more)
    new = list(_parse_items(program, more))
    if positional := [item.words[0] for item in new if not item.key and not program.several]:
        raise FscaleError(
            f"mkfs= contains {' '.join(positional)}, which is not an option: {argv[start - 1]} "
            "would take it as its device or size; give options only"
        )
    replaced = {letter for item in new for letter in program.replaces.get(item.key, "")}
    old = [item for item in _parse_items(program, argv[start:]) if item.key not in replaced]
    for item in (*old, *new):
        if item.key == "help" or (item.key and item.key in program.makes_none):
            raise FscaleError(
                f"mkfs contains {item.words[0]}, with which {argv[start - 1]} makes no file "
                "system; leave it out"
            )
    place = next((i for i, item in enumerate(old) if "{device}" in item.words[0]), len(old))
    items = _merge_repeated(program, [*old[:place], *new, *old[place:]])
    return [*argv[:start], *(word for item in items for word in item.words)]


def options_differ(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two argvs differ in options that a description does not show in full."""
    (start, program), (other_start, other_program) = _find_program(one), _find_program(other)
    if program is None or program is not other_program:
        return list(one) != list(other)
    rest = [
        [item for item in _parse_items(program, argv[first:]) if item.key not in set(program.shown)]
        for argv, first in ((one, start), (other, other_start))
    ]
    told = [sorted((item.key, item.value or item.words[0]) for item in items) for items in rest]
    return told[0] != told[1]


def arguments(argv: Sequence[str]) -> list[str]:
    """Return the positional arguments of a mkfs: devices and sizes; none for an unknown program.

    Raises:
        FscaleError: an option lacks its value.
    """
    start, program = _find_program(argv)
    if program is None:
        return []
    return [item.words[0] for item in _parse_items(program, argv[start:]) if not item.key]


def _find_program(argv: Sequence[str]) -> tuple[int, _Program | None]:
    """Return the index of the first argument of a mkfs, and its options.

    Other words such as `nice` may precede the program.
    """
    for index, word in enumerate(argv):
        name = Path(word).name
        if name == "mkfs" and argv[index + 1 : index + 2] == ["-t"]:
            return index + 3, _PROGRAMS.get(f"mkfs.{''.join(argv[index + 2 : index + 3])}")
        if name in _PROGRAMS:
            return index + 1, _PROGRAMS[name]
    return 0, None


def _insert_unmerged(argv: Sequence[str], more: Sequence[str]) -> list[str]:
    """Insert `more` for a program of unknown options, which cannot be merged.

    Raises:
        FscaleError: an option is given twice.
    """
    given = {word.partition("=")[0] for word in argv}
    if twice := [w for w in more if w.startswith("-") and w.partition("=")[0] in given]:
        raise FscaleError(
            f"mkfs= contains {' '.join(twice)}, which `{' '.join(argv)}` already has, and fscale "
            "does not know how that program handles it twice; write a TOML file for this file "
            "system"
        )
    place = next((i for i, word in enumerate(argv) if "{device}" in word), len(argv))
    return [*argv[:place], *more, *argv[place:]]


def _parse_items(program: _Program, words: Sequence[str]) -> Iterator[_Item]:
    """Split an argv into options and arguments, as getopt does."""
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":  # no options follow
            yield from (_Item((after,)) for after in left)
            return
        if word.startswith("--"):
            name, equals, value = word.removeprefix("--").partition("=")
            key = program.long.get(name, name)
            if equals:
                yield _Item((word,), key, value)
            elif key in program.valued:
                yield _Item((word, after := _take_value(word, left)), key, after)
            else:
                yield _Item((word,), key)
        elif word.startswith("-") and len(word) > 1:
            yield from _parse_letters(program, word[1:], left)
        else:
            yield _Item((word,))


def _parse_letters(program: _Program, letters: str, left: list[str]) -> Iterator[_Item]:
    for place, letter in enumerate(letters):
        if letter not in program.valued:
            yield _Item((f"-{letter}",), letter)
        elif value := letters[place + 1 :]:
            yield _Item((f"-{letter}{value}",), letter, value)
            return
        else:
            yield _Item((f"-{letter}", after := _take_value(f"-{letter}", left)), letter, after)


def _take_value(option: str, left: list[str]) -> str:
    if not left or "{device}" in left[0]:
        raise FscaleError(f"mkfs option {option} has no value; give it one")
    return left.pop(0)


def _merge_repeated(program: _Program, items: Sequence[_Item]) -> Iterator[_Item]:
    """Yield each option once, at its first place, with all values that are given for it."""
    given: dict[str, list[_Item]] = {}
    for item in items:
        given.setdefault(item.key, []).append(item)
    for item in items:
        same = given[item.key]
        if not item.key or item.key in program.repeated:
            yield item
        elif item is same[0]:
            yield _merge_values(program, same)


def _merge_values(program: _Program, same: Sequence[_Item]) -> _Item:
    first, last = same[0], same[-1]
    if len(first.key) == 1 and first.key in program.lists and last.value is not None:
        text = ",".join(item.value or "" for item in same)
        parts = [part for part in _SEPARATORS.split(text) if part]
        values = {_subkey(program, part): part for part in parts}
        if len(values) < len(parts) or len(same) > 1:
            # The last value of a suboption keeps its place: mkfs applies some features in order.
            later = {_subkey(program, part): i for i, part in enumerate(parts)}
            kept = [part for i, part in enumerate(parts) if later[_subkey(program, part)] == i]
            return _Item((f"-{first.key}", ",".join(kept)), first.key)
    return last


def _subkey(program: _Program, part: str) -> str:
    name = part.partition("=")[0].lstrip("^+")
    return program.same.get(name, name)
