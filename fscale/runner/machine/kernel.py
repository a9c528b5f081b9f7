# SPDX-License-Identifier: GPL-2.0-only
"""Which build of a kernel is running, and which of its options cost speed."""

import contextlib
import gzip
import platform
import struct
from pathlib import Path

from fscale.model.results import KernelBuild
from fscale.system.sysfs import text

DEBUG = (
    "PROVE_LOCKING",
    "LOCKDEP",
    "LOCK_STAT",
    "DEBUG_LOCK_ALLOC",
    "DEBUG_SPINLOCK",
    "DEBUG_MUTEXES",
    "DEBUG_RWSEMS",
    "KASAN",
    "KCSAN",
    "KMSAN",
    "DEBUG_KMEMLEAK",
    "DEBUG_PAGEALLOC",
    "SLUB_DEBUG_ON",
    "DEBUG_OBJECTS",
    "DEBUG_VM",
    "GCOV_KERNEL",
    "XFS_DEBUG",
    "BTRFS_DEBUG",
    "BTRFS_ASSERT",
    "F2FS_CHECK_FS",
)
"""Options that nobody measures speed with. Cheap ones that distributions set are left out."""

_SYMBOLS = {"lock_acquire": "LOCKDEP", "kasan_report": "KASAN", "kmsan_report": "KMSAN"}
_FILES = {
    "/proc/lockdep": "LOCKDEP",
    "/proc/lock_stat": "LOCK_STAT",
    "/sys/kernel/debug/kcsan": "KCSAN",
    "/sys/kernel/debug/kmemleak": "DEBUG_KMEMLEAK",
}
_GNU_BUILD_ID = 3


def build_id(notes: bytes) -> str | None:
    """The GNU build id among ELF notes (/sys/kernel/notes), hexadecimal."""
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from("=III", notes, at)
        name = at + 12
        value = name + (name_size + 3 & ~3)
        if kind == _GNU_BUILD_ID and notes[name : name + name_size] == b"GNU\0":
            return notes[value : value + size].hex()
        at = value + (size + 3 & ~3)
    return None


def configured(root: Path, release: str) -> tuple[set[str], str] | None:
    """The options that are on and the file that says so; None where no configuration is found."""
    for name in ("proc/config.gz", f"boot/config-{release}", f"lib/modules/{release}/config"):
        with contextlib.suppress(OSError):
            data = (root / name).read_bytes()
            lines = (gzip.decompress(data) if name.endswith(".gz") else data).decode().split("\n")
            on = {line.removesuffix("=y")[7:] for line in lines if line.endswith("=y")}
            return on, f"/{name}"
    return None


def signs(root: Path) -> set[str]:
    """Debug options that show in files and symbols: fewer than a configuration tells."""
    found = {option for path, option in _FILES.items() if (root / path[1:]).exists()}
    symbols = {line.split()[2] for line in (text(root / "proc/kallsyms") or "").splitlines()}
    return found | {option for symbol, option in _SYMBOLS.items() if symbol in symbols}


def read(root: Path = Path("/")) -> KernelBuild:
    """The build that is running; `root` is where /proc, /sys and /boot are."""
    notes = b""
    with contextlib.suppress(OSError):
        notes = (root / "sys/kernel/notes").read_bytes()
    taint = text(root / "proc/sys/kernel/tainted")
    on, source = configured(root, platform.release()) or (signs(root), "signs")
    return KernelBuild(
        version=platform.version(),
        id=build_id(notes),
        taint=int(taint) if taint else None,
        debug=[option for option in DEBUG if option in on],
        debug_from=source,
    )
