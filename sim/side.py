# SPDX-License-Identifier: GPL-2.0-only
"""A side of the gate: a file system (`fscale.model.variant`), `[:kernel=KERNEL][:module=FILE]`."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from fscale.model import variant
from fscale.model.errors import FscaleError
from sim.sweep import Sweep


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
    name, given = variant.take_apart(text, ("mount", "mkfs", "kernel", "module"))
    if not name.endswith(".toml") and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+]*", name):
        raise FscaleError(
            f"{text}: a side is FS-OR-FILE[:mount=OPTIONS][:mkfs=ARGUMENTS][:kernel=KERNEL]"
            "[:module=FILE], such as ext4:mount=data=journal or ext4:kernel=6.12"
        )
    return Side(
        name,
        variant.options_of(text, given),
        variant.arguments_of(text, given),
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
