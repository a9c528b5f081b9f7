# SPDX-License-Identifier: GPL-2.0-only
"""What one side of a paired comparison is: `FS[:mount=OPTIONS][:mkfs=ARGUMENTS][:binary=FILE]`."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from fscale.model.config import FileSystem
from fscale.model.errors import FscaleError

_PART = re.compile(r":(?=(?:mount|mkfs|binary|bench|module|kernel)=)")
_GUEST = ("kernel", "module")


@dataclass(frozen=True)
class Side:
    """A file system as its TOML file has it, and what this side does otherwise."""

    text: str
    filesystem: str
    mount: tuple[str, ...] = ()
    mkfs: tuple[str, ...] = ()
    binary: Path | None = None

    @property
    def label(self) -> str:
        """The text, fit for a file name."""
        return re.sub(r"[^A-Za-z0-9_.+=,^:-]+", "_", self.text)

    def apply(self, fs: FileSystem | None) -> FileSystem | None:
        """The file system of this side; None is what an existing directory has."""
        if fs is None or not (self.mount or self.mkfs):
            if self.mount or self.mkfs:
                raise FscaleError(
                    f"{self.text}: an existing directory is not mounted or formatted; "
                    "leave mount= and mkfs= out, or measure another medium"
                )
            return fs
        if self.mkfs and fs.nodev:
            raise FscaleError(f"{self.text}: {self.filesystem} has no mkfs; leave mkfs= out")
        place = next((i for i, argument in enumerate(fs.mkfs) if "{device}" in argument), 0)
        return fs.model_copy(
            update={
                "mount_options": [*fs.mount_options, *self.mount],
                "mkfs": [*fs.mkfs[:place], *self.mkfs, *fs.mkfs[place:]],
            }
        )


def parse(text: str) -> Side:
    """Read a side; FscaleError with the syntax when it is not one."""
    first, *parts = _PART.split(text)
    if first.partition(":")[0] in _GUEST or any(p.partition("=")[0] in _GUEST for p in parts):
        raise FscaleError(
            f"{text}: another kernel or module has to run in a guest: kernel:KERNEL[:module=FILE] "
            "or FS:kernel=KERNEL[:module=FILE], without mount= and mkfs="
        )
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+]*", first):
        raise FscaleError(
            f"{text}: a side is FS[:mount=OPTIONS][:mkfs=ARGUMENTS][:binary=FILE], such as ext4, "
            "ext4:mount=data=journal or 'ext4:mkfs=-O ^has_journal'"
        )
    given: dict[str, str] = {}
    for part in parts:
        name, _, value = part.partition("=")
        name = {"bench": "binary"}.get(name, name)  # as scripts of before have it
        if name in given or not value.strip():
            raise FscaleError(f"{text}: {name}= must be given once, with a value")
        given[name] = value.strip()
    try:
        mkfs = tuple(shlex.split(given.get("mkfs", "")))
    except ValueError as error:
        raise FscaleError(f"{text}: mkfs= cannot be split into arguments: {error}") from None
    mount = given.get("mount", "")
    if any(c.isspace() for c in mount):
        raise FscaleError(f"{text}: mount options are separated by commas, without blanks")
    binary = Path(given["binary"]).absolute() if "binary" in given else None
    return Side(text, first, tuple(mount.split(",")) if mount else (), mkfs, binary)
