# SPDX-License-Identifier: GPL-2.0-only
"""A file system and what is otherwise than its TOML file has it, as users write it.

`FS-OR-FILE[:PARTITIONS][:mount=OPTIONS][:mkfs=ARGUMENTS][:set=FILE=VALUE]`, such as `ext4:8`,
`ext4:mount=commit=1`, `./mine.toml:mkfs=-O fast_commit`. The side of a comparison may also have
`:binary=FILE`, or `:kernel=KERNEL` and `:module=FILE`; `kernel:KERNEL` names no file system.
"""

import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from fscale.model import kernelfile, mkfs, mount
from fscale.model.config import FileSystem
from fscale.model.errors import FscaleError

MOST_PARTITIONS = 128  # as many as a GPT has room for
SYNTAX = "FS-OR-FILE[:PARTITIONS][:mount=OPTIONS][:mkfs=ARGUMENTS][:set=FILE=VALUE]"

OF_FILESYSTEM = ("mount", "mkfs", "set", "partitions")
"""parts that say how a file system is made and mounted; the others, in what it is measured"""
BINARY = "binary"
OF_GUEST = ("kernel", "module")
_OLDER = {"bench": BINARY}  # what scripts of before call it
_PARTS = (*OF_FILESYSTEM, BINARY, *OF_GUEST, *_OLDER)
_SEVERAL = ("set", "module")
_WITH_COMMAS = ("mount", "mkfs", "set")
_NO_FILESYSTEM = "kernel:"
_ADVICE = {
    BINARY: "give --binary, or compare with `fscale ab`",
    **dict.fromkeys(
        OF_GUEST,
        "another kernel or module is --kernel and --module of `fscale vm run` and `fscale "
        "simulate`, or a side of `fscale ab` and `fscale gate`",
    ),
}


@dataclass(frozen=True)
class Variant:
    """A file system by its name or the path of its TOML file, and what is otherwise."""

    text: str
    name: str | None
    """None: no file system is named, those of a suite are meant"""
    mount: tuple[str, ...] = ()
    mkfs: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    """files of the kernel, and what is written into them while it is mounted"""
    partitions: int = 1
    binary: Path | None = None
    kernel: str | None = None
    modules: tuple[Path, ...] = ()

    @property
    def label(self) -> str:
        """What results call it: fit for a file name."""
        return label(self.text)

    @property
    def filesystem(self) -> str:
        """The text without what it is measured in: as `fscale run --fs` takes it."""
        first, *parts = _split(self.text)
        return ":".join([first, *(p for p in parts if p.partition("=")[0] in OF_FILESYSTEM)])

    @property
    def in_guest(self) -> str | None:
        """The same in a guest, where a TOML file that is handed in is known by its name alone."""
        if self.name is None:
            return None
        first, *parts = _split(self.filesystem)
        return ":".join([_without_path(first), *parts])

    @property
    def own_file(self) -> Path | None:
        """The TOML file that is named by its path, if one is."""
        return Path(self.name) if self.name and self.name.endswith(".toml") else None

    @property
    def of_guest(self) -> bool:
        """Whether it has to run in a guest."""
        return self.name is None or self.kernel is not None or bool(self.modules)

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
        if fs.nodev and any(kernelfile.DEVICE in path for path, _ in self.settings):
            raise FscaleError(f"{self.text}: {self.name} has no device for {kernelfile.DEVICE}")
        changed: dict[str, object] = {
            "mount_options": options,
            "mkfs": argv,
            "settings": fs.settings | dict(self.settings),
        }
        if self.partitions > 1:
            changed["partitions"] = self.partitions
        return fs.model_copy(update=changed)

    def refuse_existing(self) -> None:
        """FscaleError where an existing directory cannot be this."""
        if self.mount or self.mkfs or self.settings:
            raise FscaleError(
                f"{self.text}: an existing directory is not mounted or formatted; leave mount=, "
                "mkfs= and set= out, or measure another medium"
            )

    def refuse_but(self, heeded: Collection[str], who: str) -> None:
        """FscaleError where it has a part that `who` does not heed."""
        given = [part for part, _ in _given(self.text)]
        for part in ["kernel", *given] if self.name is None else given:
            if part not in heeded:
                taken = ", ".join(f"{one}=" for one in heeded)
                advice = f"; {_ADVICE[part]}" if part in _ADVICE else ""
                raise FscaleError(
                    f"{self.text}: {part}= is not for {who}, which takes {taken}{advice}"
                )


def label(text: str) -> str:
    """A file system's text, fit for a file name; of a TOML file's path the stem is left."""
    first, *parts = _split(text)
    rest = "".join(f":{part}" for part in parts)
    return _without_path(first) + re.sub(r"[^A-Za-z0-9_.+=,^:-]+", "_", rest)


