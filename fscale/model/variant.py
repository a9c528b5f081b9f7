# SPDX-License-Identifier: GPL-2.0-only
"""Parses variants: a file system with modifications of its TOML file, as users write them.

`FS-OR-FILE[:PARTITIONS][:mount=OPTIONS][:mkfs=ARGUMENTS][:set=FILE=VALUE][:aged=PROFILE]`, such as
`ext4:8`, `ext4:mount=commit=1`, `./mine.toml:mkfs=-O fast_commit`, `xfs:aged=agrawal`. The side of
a comparison may also have `:binary=FILE`, or `:kernel=KERNEL[:modules=PATH]` and `:module=FILE`;
`kernel:KERNEL` names no file system.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from fscale.model import alternatives, argv, kernelfile, mkfs, mount
from fscale.model.config import FileSystem
from fscale.model.errors import FscaleError

MOST_PARTITIONS = 128  # the size of a GPT
SYNTAX = "FS-OR-FILE[:PARTITIONS][:mount=OPTIONS][:mkfs=ARGUMENTS][:set=FILE=VALUE][:aged=PROFILE]"

OF_FRESH = ("mount", "mkfs", "set", "partitions")
"""parts that say how a fresh file system is made and mounted"""
AGED = "aged"
OF_FILESYSTEM = (*OF_FRESH, AGED)
"""parts that say what is measured; the other parts say what measures it"""
BINARY = "binary"
OF_GUEST = ("kernel", "modules", "module")
_PARTS = (*OF_FILESYSTEM, BINARY, *OF_GUEST)
_SEVERAL = ("set", "module")
_WITH_COMMAS = ("mount", "mkfs", "set")
_STRAY = re.compile(r"\{(?!size\}|name\})|(?<!\{size)(?<!\{name)\}")
"""a brace of no placeholder"""
_NO_FILESYSTEM = "kernel:"
_ADVICE = {
    AGED: "aged file systems are measured by `fscale run` and `fscale ab` on one kernel",
    BINARY: "use --binary, or a side of `fscale ab`",
    **dict.fromkeys(
        OF_GUEST,
        "for another kernel or module use --kernel, --modules and --module of `fscale vm run` or "
        "`fscale simulate`, or a side of `fscale ab` or `fscale gate`",
    ),
}


@dataclass(frozen=True)
class Variant:
    """A file system, by its name or the path of its TOML file, and the modifications of it."""

    text: str
    name: str | None
    """None: no file system is named, and those of the suite are used"""
    mount: tuple[str, ...] = ()
    mkfs: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    """kernel files, and the values that they have while the file system is mounted"""
    partitions: int = 1
    aged: str | None = None
    """name of an aging profile, or path of its TOML file"""
    binary: Path | None = None
    kernel: str | None = None
    kernel_modules: Path | None = None
    """where the modules of a bzImage are, or of a .deb without any"""
    modules: tuple[Path, ...] = ()

    @property
    def label(self) -> str:
        """The name in results, which is also valid as a file name."""
        return label(self.text)

    @property
    def filesystem(self) -> str:
        """The text without binary, kernel and modules, as `fscale run --fs` accepts it."""
        first, *parts = _split(self.text)
        return ":".join([first, *(p for p in parts if p.partition("=")[0] in OF_FILESYSTEM)])

    @property
    def in_guest(self) -> str | None:
        """The same text for a guest, where a TOML file that was copied in has no directory."""
        if self.name is None:
            return None
        first, *parts = _split(self.filesystem)
        return ":".join([_without_path(first), *parts])

    @property
    def own_file(self) -> Path | None:
        """The TOML file, if the file system is named by its path."""
        return Path(self.name) if self.name and self.name.endswith(".toml") else None

    @property
    def of_guest(self) -> bool:
        """Whether it must run in a guest."""
        return self.name is None or self.kernel is not None or bool(self.modules)

    def apply(self, fs: FileSystem) -> FileSystem:
        """Return the file system with the modifications applied.

        Raises:
            FscaleError: a modification is not possible for this file system.
        """
        if self.mkfs and fs.nodev:
            raise FscaleError(
                f"{self.text}: {self.name} has no mkfs, which mkfs= would change; leave mkfs= out"
            )
        options = mount.merge(fs.mount_options, self.mount)
        if any("{size}" in o for o in fs.mount_options) and not any("{size}" in o for o in options):
            raise FscaleError(
                f"{self.text}: mount= must not change the size of {self.name}, because a load is "
                "told `size` of the TOML file; change size in a copy of that file"
            )
        try:
            merged = mkfs.merge(fs.mkfs, self.mkfs)
        except FscaleError as error:
            raise FscaleError(f"{self.text}: {error}") from None
        if fs.nodev and any(kernelfile.DEVICE in path for path, _ in self.settings):
            raise FscaleError(
                f"{self.text}: {kernelfile.DEVICE} in set= stands for a device, and {self.name} "
                "has none; give a path without it"
            )
        changed: dict[str, object] = {
            "mount_options": options,
            "mkfs": merged,
            "settings": fs.settings | dict(self.settings),
        }
        if self.partitions > 1:
            changed["partitions"] = self.partitions
        return fs.model_copy(update=changed)

    @property
    def altered(self) -> bool:
        """Whether it has options, settings or an aging profile."""
        return bool(self.mount or self.mkfs or self.settings or self.aged)

    def refuse_existing(self) -> None:
        """Refuse a variant that cannot be applied to an existing directory.

        Raises:
            FscaleError: the variant is altered.
        """
        if self.altered:
            raise FscaleError(
                f"{self.text}: fscale does not mount or format an existing directory; leave "
                "mount=, mkfs=, set= and aged= out, or measure another medium"
            )

    def refuse_but(self, supported: Collection[str], who: str) -> None:
        """Refuse a variant with a part that is not in `supported`, the parts that `who` supports.

        Raises:
            FscaleError: the variant has such a part; the text names it and advises.
        """
        given = [part for part, _ in _given(self.text)]
        for part in ["kernel", *given] if self.name is None else given:
            if part not in supported:
                taken = ", ".join(f"{one}=" for one in supported)
                advice = f"; {_ADVICE[part]}" if part in _ADVICE else ""
                raise FscaleError(
                    f"{self.text}: {part}= does not apply to {who}, which takes {taken}{advice}"
                )


def label(text: str) -> str:
    """Turn a variant's text into a valid file name; the paths of TOML files become their stems."""
    first, *parts = _split(text)
    aged = f"{AGED}="
    rest = "".join(
        f":{aged}{_without_path(part.removeprefix(aged))}" if part.startswith(aged) else f":{part}"
        for part in parts
    )
    return _without_path(first) + re.sub(r"[^A-Za-z0-9_.+=,^:-]+", "_", rest)


