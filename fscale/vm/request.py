# SPDX-License-Identifier: GPL-2.0-only
"""The guest that a user asks for."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class GuestRequest:
    """The kernel to boot, and the machine to boot it on."""

    kernel: str = "bookworm"
    modules: Path | None = None
    kernel_tree: Path | None = None
    module: list[Path] | None = None
    smp: int = 4
    memory: str = "4G"
    accel: str = "auto"
    deterministic: bool = False
    append: str = ""
    timeout: float = 3600
    dry_run: bool = False
    """print the commands of the boot instead of booting"""
