# SPDX-License-Identifier: GPL-2.0-only
"""Locates the kernel's direct map and page array, which map an address to its slab object.

Both lie at random addresses (CONFIG_RANDOMIZE_MEMORY), and not every kernel lists the symbols that
contain them in kallsyms. So they are computed from tracepoints. A kmalloc of more than two pages is
a page allocation, so kmem:mm_page_alloc (frame number) and kmem:kmalloc (address) of one thread
belong together. pagemap:mm_lru_insertion reports both the frame number and the folio's address.
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
LARGE = 4 * PAGE  # bytes allocated for the slots of a pipe, 2.5 pages: see `_provoke`
PAIRS = 64  # enough that nearly all agree, even if a few are spoiled (see `bases`)

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
    """The addresses and layouts for finding the slab cache of an address. Offsets are in bytes."""

    direct_map: int  # address of page frame 0
    page_array: int  # address of the struct page of frame 0
    page_bits: int
    page_size: int  # of struct page
    compound_head: int  # offset in struct page; in 7.1 and later that of compound_info
    slab_mask: int  # a page is a slab if (32-bit word at slab_word) & slab_mask == slab_value
    slab_value: int
    slab_word: int
    slab_cache: int  # offset in struct slab
    cache_name: int  # offsets in struct kmem_cache
    cache_size: int

    def as_json(self) -> dict[str, int]:
        """Return the fields for the profile."""
        return asdict(self)


def _offset(btf: Btf, struct: str, *paths: str) -> int | None:
    return next((o for p in paths if (o := btf.offset(struct, p)) is not None), None)


def _slab_test(btf: Btf) -> tuple[int, int, int] | None:
    """Return mask, value and offset of the word that marks slabs; None if unknown.

    It is a page type since Linux 6.11, and a page flag before.
    """
    kind = btf.enum("PGTY_slab")
    if kind is not None and (word := btf.offset("page", "page_type")) is not None:
        return 0xFF000000, kind << 24, word
    flag = btf.enum("PG_slab")
    if flag is not None and flag < 32:
        return 1 << flag, 1 << flag, 0
    return None


def bases(output: str, page_bits: int, page_size: int) -> tuple[int, int] | None:
    """Compute the addresses of frame 0 in the direct map and in the page array.

    `output` is the text of the events. Returns None unless there are at least two events of each
    kind and 90% agree; an allocation between the two events of a pair spoils that pair.
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
    """Locate the direct map and the page array of the running kernel, in about a second.

    Returns None if the kernel lacks the tracepoints or types, organises its pages differently, or
    forbids large pipes.
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
    except OSError:  # limits of a container
        return None
    finally:
        tool.stop()
    found = bases(take(output), shape.page_bits, shape.page_size)
    return replace(shape, direct_map=found[0], page_array=found[1]) if found else None


def shape_of(btf: Btf) -> KernelMemory | None:
    """Return the layouts, with 0 as addresses; None if the kernel organises pages differently."""
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
    """Make the kernel allocate pipe slots that are too large for a slab, and pages for the LRU.

    The slots of a pipe, 40 bytes per page of the pipe, are one kmalloc, which can exceed two pages
    of any page size; the vectors of readv (at most 16 KiB) cannot. The pages of the pipe are never
    allocated, because nothing is written to it.
    """
    ends = os.pipe()
    try:
        for _ in range(PAIRS):
            fcntl.fcntl(ends[0], fcntl.F_SETPIPE_SZ, page)
            fcntl.fcntl(ends[0], fcntl.F_SETPIPE_SZ, page // 16 * page)
        # mmap gives new pages; malloc may reuse memory that is already allocated.
        with mmap.mmap(-1, max(4 << 20, 256 * page)) as pages:
            pages.write(bytes(len(pages)))
    finally:
        for end in ends:
            os.close(end)