def split_options(label: str) -> tuple[str, str]:
    """Split a label into the file system with its partitions, and its options: ("ext4:8", "")."""
    first, *parts = _split(label)
    return first, ":".join(parts)


def with_partitions(text: str, count: int) -> str:
    """Add a number of partitions to a variant's text."""
    first, *parts = _split(text)
    return ":".join([first, str(count), *parts])


def has_options(text: str) -> bool:
    """Return whether a variant's text has a part that may contain commas."""
    return any(part.partition("=")[0] in _WITH_COMMAS for part in _split(text)[1:])


def parse(text: str) -> Variant:
    """Parse a variant.

    Raises:
        FscaleError: the text is not a variant; the message shows the syntax.
    """
    if alternatives.several(text):
        raise FscaleError(f"{text} stands for several file systems; name one")
    first = _split(text)[0]
    given: dict[str, list[str]] = {}
    for part, value in _given(text):
        if part in _WITH_COMMAS and _STRAY.search(value):
            raise FscaleError(
                f"{text}: braces in {part}= hold alternatives, separated by commas, such as "
                "{1,5}; give two or more, or no braces"
            )
        if not value or (part in given and part not in _SEVERAL):
            what = "is given twice" if value else "has no value"
            raise FscaleError(f"{text}: {part}= {what}; give it once, with a value")
        given.setdefault(part, []).append(value)
    kernel = _only(given, "kernel")
    if first.startswith(_NO_FILESYSTEM):
        return _without_filesystem(text, first.removeprefix(_NO_FILESYSTEM), given)
    name, partitions = split_partitions(text)
    if not name.endswith(".toml") and not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", name):
        raise FscaleError(
            f"{text}: {name or 'nothing'!r} is not the name of a file system; give {SYNTAX}, such "
            "as ext4, ./mine.toml, ext4:mount=data=journal or 'ext4:mkfs=-O ^has_journal'"
        )
    binary = _only(given, BINARY)
    return Variant(
        text,
        name,
        mount=_options(text, _only(given, "mount") or ""),
        mkfs=tuple(
            argv.split(_only(given, "mkfs") or "", f"{text}: mkfs= cannot be split into arguments")
        ),
        settings=_settings(text, given.get("set", [])),
        partitions=partitions,
        aged=_only(given, AGED),
        binary=Path(binary).absolute() if binary else None,
        kernel=kernel,
        kernel_modules=_kernel_modules(text, kernel, given),
        modules=tuple(Path(module) for module in given.get("module", [])),
    )


