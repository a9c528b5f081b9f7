# SPDX-License-Identifier: GPL-2.0-only
"""Finds block devices besides the medium that the commands of a cell name, and checks them.

`mkfs.xfs -l logdev=/dev/...` formats two devices; so do `mkfs.btrfs A B` and `-J device=`. So each
word of each command is searched for parts that lead to a block device, and a command that hides
which device it uses is refused.
"""

import itertools
import os
import re
import shlex
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from fscale.model import filetest, mkfs
from fscale.model.config import FileSystem
from fscale.model.errors import FscaleError
from fscale.runner.storage import disk
from fscale.runner.storage.disk import CheckedDevice
from fscale.system.executor import CommandFailed, Executor

MEDIUM = "{device}"

_SEPARATORS = "=,:;@|&<>()'\"` \t\n"
_TAG = re.compile(r"(?<![\w-])((?:PART)?(?:UUID|LABEL)|ID)=([^\s,;'\"]+)")
_DEVICE_OPTION = re.compile(
    r"(?<![\w-])(logdev|rtdev|journal_dev|journal_path|device|name)=([^\s,;'\"]+)"
)
_SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "zsh", "busybox", "eval", "xargs"})
_PROGRAMS = frozenset({"python", "python3", "perl", "ruby", "awk", "gawk", "mawk"})
_EXPANDED = re.compile(r"\$(?![0-9@])|[`*?\[\]~\\{}]|\bcd\b")


def _commands(fs: FileSystem) -> Iterator[list[str]]:
    """Yield every argv of a cell, with that of mount(8)."""
    geometry = fs.geometry.command if fs.geometry else []
    yield from filter(None, (fs.mkfs, fs.check, geometry, fs.version))
    yield ["mount", "-o", ",".join(fs.mount_options), MEDIUM]


def devices(fs: FileSystem) -> list[Path]:
    """Return the block devices that the commands of a file system name, as named there.

    Raises:
        FscaleError: a command names a device that does not exist, names a file instead of a device,
            or hides which device it uses.
    """
    found: dict[Path, None] = {}
    for argv in _commands(fs):
        _refuse_hidden(argv)
        for argument in mkfs.arguments(argv):
            _refuse_file(argument, argv)
        if argv is fs.mkfs:
            _refuse_absent(argv)
        for word in argv:
            found |= dict.fromkeys(_in_word(word, argv))
    return list(found)


def check(
    name: str, fs: FileSystem, medium: Sequence[CheckedDevice], yes_format: str | None, by_id: Path
) -> list[CheckedDevice]:
    """Check the block devices besides the medium in the same way as --device; return them.

    Raises:
        FscaleError: one of them must not be written to.
    """
    numbers = {checked.identity.number for checked in medium}
    others = {}
    for path in devices(fs):
        number = disk.number_of(path)
        if number in numbers:
            continue
        try:
            others[number] = disk.check_device(path, yes_format, by_id)
        except FscaleError as error:
            raise FscaleError(
                f"file system {name} names a device besides its medium: {error}"
            ) from None
    if others and fs.partitions > 1:
        raise FscaleError(
            f"file system {name}: its {fs.partitions} partitions cannot share a second device; "
            "leave partitions or the device out"
        )
    return list(others.values())


def _refuse_hidden(argv: Sequence[str]) -> None:
    """Refuse a command in which another program determines the device.

    Raises:
        FscaleError: the command is such a one.
    """
    command = f"`{shlex.join(argv)}`"
    for index, word in enumerate(argv):
        after = [later.replace(MEDIUM, "") for later in argv[index + 1 :]]
        program = Path(word).name
        if program in _SHELLS and any(_EXPANDED.search(later) for later in after):
            raise FscaleError(
                f"{command}: fscale cannot check which devices a shell would use here; give the "
                "command without variables, wildcards and cd"
            )
        if program in _PROGRAMS and any(re.match(r"-\w*[ce]", later) for later in after):
            raise FscaleError(
                f"{command}: fscale cannot check which devices this program would use; give the "
                "command itself"
            )
        if re.search(r"\{device\}\w", word) or re.search(r"[\w/]\{device\}", word.lstrip("-")[1:]):
            raise FscaleError(
                f"{command}: {MEDIUM} is the whole path of the device; remove what is joined to it"
            )


