# SPDX-License-Identifier: GPL-2.0-only
"""A side of the gate: `FS[:mount=OPTIONS][:mkfs=ARGUMENTS][:kernel=KERNEL][:module=FILE]`."""

import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from fscale.model.errors import FscaleError
from sim.sweep import Sweep

_PART = re.compile(r":(?=(?:mount|mkfs|kernel|module)=)")


@dataclass(frozen=True)
class Side:
    """What a side does otherwise than a file system's TOML file and the defaults say."""

    filesystem: str
    mount: tuple[str, ...] = ()
    mkfs: tuple[str, ...] = ()
    kernel: str | None = None
    modules: tuple[Path, ...] = ()


def parse(text: str) -> Side:
    """Read a side; FscaleError with the syntax when it is none."""
    name, *parts = _PART.split(text)
    given: dict[str, str] = {}
    for part in parts:
        key, _, value = part.partition("=")
        if key in given or not value.strip():
            raise FscaleError(f"{text}: {key}= must be given once, with a value")
        given[key] = value.strip()
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+]*", name):
        raise FscaleError(
            f"{text}: a side is FS[:mount=OPTIONS][:mkfs=ARGUMENTS][:kernel=KERNEL][:module=FILE], "
            "such as ext4:mount=data=journal or ext4:kernel=6.12"
        )
    try:
        mkfs = tuple(shlex.split(given.get("mkfs", "")))
    except ValueError as error:
        raise FscaleError(f"{text}: mkfs= cannot be split into arguments: {error}") from None
    return Side(
        name,
        tuple(given["mount"].split(",")) if "mount" in given else (),
        mkfs,
        given.get("kernel"),
        (Path(given["module"]),) if "module" in given else (),
    )


def apply(side: Side, sweep: Sweep) -> Sweep:
    """The sweep of a side."""
    for module in side.modules:
        if not module.is_file():
            raise FscaleError(f"{module} does not exist")
    return replace(
        sweep,
        filesystems=[side.filesystem],
        mount=side.mount,
        mkfs=side.mkfs,
        kernel=side.kernel or sweep.kernel,
        modules=side.modules,
    )
