# SPDX-License-Identifier: GPL-2.0-only
"""A side of a paired comparison: a file system (`fscale.model.variant`), `:binary=FILE` beside."""

import re
from dataclasses import dataclass
from pathlib import Path

from fscale.model import variant
from fscale.model.errors import FscaleError
from fscale.model.variant import Variant

_GUEST = ("kernel", "module")
_OLDER = "bench"  # what scripts of before call the binary
_PARTS = ("mount", "mkfs", "partitions", "binary", _OLDER, *_GUEST)


@dataclass(frozen=True)
class Side:
    """A file system and what is otherwise, and the microbenchmark where it is another one."""

    text: str
    variant: Variant
    label: str
    """what results call the side: fit for a file name"""
    binary: Path | None = None

    @property
    def filesystem(self) -> str:
        """The file system without the binary, as it is written."""
        return self.variant.text


def parse(text: str) -> Side:
    """Read a side; FscaleError with the syntax when it is not one."""
    first, given = variant.take_apart(text, _PARTS)
    if first.partition(":")[0] in _GUEST or given.keys() & set(_GUEST):
        raise FscaleError(
            f"{text}: another kernel or module has to run in a guest: kernel:KERNEL[:module=FILE] "
            "or FS:kernel=KERNEL[:module=FILE], without mount= and mkfs="
        )
    if _OLDER in given:
        given.setdefault("binary", given.pop(_OLDER))
    binary = given.pop("binary", None)
    own = ":".join([first, *(f"{name}={value}" for name, value in given.items())])
    try:
        asked = variant.parse(own)
    except FscaleError as error:
        raise FscaleError(f"{error}, and for a side [:binary=FILE]") from None
    if not asked.name.endswith(".toml") and not re.fullmatch(r"[A-Za-z0-9][\w.+]*", asked.name):
        raise FscaleError(
            f"{text}: a side is {variant.SYNTAX}[:binary=FILE], such as ext4, ./mine.toml, "
            "ext4:mount=data=journal or 'ext4:mkfs=-O ^has_journal'"
        )
    if binary is None:
        return Side(text, asked, asked.label)
    name = re.sub(r"[^A-Za-z0-9_.+=,^:-]+", "_", f":binary={binary}")
    return Side(text, asked, asked.label + name, Path(binary).absolute())