def _refuse_file(argument: str, argv: Sequence[str]) -> None:
    if MEDIUM not in argument and filetest.is_file(argument):
        raise FscaleError(
            f"`{shlex.join(argv)}` would overwrite the file {argument}; name {MEDIUM} or a block "
            "device instead"
        )


def _refuse_absent(argv: Sequence[str]) -> None:
    """Refuse a missing path in the arguments of mkfs, which could be a device later.

    Raises:
        FscaleError: an argument is a path that does not exist.
    """
    for before, word in itertools.pairwise(argv):
        path = word.startswith(("/", "./", "../")) and not before.startswith("-")
        if path and not any(c in word for c in " \t\n{") and not _there(word):
            raise FscaleError(
                f"`{shlex.join(argv)}` names {word}, which does not exist, so fscale cannot check "
                "it; name an existing device"
            )


def _there(name: str) -> bool:
    return filetest.exists(name) or _sequence_number(name)


def _in_word(word: str, argv: Sequence[str]) -> Iterator[Path]:
    command = f"`{shlex.join(argv)}`"
    for tag, value in _TAG.findall(word):
        yield _tagged(f"{tag}={value}", command)
    for option, value in _DEVICE_OPTION.findall(word):
        if option == "journal_dev" and re.fullmatch(r"0x[0-9a-fA-F]+|\d+", value):
            yield _numbered(int(value, 0), command)
        elif not (value.startswith(MEDIUM) or _TAG.match(value) or _is_block(value)):
            _refuse_no_device(option, value, command)
    for start in _starts(word):
        yield from _longest(word, start, command)


def _starts(word: str) -> list[int]:
    """Return where the name of a device may begin: after a separator or an option's letter."""
    found = {0, *(i + 1 for i, c in enumerate(word) if c in _SEPARATORS)}
    if word.startswith("-"):
        found.add(2)
    for start in list(found):
        slash = word.find("/", start)
        if slash >= 0 and not any(c in _SEPARATORS for c in word[start:slash]):
            found.add(slash)
    return sorted(found)


def _longest(word: str, start: int, command: str) -> Iterator[Path]:
    """Yield the block device whose name begins at `start`; names may contain separators."""
    ends = [i for i in range(start, len(word)) if word[i] in _SEPARATORS]
    for end in [len(word), *reversed(ends)]:
        name = word[start:end]
        if name and os.path.exists(name):  # noqa: PTH110 - Path drops a trailing slash
            if _is_block(name):
                yield Path(name)
            return
    whole = re.split(r"[\s,;'\"]", word[start:])[0]
    # A path that does not exist yet could later lead to any device.
    if whole.startswith("/dev/") and not _sequence_number(whole):
        raise FscaleError(f"{command} names {whole}, which does not exist; name an existing device")
    if _sequence_number(whole):
        yield Path(whole)


def _sequence_number(name: str) -> bool:
    path = Path(name)
    return path.parent.name == "by-diskseq" and disk.find_node(path) != path


def _is_block(name: str) -> bool:
    try:
        return stat.S_ISBLK(os.stat(name).st_mode)  # noqa: PTH116 - as mkfs will find it
    except (OSError, ValueError):
        return _sequence_number(name)


def _refuse_no_device(option: str, value: str, command: str) -> None:
    if option in ("device", "name") and "/" not in value and not filetest.exists(value):
        return  # not the name of a device
    raise FscaleError(
        f"{command}: {option}={value} is not a block device; name one by its path in {disk.BY_ID}"
    )


def _tagged(tag: str, command: str) -> Path:
    try:
        return Path(Executor().run(["findfs", tag]).strip())
    except CommandFailed:
        raise FscaleError(
            f"{command} names the device {tag}, which does not exist; name a device by its path in "
            f"{disk.BY_ID}"
        ) from None


def _numbered(number: int, command: str) -> Path:
    """Return the node of a device number that is encoded as the kernel encodes it in options."""
    major, minor = (number >> 8) & 0xFFF, (number & 0xFF) | ((number >> 12) & 0xFFF00)
    path = Path(f"/dev/block/{major}:{minor}")
    if not path.exists():
        raise FscaleError(
            f"{command} names the device {major}:{minor}, which does not exist; name an existing "
            "device"
        )
    return path
