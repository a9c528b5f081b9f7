# SPDX-License-Identifier: GPL-2.0-only
"""A crafted log whose segments are in use but for those of the last LEFT groups, and its search."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from tests.lanefs import blocks
from tests.lanefs.blocks import BITMAP_BITS, BLOCK, HEADER, Layout
from tests.lanefs.functions.harness import run

LEFT = 16
"""groups at the end that stay free: data leaves up to five to metadata"""
METADATA_PART = 16
"""the streams of a log leave this part of the data blocks to metadata (segments.c)"""
SEARCH, LOCK = "lanefs_stream_take_data", "_raw_spin_lock"
_TRACING = Path("/sys/kernel/tracing")


def craft_log(image: Path) -> None:
    """Make a log of a new file system of one domain that is none, with hardly a free segment.

    mkfs would write the whole owner table, 64 GiB for 16 TiB. Here it has only the blocks that are
    used when free segments are written.
    """
    with image.open("r+b") as file:
        block = bytearray(file.read(BLOCK))
        old = blocks.layout(block)
        block[88:96] = (int.from_bytes(block[88:96], "little") | blocks.LOG).to_bytes(8, "little")
        blocks.seal(block)
        file.seek(0)
        file.write(block)
        new = blocks.layout(block)
        left = (new.groups - LEFT) * BITMAP_BITS
        _use(file, new, old.data, new.data)
        metadata = (new.base + new.blocks - new.data) // METADATA_PART
        _use(file, new, new.data + metadata, new.base + left)
        owners = bytearray(os.pread(file.fileno(), BLOCK, new.bbitmap * BLOCK))
        owners[HEADER:] = bytes(BLOCK - HEADER)
        owners[:4] = blocks.MAGIC["owners"].to_bytes(4, "little")
        first = old.data + left // blocks.OWNERS
        file.seek(first * BLOCK)
        file.writelines(blocks.renumbered(owners, range(first, new.data)))


def _use(file: BinaryIO, layout: Layout, first: int, end: int) -> None:
    """Mark blocks of the domain as in use."""
    groups = range((first - layout.base) // BITMAP_BITS, (end - 1 - layout.base) // BITMAP_BITS + 1)
    for group in {groups[0], groups[-1]}:
        begin = layout.base + group * BITMAP_BITS
        low, high = max(first - begin, 0), min(end - begin, BITMAP_BITS)
        block = bytearray(os.pread(file.fileno(), BLOCK, (layout.bbitmap + group) * BLOCK))
        bits = int.from_bytes(block[HEADER:], "little") | (1 << high) - (1 << low)
        block[HEADER:] = bits.to_bytes(BLOCK - HEADER, "little")
        blocks.seal(block)
        file.seek((layout.bbitmap + group) * BLOCK)
        file.write(block)
    block[HEADER:] = b"\xff" * (BLOCK - HEADER)
    file.seek((layout.bbitmap + groups[0] + 1) * BLOCK)
    numbers = range(layout.bbitmap + groups[0] + 1, layout.bbitmap + groups[-1])
    file.writelines(blocks.renumbered(block, numbers))


def can_trace() -> bool:
    """Whether the kernel draws graphs of functions; mounts tracefs."""
    if not (_TRACING / "current_tracer").exists():
        run("mount", "-t", "tracefs", "tracefs", str(_TRACING))
    return "function_graph" in (_TRACING / "available_tracers").read_text().split()


def locks_of_search(work: Callable[[], None]) -> int:
    """How many locks that search of `work` took that took the most; by a function graph."""
    settings = {
        "buffer_size_kb": "32768",
        "set_ftrace_filter": f"{SEARCH}\n{LOCK}",
        "set_graph_function": SEARCH,
        "current_tracer": "function_graph",
    }
    try:
        for name, value in settings.items():
            (_TRACING / name).write_text(value)
        work()
        (_TRACING / "tracing_on").write_text("0")
        lines = (_TRACING / "trace").read_text().splitlines()
    finally:
        (_TRACING / "current_tracer").write_text("nop")
        for name in ("set_ftrace_filter", "set_graph_function"):
            (_TRACING / name).write_text("\n")
        (_TRACING / "buffer_size_kb").write_text("1408")
        (_TRACING / "tracing_on").write_text("1")
    most = locks = 0
    for line in lines:
        if SEARCH in line:
            locks = 0
        locks += f"{LOCK}()" in line
        most = max(most, locks)
    return most


def write_blocks(path: Path, count: int) -> None:
    """Write blocks on CPU 0, where the part begins that its streams look into."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {0})
    try:
        with path.open("wb") as file:
            file.write(bytes(count * BLOCK))
            file.flush()
            os.fsync(file.fileno())
    finally:
        os.sched_setaffinity(0, cpus)
