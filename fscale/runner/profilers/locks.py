# SPDX-License-Identifier: GPL-2.0-only
"""The lock profile: contention by lock and caller, with the slab object that the lock lies in."""

from bisect import bisect_right
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fscale.runner.profilers import btf as types
from fscale.runner.profilers.base import ToolProfiler, bpftrace, needs_event, needs_tool, take
from fscale.runner.profilers.context import Context
from fscale.runner.profilers.memory import KernelMemory, find
from fscale.runner.profilers.workers import KTHREAD, Workers, workers

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
# Structs that lie in a slab cache of another name; others are found by the cache's own name.
CACHE_STRUCTS = {
    "ext4_inode_cache": "ext4_inode_info",
    "xfs_inode": "xfs_inode",
    "btrfs_inode": "btrfs_inode",
    "shmem_inode_cache": "shmem_inode_info",
    "f2fs_inode_cache": "f2fs_inode_info",
    "inode_cache": "inode",
    "proc_inode_cache": "proc_inode",
    "bdev_cache": "bdev_inode",
    "dentry": "dentry",
    "filp": "file",
    "buffer_head": "buffer_head",
    "jbd2_journal_head": "journal_head",
    "jbd2_transaction_s": "transaction_s",
    "jbd2_inode": "jbd2_inode",
    "btrfs_extent_buffer": "extent_buffer",
    "btrfs_delayed_ref_head": "btrfs_delayed_ref_head",
    "btrfs_delayed_node": "btrfs_delayed_node",
    "btrfs_trans_handle": "btrfs_trans_handle",
    "xfs_buf": "xfs_buf",
    "xfs_log_ticket": "xlog_ticket",
    "task_struct": "task_struct",
    "mm_struct": "mm_struct",
    "files_cache": "files_struct",
    "sighand_cache": "sighand_struct",
    "signal_cache": "signal_struct",
    "radix_tree_node": "xa_node",
    "kmem_cache": "kmem_cache",
    "kmem_cache_node": "kmem_cache_node",
    "vm_area_struct": "vm_area_struct",
    "anon_vma": "anon_vma",
    "pool_workqueue": "pool_workqueue",
}
# Structs that come from kmalloc: an offset in them confirms what the stack says.
HEAP_STRUCTS = (
    "super_block",
    "journal_s",
    "ext4_sb_info",
    "ext4_group_info",
    "xfs_mount",
    "xlog",
    "xlog_in_core",
    "xfs_cil",
    "xfs_perag",
    "xfs_group",
    "xfs_ail",
    "xfs_buftarg",
    "btrfs_fs_info",
    "btrfs_root",
    "btrfs_space_info",
    "btrfs_block_group",
    "btrfs_transaction",
    "btrfs_free_space_ctl",
    "btrfs_delayed_ref_root",
    "shmem_sb_info",
    "f2fs_sb_info",
    "f2fs_sm_info",
    "f2fs_nm_info",
    "sit_info",
    "blockgroup_lock",
    "list_lru_node",
    "list_lru_one",
    "list_lru_memcg",
    "mem_cgroup",
    "loop_device",
    "request_queue",
    "blk_flush_queue",
    "blk_mq_hw_ctx",
    "bdi_writeback",
    "backing_dev_info",
    "worker_pool",
    "zram",
    "pipe_inode_info",
)

# 2 to the power of this: so many waits of a lock are taken before they are taken half as often. A
# sleeping lock's waits differ more in length, and come less often.
SPIN_BITS = 10
SLEEP_BITS = 13
# A wait's beginning in one number: flags of contention_begin, exponent, nanoseconds.
TIME_BITS = 52
TIME_MASK = (1 << TIME_BITS) - 1
FLAGS_SHIFT = 58
NOT_TAKEN = (1 << (FLAGS_SHIFT - TIME_BITS)) - 1  # an exponent that no lock reaches
SPIN, MUTEX = 1, 32  # LCB_F_SPIN and LCB_F_MUTEX of include/trace/events/lock.h

# A lock lies this close to the start of the static object that kallsyms names.
NEAR = 4096


def _naming(memory: KernelMemory | None) -> str:
    """Statements that find the slab cache of `$lock`, once a lock."""
    if memory is None:
        return ""
    m = memory
    return f"""
	if (!@page[$lock]) {{
		$frame = ($lock - (int64){m.direct_map}) >> {m.page_bits};
		$page = (int64){m.page_array} + $frame * {m.page_size};
		$head = *(int64*)($page + {m.compound_head});
		if ($head & 1) {{ $page = $head - 1; }}
		@page[$lock] = $page;
		$word = *(uint32*)($page + {m.slab_word});
		if (($lock >= (int64){m.direct_map}) && (($word & {m.slab_mask}) == {m.slab_value})) {{
			$cache = *(int64*)($page + {m.slab_cache});
			@cache[$lock] = $cache;
			@cache_size[$cache] = *(uint32*)($cache + {m.cache_size});
			@cache_name[$cache] = str(*(uint64*)($cache + {m.cache_name}));
		}}
	}}
"""