def with_partitions(text: str, count: int) -> str:
    """A file system's text with a number of partitions."""
    first, *parts = _split(text)
    return ":".join([first, str(count), *parts])


def has_options(text: str) -> bool:
    """Whether a text has a part in which commas may stand."""
    return any(part.partition("=")[0] in _WITH_COMMAS for part in _split(text)[1:])


def parse(text: str) -> Variant:
    """Read a variant; FscaleError with the syntax where it is none."""
    first = _split(text)[0]
    given: dict[str, list[str]] = {}
    for part, value in _given(text):
        if not value or (part in given and part not in _SEVERAL):
            raise FscaleError(f"{text}: {part}= must be given once, with a value")
        given.setdefault(part, []).append(value)
    kernel = _only(given, "kernel")
    if first.startswith(_NO_FILESYSTEM):
        return _without_filesystem(text, first.removeprefix(_NO_FILESYSTEM), given)
    name, partitions = split_partitions(text)
    if not name.endswith(".toml") and not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", name):
        raise FscaleError(
            f"{text}: {name or 'nothing'} is no name of a file system: {SYNTAX}, such as ext4, "
            "./mine.toml, ext4:mount=data=journal or 'ext4:mkfs=-O ^has_journal'"
        )
    binary = _only(given, BINARY)
    return Variant(
        text,
        name,
        mount=_options(text, _only(given, "mount") or ""),
        mkfs=_arguments(text, _only(given, "mkfs") or ""),
        settings=_settings(text, given.get("set", [])),
        partitions=partitions,
        binary=Path(binary).absolute() if binary else None,
        kernel=kernel,
        modules=tuple(Path(module) for module in given.get("module", [])),
    )


def split_partitions(text: str) -> tuple[str, int]:
    """("ext4", 8) of `ext4:8`, ("ext4", 1) of `ext4`, also of a label; FscaleError."""
    name, colon, count = _counted(_split(text)[0])
    parts = [value for part, value in _given(text) if part == "partitions"]
    if colon and parts:
        raise FscaleError(f"{text}: the number of partitions is given twice")
    counts = [count] if colon else parts
    if any(not one.isdigit() or not 2 <= int(one) <= MOST_PARTITIONS for one in counts):
        raise FscaleError(
            f"file system {text}: after the name and a colon there is the number of partitions, "
            f"2 to {MOST_PARTITIONS}, or mount=OPTIONS or mkfs=ARGUMENTS: {SYNTAX}"
        )
    return name, int(counts[0]) if counts else 1


def _without_filesystem(text: str, kernel: str, given: dict[str, list[str]]) -> Variant:
    if not kernel or given.keys() - {"module"} or "=" in kernel:
        raise FscaleError(
            f"{text}: without a file system a side is kernel:KERNEL[:module=FILE]; with one it is "
            f"{SYNTAX}[:kernel=KERNEL][:module=FILE], such as ext4:kernel=6.12"
        )
    modules = tuple(Path(module) for module in given.get("module", []))
    return Variant(text, None, kernel=kernel, modules=modules)


def _only(given: dict[str, list[str]], part: str) -> str | None:
    return given.get(part, [None])[0]


def _given(text: str) -> list[tuple[str, str]]:
    """The parts of a text and their values."""
    found = []
    for part in _split(text)[1:]:
        name, _, value = part.partition("=")
        found.append((_OLDER.get(name, name), value.strip()))
    return found


def _options(text: str, options: str) -> tuple[str, ...]:
    if any(c.isspace() for c in options):
        raise FscaleError(f"{text}: mount options are separated by commas, without blanks")
    return tuple(mount.split(options))


def _arguments(text: str, arguments: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(arguments))
    except ValueError as error:
        raise FscaleError(f"{text}: mkfs= cannot be split into arguments: {error}") from None


def _settings(text: str, given: Sequence[str]) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for one in given:
        path, _, value = one.partition("=")
        if reason := kernelfile.why_not(path, value):
            raise FscaleError(f"{text}: {reason}")
        if path in found:
            raise FscaleError(f"{text}: {path} is set twice")
        found[path] = value
    return tuple(found.items())


def _split(text: str) -> list[str]:
    return re.split(rf":(?=(?:{'|'.join(_PARTS)})=)", text)


def _without_path(first: str) -> str:
    """`mine:8` of `./mine.toml:8`."""
    name, colon, count = _counted(first)
    return (Path(name).stem if name.endswith(".toml") else name) + colon + count


def _counted(first: str) -> tuple[str, str, str]:
    """("ext4", ":", "8") of `ext4:8`; a path may have colons of its own."""
    found = re.fullmatch(r"(.*\.toml|[^:]*)(:?)(.*)", first, re.DOTALL)
    return (found[1], found[2], found[3]) if found else (first, "", "")
