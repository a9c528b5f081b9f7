# SPDX-License-Identifier: GPL-2.0-only
"""Where the kernel keeps its direct map and its page array: what turns an address into an object.

Both lie at a random place (CONFIG_RANDOMIZE_MEMORY), and the symbols that hold it are not in every
kernel's kallsyms. Two pairs of tracepoints give it away: a kmalloc of more than two pages is a page
allocation, so kmem:mm_page_alloc (frame number) and kmem:kmalloc (address) of one thread belong
together, and pagemap:mm_lru_insertion has both the frame number and the folio's address.
"""

import fcntl
import mmap
import os
import re
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from fscale.runner.profilers.base import Tool, needs_event, take
from fscale.runner.profilers.btf import Btf

PAGE = os.sysconf("SC_PAGE_SIZE")
LARGE = 4 * PAGE  # of a kmalloc for 2.5 pages, which the slots of a pipe take: see `_provoke`
PAIRS = 64  # so that a few that are spoiled (see `bases`) leave nearly all in agreement

_PROGRAM = """
tracepoint:kmem:mm_page_alloc /pid == PID/ { @frame[tid] = args->pfn; }
tracepoint:kmem:kmalloc /pid == PID && args->bytes_alloc == LARGE/ {
	printf("kmalloc %lx %lx\\n", @frame[tid], (uint64)args->ptr);
}
tracepoint:pagemap:mm_lru_insertion {
	printf("folio %lx %lx\\n", args->pfn, (uint64)args->folio);
}
"""


@dataclass(frozen=True)
class KernelMemory:
    """What is needed to find the slab cache of an address. All offsets are in bytes."""

    direct_map: int  # address of page frame 0
    page_array: int  # address of the struct page of frame 0
    page_bits: int
    page_size: int  # of struct page
    compound_head: int  # offset in struct page; in 7.1 and later that of compound_info
    slab_mask: int  # (32-bit word at slab_word) & slab_mask == slab_value: it is a slab
    slab_value: int
    slab_word: int
    slab_cache: int  # offset in struct slab
    cache_name: int  # offsets in struct kmem_cache
    cache_size: int

    def as_json(self) -> dict[str, int]:
        """For the profile."""
        return asdict(self)


def _offset(btf: Btf, struct: str, *paths: str) -> int | None:
    return next((o for p in paths if (o := btf.offset(struct, p)) is not None), None)


def _slab_test(btf: Btf) -> tuple[int, int, int] | None:
    """Mask, value and offset of the word that says "slab": a page type since 6.11, else a flag."""
    kind = btf.enum("PGTY_slab")
    if kind is not None and (word := btf.offset("page", "page_type")) is not None:
        return 0xFF000000, kind << 24, word
    flag = btf.enum("PG_slab")
    if flag is not None and flag < 32:
        return 1 << flag, 1 << flag, 0
    return None


def bases(output: str, page_bits: int, page_size: int) -> tuple[int, int] | None:
    """Addresses of frame 0 in the direct map and in the page array, from the events' text.

    None unless at least two events of each kind were seen and nearly all agree (an allocation
    between the two events of a pair spoils that pair).
    """
    seen: dict[str, Counter[int]] = {"kmalloc": Counter(), "folio": Counter()}
    unit = {"kmalloc": 1 << page_bits, "folio": page_size}
    for kind, frame, address in re.findall(
        r"^(kmalloc|folio) ([0-9a-f]+) ([0-9a-f]+)$", output, re.M
    ):
        seen[kind][(int(address, 16) - int(frame, 16) * unit[kind]) % (1 << 64)] += 1
    best = []
    for counts in seen.values():
        if not counts:
            return None
        base, count = counts.most_common(1)[0]
        if count < 2 or count < 0.9 * counts.total():
            return None
        best.append(base)
    return best[0], best[1]


def find(btf: Btf, scratch: Path) -> KernelMemory | None:
    """Locate the direct map and the page array of the running kernel; takes about a second.

    None where the kernel lacks the tracepoints or the types, or keeps its pages otherwise, and
    where a pipe may not be large.
    """
    if any(map(needs_event, ("kmem:mm_page_alloc", "kmem:kmalloc", "pagemap:mm_lru_insertion"))):
        return None
    shape = shape_of(btf)
    if shape is None:
        return None
    program, output = scratch / "memory.bt", scratch / "memory.txt"
    program.write_text(_PROGRAM.replace("PID", str(os.getpid())).replace("LARGE", str(LARGE)))
    tool = Tool(
        ["bpftrace", "-o", str(output), "-c", Tool.CHILD, str(program)],
        program.with_suffix(".log"),
    )
    tool.start()
    try:
        _provoke()
    except OSError:  # a container's limits
        return None
    finally:
        tool.stop()
    found = bases(take(output), shape.page_bits, shape.page_size)
    return replace(shape, direct_map=found[0], page_array=found[1]) if found else None


def shape_of(btf: Btf) -> KernelMemory | None:
    """All but the two addresses, which are 0; None where the kernel keeps its pages otherwise."""
    page_size, test = btf.size("page"), _slab_test(btf)
    offsets = [
        _offset(btf, "page", "compound_head", "compound_info"),
        _offset(btf, "slab", "slab_cache"),
        _offset(btf, "kmem_cache", "name"),
        _offset(btf, "kmem_cache", "size"),
    ]
    if page_size is None or test is None or any(o is None for o in offsets):
        return None
    compound_head, slab_cache, cache_name, cache_size = (o for o in offsets if o is not None)
    page_bits = PAGE.bit_length() - 1
    return KernelMemory(
        0, 0, page_bits, page_size, compound_head, *test, slab_cache, cache_name, cache_size
    )


def _provoke(page: int = PAGE) -> None:
    """Make the kernel allocate: slots too large for a slab, and pages for the LRU lists.

    The slots of a pipe, of 40 bytes for each of its pages, are a kmalloc that can exceed two pages
    of any size, which vectors for readv (16 KiB at most) cannot. The pages themselves are allocated
    when they are written to: they never are.
    """
    ends = os.pipe()
    try:
        for _ in range(PAIRS):
            fcntl.fcntl(ends[0], fcntl.F_SETPIPE_SZ, page)
            fcntl.fcntl(ends[0], fcntl.F_SETPIPE_SZ, page // 16 * page)
        # New pages for certain: memory from malloc may have been there before.
        with mmap.mmap(-1, max(4 << 20, 256 * page)) as pages:
            pages.write(bytes(len(pages)))
    finally:
        for end in ends:
            os.close(end)