def split_partitions(text: str) -> tuple[str, int]:
    """Split a variant's text or label: `ext4:8` is ("ext4", 8), `ext4` is ("ext4", 1).

    Raises:
        FscaleError: the number of partitions is not valid.
    """
    name, colon, count = _counted(_split(text)[0])
    parts = [value for part, value in _given(text) if part == "partitions"]
    if colon and parts:
        raise FscaleError(f"{text}: the number of partitions is given twice; give it once")
    counts = [count] if colon else parts
    if any(not one.isdecimal() or not 2 <= int(one) <= MOST_PARTITIONS for one in counts):
        raise FscaleError(
            f"file system {text}: {next(iter(counts))!r} after the colon is not a number of "
            f"partitions, 2 to {MOST_PARTITIONS}; give {SYNTAX}"
        )
    return name, int(counts[0]) if counts else 1


def partitions_in(label: str) -> tuple[str, int]:
    """Split a label as `split_partitions` does; any name that fscale does not give has one."""
    try:
        return split_partitions(label)
    except FscaleError:
        return label, 1


def _without_filesystem(text: str, kernel: str, given: dict[str, list[str]]) -> Variant:
    if not kernel or given.keys() - {"module", "modules"} or "=" in kernel:
        raise FscaleError(
            f"{text} is not a side without a file system; give kernel:KERNEL[:modules=PATH]"
            f"[:module=FILE], or with a file system {SYNTAX}[:kernel=KERNEL][:modules=PATH]"
            "[:module=FILE], such as ext4:kernel=6.12"
        )
    modules = tuple(Path(module) for module in given.get("module", []))
    own = _kernel_modules(text, kernel, given)
    return Variant(text, None, kernel=kernel, kernel_modules=own, modules=modules)


def _kernel_modules(text: str, kernel: str | None, given: dict[str, list[str]]) -> Path | None:
    path = _only(given, "modules")
    if path and not kernel:
        raise FscaleError(
            f"{text}: modules= are those of a kernel; add kernel=KERNEL, or name a module under "
            "test by module="
        )
    return Path(path) if path else None


def _only(given: dict[str, list[str]], part: str) -> str | None:
    return given.get(part, [None])[0]


def _given(text: str) -> list[tuple[str, str]]:
    """List the parts of a variant's text, and their values."""
    parts = []
    for part in _split(text)[1:]:
        name, _, value = part.partition("=")
        parts.append((name, value.strip()))
    return parts


def _options(text: str, options: str) -> tuple[str, ...]:
    if any(c.isspace() for c in options):
        raise FscaleError(
            f"{text}: mount= contains blanks; separate mount options by commas, without blanks"
        )
    return tuple(mount.split(options))


def _settings(text: str, given: Sequence[str]) -> tuple[tuple[str, str], ...]:
    settings: dict[str, str] = {}
    for one in given:
        path, _, value = one.partition("=")
        if reason := kernelfile.why_not_settable(path, value):
            raise FscaleError(f"{text}: {reason}")
        if path in settings:
            raise FscaleError(f"{text}: {path} is set twice; give set={path}=VALUE once")
        settings[path] = value
    return tuple(settings.items())


def _split(text: str) -> list[str]:
    return re.split(rf":(?=(?:{'|'.join(_PARTS)})=)", text)


def _without_path(first: str) -> str:
    """Drop the directory and the suffix: `./mine.toml:8` becomes `mine:8`."""
    name, colon, count = _counted(first)
    return (Path(name).stem if name.endswith(".toml") else name) + colon + count


def _counted(first: str) -> tuple[str, str, str]:
    """Split `ext4:8` into ("ext4", ":", "8"); a path may itself contain colons."""
    match = re.fullmatch(r"(.*\.toml|[^:]*)(:?)(.*)", first, re.DOTALL)
    return (match[1], match[2], match[3]) if match else (first, "", "")
