# SPDX-License-Identifier: GPL-2.0-only
"""The layouts by which the slab object of an address is found, from the kernel's BTF.

Where the kernel's memory lies is random; lockprofile/memory.c finds that.
"""

import os
from dataclasses import asdict, dataclass

from fscale.runner.profilers.btf import Btf

PAGE = os.sysconf("SC_PAGE_SIZE")


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
