# SPDX-License-Identifier: GPL-2.0-only
"""The lock profile: contention by lock and caller, with the slab object that contains the lock.

The program that observes locks is in `lockprofile/`.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fscale.model import catalogue, paths
from fscale.model.config import FileSystem
from fscale.runner.profilers import btf as types
from fscale.runner.profilers import lockmaps
from fscale.runner.profilers.base import Tool, ToolProfiler, needs_event, take
from fscale.runner.profilers.context import Context
from fscale.runner.profilers.kallsyms import Kallsyms
from fscale.runner.profilers.memory import KernelMemory, shape_of
from fscale.runner.profilers.workers import application, machine_pid
from fscale.system.programs import why_not

LOCK_TYPES = frozenset(
    {
        "spinlock_t",
        "raw_spinlock_t",
        "rwlock_t",
        "mutex",
        "rw_semaphore",
        "percpu_rw_semaphore",
        "semaphore",
        "rt_mutex",
        "lockref",
        "seqlock_t",
        "local_lock_t",
    }
)
# Structs that contain locks, and slab caches whose names differ from the struct in them. These are
# common to all file systems; those of one file system are in its TOML file.
STRUCTS = (
    "super_block",
    "dentry",
    "buffer_head",
    "list_lru_node",
    "list_lru_one",
    "list_lru_memcg",
    "mem_cgroup",
    "mem_cgroup_per_node",
    "task_struct",
    "mm_struct",
    "anon_vma",
    "kmem_cache_node",
    "pipe_inode_info",
    "bdi_writeback",
    "backing_dev_info",
    "worker_pool",
    "loop_device",
    "zram",
    "request_queue",
    "blk_flush_queue",
    "blk_mq_hw_ctx",
    "fuse_conn",
    "fuse_chan",
    "superblock_security_struct",
    "inode_security_struct",
)
CACHES = {
    "inode_cache": "inode",
    "proc_inode_cache": "proc_inode",
    "bdev_cache": "bdev_inode",
    "filp": "file",
    "files_cache": "files_struct",
    "sighand_cache": "sighand_struct",
    "signal_cache": "signal_struct",
    "radix_tree_node": "xa_node",
}

# After 2^bits waits of a lock, its waits are sampled half as often. Sleeping locks have more bits,
# because their waits vary more in length and are less frequent.
SPIN_BITS = 10
SLEEP_BITS = 13
# If CPUs spin for more than MAX_SPUN percent of one CPU's time, waits are observed for TURN_MS and
# then ignored for PAUSE_MS.
MAX_SPUN = 50
TURN_MS = 50
PAUSE_MS = 150


def settings(context: Context, memory: KernelMemory | None) -> dict[str, int]:
    """Return the settings of the program, by the names of lockprofile/waits.h.

    Raises:
        ProfilerError: an application must be identified by its cgroup, and there is none.
    """
    parameters = {"spin_bits": SPIN_BITS, "sleep_bits": SLEEP_BITS}
    parameters |= {"most_spun": MAX_SPUN, "turn_ms": TURN_MS, "pause_ms": PAUSE_MS}
    parameters |= memory.as_json() if memory else {}
    if context.named:
        return {**parameters, "pid": machine_pid(context) or 0}
    # A cgroup's number is that of its directory.
    return {**parameters, "cores": len(context.cpus), "cgroup": application(context).stat().st_ino}


def caches_of(filesystems: Iterable[FileSystem]) -> dict[str, str]:
    """Return slab cache -> struct in it, where their names differ."""
    return {**CACHES, **{name: held for fs in filesystems for name, held in fs.caches.items()}}


def structs_of(filesystems: Iterable[FileSystem]) -> set[str]:
    """Return the structs that contain locks."""
    return {*STRUCTS, *(name for fs in filesystems for name in fs.structs)}


Layout = list[list[int | str]]  # [offset, member path, lock type] of each lock in a struct


def layouts(
    structs: Iterable[str], btf: types.Btf, module: types.Btf | None = None
) -> dict[str, Layout]:
    """Return struct -> its locks, for the structs that the kernel or the module defines."""
    found: dict[str, Layout] = {}
    for struct in sorted({*structs}):
        source = btf if btf.size(struct) is not None else module
        if source is None:
            continue
        members: Layout = [
            [m.offset, m.path, m.type] for m in source.members(struct) if m.type in LOCK_TYPES
        ]
        if members:
            found[struct] = members
    return found


class Locks(ToolProfiler):
    """`fscale-locks` on lock:contention_begin and lock:contention_end."""

    name = "locks"
    _output: Path

    def __init__(self) -> None:
        super().__init__()
        self._btf: types.Btf | None = None
        self._memory: KernelMemory | None = None
        self._layouts: dict[str, dict[str, Layout]] = {}  # by file system
        self._caches: dict[str, str] = {}
        self._filesystem = ""

    def unavailable(self) -> str | None:
        """See Profiler."""
        if reason := why_not(paths.LOCKS):
            return reason
        if not types.VMLINUX.is_file():
            return f"this kernel has no BTF ({types.VMLINUX}): it needs CONFIG_DEBUG_INFO_BTF"
        try:
            self._read_types()
        except types.BadBtf as error:
            return str(error)
        return needs_event("lock:contention_begin")

    def _read_types(self) -> None:
        """Read the kernel's types and the layout of its pages, once per run."""
        if self._btf is None and (btf := types.load()):
            self._memory = shape_of(btf)
            self._btf = btf

    def _prepare(self, filesystem: FileSystem | None) -> None:
        """Find types with locks, once per file system.

        Types of all configured file systems are read, because another one may lie below (that of a
        loop device's file).
        """
        self._read_types()
        known = [*catalogue.filesystems(), *([filesystem] if filesystem else [])]
        self._caches = caches_of(known)
        if self._btf and self._filesystem not in self._layouts:
            module = types.load_module(filesystem.kernel if filesystem else "", self._btf)
            structs = structs_of(known) | {*self._caches.values()}
            self._layouts[self._filesystem] = layouts(structs, self._btf, module)

    def _located(self, found: Mapping[str, int] | None) -> dict[str, int] | None:
        """The layout of pages and where they lie; None if the program did not find that."""
        if self._memory is None or found is None:
            return None
        return self._memory.as_json() | {name: at % (1 << 64) for name, at in found.items()}

    def attach(self, context: Context) -> None:
        """See Profiler."""
        self._filesystem = context.key.filesystem
        self._prepare(context.filesystem)
        self._output = context.output / f"{self.name}.out"
        arguments = [f"{name}={value}" for name, value in settings(context, self._memory).items()]
        argv = [str(paths.LOCKS), str(self._output), *arguments, Tool.CHILD]
        self.run_tool(Tool(argv, context.output / f"{self.name}.log"))

    def detach(self) -> Mapping[str, Any]:
        """See Profiler."""
        self.finish_tool()
        seen = json.loads(take(self._output))
        self.watched = seen["active"]
        symbols = Kallsyms()
        static = {f"{lock:#x}": symbols.data(lock) for lock in lockmaps.addresses(seen)}
        return {
            "memory": self._located(seen.pop("memory")),
            "cache_structs": self._caches,
            "layouts": self._layouts.get(self._filesystem, {}),
            "image": symbols.image,
            "symbols": {lock: symbol for lock, symbol in static.items() if symbol},
            "samples": {"spin": 1 << SPIN_BITS, "sleep": 1 << SLEEP_BITS},
            "output": lockmaps.maps(seen, symbols),
        }
