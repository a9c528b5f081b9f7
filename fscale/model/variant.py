# SPDX-License-Identifier: GPL-2.0-only
"""A file system and what is otherwise than its TOML file has it, as users write it.

`FS-OR-FILE[:PARTITIONS][:mount=OPTIONS][:mkfs=ARGUMENTS]`, such as `ext4:8`, `ext4:mount=commit=1`,
`./mine.toml:mkfs=-O fast_commit`.
"""

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fscale.model import mkfs, mount
from fscale.model.config import FileSystem
from fscale.model.errors import FscaleError

MOST_PARTITIONS = 128  # as many as a GPT has room for
SYNTAX = "FS-OR-FILE[:PARTITIONS][:mount=OPTIONS][:mkfs=ARGUMENTS]"

_OWN = ("mount", "mkfs", "partitions")


@dataclass(frozen=True)
class Variant:
    """A file system by its name or the path of its TOML file, and what is otherwise."""

    text: str
    name: str
    mount: tuple[str, ...] = ()
    mkfs: tuple[str, ...] = ()
    partitions: int = 1

    @property
    def label(self) -> str:
        """What results call it: fit for a file name."""
        return label(self.text)

    def apply(self, fs: FileSystem) -> FileSystem:
        """The file system as it is to be made and mounted; FscaleError where it cannot be."""
        if self.mkfs and fs.nodev:
            raise FscaleError(f"{self.text}: {self.name} has no mkfs; leave mkfs= out")
        options = mount.merge(fs.mount_options, self.mount)
        if any("{size}" in o for o in fs.mount_options) and not any("{size}" in o for o in options):
            raise FscaleError(
                f"{self.text}: {self.name} is as large as `size` of its TOML file says, from which "
                "a load knows how much it may fill; copy the file and change it there"
            )
        try:
            argv = mkfs.merge(fs.mkfs, self.mkfs)
        except FscaleError as error:
            raise FscaleError(f"{self.text}: {error}") from None
        changed: dict[str, object] = {"mount_options": options, "mkfs": argv}
        if self.partitions > 1:
            changed["partitions"] = self.partitions
        return fs.model_copy(update=changed)

    def refuse_existing(self) -> None:
        """FscaleError where an existing directory cannot be this."""
        if self.mount or self.mkfs:
            raise FscaleError(
                f"{self.text}: an existing directory is not mounted or formatted; "
                "leave mount= and mkfs= out, or measure another medium"
            )


def label(text: str) -> str:
    """A file system's text, fit for a file name; of a TOML file's path the stem is left."""
    first, *parts = _parts(text, _OWN)
    name, colon, count = _counted(first)
    stem = Path(name).stem if name.endswith(".toml") else name
    rest = "".join(f":{part}" for part in parts)
    return stem + colon + count + re.sub(r"[^A-Za-z0-9_.+=,^:-]+", "_", rest)


def with_partitions(text: str, count: int) -> str:
    """A file system's text with a number of partitions."""
    first, *parts = _parts(text, _OWN)
    return ":".join([first, str(count), *parts])


def has_options(text: str) -> bool:
    """Whether a text has a part in which commas may stand."""
    return len(_parts(text, ("mount", "mkfs"))) > 1


def parse(text: str) -> Variant:
    """Read a file system; FscaleError with the syntax where it is none."""
    first, given = take_apart(text, _OWN)
    name, colon, count = _counted(first)
    if "partitions" in given:
        if colon:
            raise FscaleError(f"{text}: the number of partitions is given twice")
        colon, count = ":", given["partitions"]
    if colon and (not count.isdigit() or not 2 <= int(count) <= MOST_PARTITIONS):
        raise FscaleError(
            f"file system {text}: after the name and a colon there is the number of partitions, "
            f"2 to {MOST_PARTITIONS}, or mount=OPTIONS or mkfs=ARGUMENTS: {SYNTAX}"
        )
    return Variant(
        text, name, options_of(text, given), arguments_of(text, given), int(count) if colon else 1
    )


def take_apart(text: str, parts: Iterable[str]) -> tuple[str, dict[str, str]]:
    """What stands before the first part `:NAME=`, and the values of the parts.

    FscaleError where one is given twice or has no value.
    """
    first, *found = _parts(text, parts)
    given: dict[str, str] = {}
    for part in found:
        name, _, value = part.partition("=")
        if name in given or not value.strip():
            raise FscaleError(f"{text}: {name}= must be given once, with a value")
        given[name] = value.strip()
    return first, given


def options_of(text: str, given: dict[str, str]) -> tuple[str, ...]:
    """The mount options of the parts of a text."""
    options = given.get("mount", "")
    if any(c.isspace() for c in options):
        raise FscaleError(f"{text}: mount options are separated by commas, without blanks")
    return tuple(mount.split(options))


def arguments_of(text: str, given: dict[str, str]) -> tuple[str, ...]:
    """The arguments for mkfs of the parts of a text."""
    try:
        return tuple(shlex.split(given.get("mkfs", "")))
    except ValueError as error:
        raise FscaleError(f"{text}: mkfs= cannot be split into arguments: {error}") from None


def _parts(text: str, names: Iterable[str]) -> list[str]:
    return re.split(rf":(?=(?:{'|'.join(names)})=)", text)


def _counted(first: str) -> tuple[str, str, str]:
    """("ext4", ":", "8") of `ext4:8`; a path may have colons of its own."""
    found = re.fullmatch(r"(.*\.toml|[^:]*)(:?)(.*)", first, re.DOTALL)
    return (found[1], found[2], found[3]) if found else (first, "", "")