def program(who: Workers, memory: KernelMemory | None) -> str:
    """The bpftrace program.

    A wait begins at the first contention_begin of a thread and a lock (a mutex fires it again when
    it goes from spinning to sleeping) and ends at contention_end, which runs with the lock held: it
    lengthens what all others wait for. So of each lock the first waits are taken (2 to the power of
    SPIN_BITS or SLEEP_BITS), then one in 2 until there are as many again, then one in 4, and so on:
    `@taken` counts them, and the exponent, with which the wait was chosen, is the first key of what
    is summed. A wait is chosen by chance, because threads that take two locks in turn would show
    one of them alone to a counter.

    Of a mutex, waits that are not taken are noted as well: else its second contention_begin would
    be a second chance.
    """
    return f"""{who.probes}
tracepoint:lock:contention_begin /{who.current} || {who.kernel}/ {{
	if (!@begin[tid, args->lock_addr]) {{
		$spins = (args->flags & {SPIN | MUTEX}) == {SPIN};
		$exponent = @taken[args->lock_addr] >> ($spins ? {SPIN_BITS} : {SLEEP_BITS});
		if ((rand & ((1 << $exponent) - 1)) == 0) {{
			@taken[args->lock_addr] = @taken[args->lock_addr] + 1;
			@begin[tid, args->lock_addr] = ((uint64)args->flags << {FLAGS_SHIFT})
				| ((uint64)$exponent << {TIME_BITS}) | (nsecs & {TIME_MASK});
		}} else if (args->flags & {MUTEX}) {{
			@begin[tid, args->lock_addr] = (uint64){NOT_TAKEN << TIME_BITS};
		}}
	}}
}}
tracepoint:lock:contention_end /@begin[tid, args->lock_addr]/ {{
	$begin = @begin[tid, args->lock_addr];
	$wait = (nsecs - $begin) & {TIME_MASK};
	$exponent = ($begin >> {TIME_BITS}) & {NOT_TAKEN};
	$flags = $begin >> {FLAGS_SHIFT};
	delete(@begin[tid, args->lock_addr]);
	$lock = (int64)args->lock_addr;
	if ($exponent != {NOT_TAKEN}) {{
		if ({KTHREAD}) {{
			@others[$exponent, comm, $flags, $lock] = stats($wait);
		}} else {{
			@wait[$exponent, $flags, $lock, kstack(10)] = stats($wait);
			@histogram[$exponent, $flags, $lock] = hist($wait);
			@max[$flags, $lock] = max($wait);
{_naming(memory)}		}}
	}}
}}
END {{ {who.clear} clear(@begin); clear(@taken); }}
"""


def layouts(btf: types.Btf, module: types.Btf | None = None) -> dict[str, list[list[int | str]]]:
    """The locks of the structs that matter: struct -> [offset, member path, lock type]."""
    found: dict[str, list[list[int | str]]] = {}
    for struct in sorted({*CACHE_STRUCTS.values(), *HEAP_STRUCTS}):
        source = btf if btf.size(struct) is not None else module
        if source is None:
            continue
        members: list[list[int | str]] = [
            [m.offset, m.path, m.type] for m in source.members(struct) if m.type in LOCK_TYPES
        ]
        if members:
            found[struct] = members
    return found


class Locks(ToolProfiler):
    """`bpftrace` on lock:contention_begin and lock:contention_end."""

    name = "locks"
    _output: Path

    def __init__(self) -> None:
        super().__init__()
        self._btf: types.Btf | None = None
        self._memory: KernelMemory | None = None
        self._layouts: dict[str, dict[str, list[list[int | str]]]] = {}  # by file system
        self._filesystem = ""
        self._prepared = False

    def unavailable(self) -> str | None:
        """See Profiler."""
        return (
            needs_tool("bpftrace", "bpftrace")
            or needs_event("lock:contention_begin")
            or needs_event("task:task_rename")
        )

    def _prepare(self, directory: Path) -> None:
        """Once a run, learn where the kernel's memory is; once a file system, its types."""
        if not self._prepared:
            self._btf = types.load()
            self._memory = find(self._btf, directory) if self._btf else None
            self._prepared = True
        if self._btf and self._filesystem not in self._layouts:
            module = types.load_module(self._filesystem, self._btf)
            self._layouts[self._filesystem] = layouts(self._btf, module)

    def attach(self, context: Context) -> None:
        """See Profiler."""
        self._filesystem = context.filesystem.kernel if context.filesystem else ""
        self._prepare(context.output)
        text = program(workers(context), self._memory)
        tool, self._output = bpftrace(self.name, text, context.output)
        self.run_tool(tool)

    def detach(self) -> Mapping[str, Any]:
        """See Profiler."""
        self.finish_tool()
        output = take(self._output)
        return {
            "memory": self._memory.as_json() if self._memory else None,
            "cache_structs": CACHE_STRUCTS,
            "layouts": self._layouts.get(self._filesystem, {}),
            "symbols": static_symbols(output),
            "samples": {"spin": 1 << SPIN_BITS, "sleep": 1 << SLEEP_BITS},
            "output": output,
        }


def static_symbols(output: str, kallsyms: Path = Path("/proc/kallsyms")) -> dict[str, str]:
    """Names of static locks: lock address -> `symbol` or `symbol+offset`, for those in `output`.

    Empty where kallsyms lists no data (no CONFIG_KALLSYMS_ALL) or hides addresses.
    """
    data: list[tuple[int, str]] = []
    with kallsyms.open() as lines:
        for line in lines:
            address, kind, symbol = line.split()[:3]
            if kind in "dDbBrR" and address.strip("0"):
                data.append((int(address, 16), symbol))
    data.sort()
    names = {}
    for wanted in _addresses(output):
        place = bisect_right(data, (wanted, "\uffff")) - 1
        if 0 <= place < len(data) - 1 and wanted - data[place][0] < NEAR:
            offset = wanted - data[place][0]
            names[f"{wanted:#x}"] = data[place][1] + (f"+{offset:#x}" if offset else "")
    return names


def _addresses(output: str) -> set[int]:
    found = set()
    for token in output.replace('"', ",").split(","):
        text = token.strip()
        if text.startswith("-") and text[1:].isdigit():
            found.add(int(text) % (1 << 64))
    return found
