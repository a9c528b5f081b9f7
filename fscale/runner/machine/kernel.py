# SPDX-License-Identifier: GPL-2.0-only
"""Identifies the build of the running kernel, and its options that reduce speed."""

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
"""Debug options that make a kernel unfit for measurements. Cheap ones that distributions enable are
left out."""

_SYMBOLS = {"lock_acquire": "LOCKDEP", "kasan_report": "KASAN", "kmsan_report": "KMSAN"}
_FILES = {
    "/proc/lockdep": "LOCKDEP",
    "/proc/lock_stat": "LOCK_STAT",
    "/sys/kernel/debug/kcsan": "KCSAN",
    "/sys/kernel/debug/kmemleak": "DEBUG_KMEMLEAK",
}
_GNU_BUILD_ID = 3


def build_id(notes: bytes) -> str | None:
    """Find the GNU build id in ELF notes (/sys/kernel/notes), hexadecimal; None without one."""
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from("=III", notes, at)
        name = at + 12
        value = name + (name_size + 3 & ~3)
        if kind == _GNU_BUILD_ID and notes[name : name + name_size] == b"GNU\0":
            return notes[value : value + size].hex()
        at = value + (size + 3 & ~3)
    return None


def enabled_options(root: Path, release: str) -> tuple[set[str], str] | None:
    """Return the enabled options and the file that lists them; None if there is no such file."""
    for name in ("proc/config.gz", f"boot/config-{release}", f"lib/modules/{release}/config"):
        with contextlib.suppress(OSError):
            data = (root / name).read_bytes()
            lines = (gzip.decompress(data) if name.endswith(".gz") else data).decode().split("\n")
            on = {line.removesuffix("=y")[7:] for line in lines if line.endswith("=y")}
            return on, f"/{name}"
    return None


def visible_debug_options(root: Path) -> set[str]:
    """Return the debug options that files and symbols reveal: a subset of those enabled."""
    options = {option for path, option in _FILES.items() if (root / path[1:]).exists()}
    symbols = {line.split()[2] for line in (text(root / "proc/kallsyms") or "").splitlines()}
    return options | {option for symbol, option in _SYMBOLS.items() if symbol in symbols}


def read(root: Path = Path("/")) -> KernelBuild:
    """Identify the running build; `root` is the directory with /proc, /sys and /boot."""
    notes = b""
    with contextlib.suppress(OSError):
        notes = (root / "sys/kernel/notes").read_bytes()
    taint = text(root / "proc/sys/kernel/tainted")
    on, source = enabled_options(root, platform.release()) or (visible_debug_options(root), "signs")
    return KernelBuild(
        version=platform.version(),
        id=build_id(notes),
        taint=int(taint) if taint else None,
        debug=[option for option in DEBUG if option in on],
        debug_from=source,
    )
