# SPDX-License-Identifier: GPL-2.0-only
"""What it takes to find a free segment in a log whose first ones are all used, in a guest.

    bin/fscale vm exec --kernel 6.1 --smp 2 --memory 4G --deterministic --fs lanefs -- \
        python3 -m tests.lanefs.segment_search --tib 1 --tib 4 --tib 16

The log is a sparse file in memory, with one domain, and crafted: all its segments are in use but
for those of the last LEFT groups.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from fscale.model import catalogue
from tests.lanefs import blocks
from tests.lanefs.blocks import BITMAP_BITS, BLOCK, HEADER, Layout
from tests.lanefs.device import MOUNT, Fault, Volume, command, load_module
from tests.lanefs.mount_time import sparse_device

LEFT = 16
"""groups at the end that stay free: data leaves up to five to metadata"""
METADATA_PART = 16
"""the streams of a log leave this part of the data blocks to metadata (segments.c)"""
SEARCH, LOCK = "lanefs_stream_take_data", "_raw_spin_lock"
_TRACING = Path("/sys/kernel/tracing")
app = typer.Typer(add_completion=False)


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
        command(["mount", "-t", "tracefs", "tracefs", str(_TRACING)])
    return "function_graph" in (_TRACING / "available_tracers").read_text().split()


def traced(work: Callable[[], None], *functions: str) -> list[str]:
    """The lines of a function graph of these functions, as far as they are called by SEARCH."""
    settings = {
        "buffer_size_kb": "32768",
        "set_ftrace_filter": "\n".join([SEARCH, *functions]),
        "set_graph_function": SEARCH,
        "current_tracer": "function_graph",
    }
    try:
        for name, value in settings.items():
            (_TRACING / name).write_text(value)
        work()
        (_TRACING / "tracing_on").write_text("0")
        return (_TRACING / "trace").read_text().splitlines()
    finally:
        (_TRACING / "current_tracer").write_text("nop")
        for name in ("set_ftrace_filter", "set_graph_function"):
            (_TRACING / name).write_text("\n")
        (_TRACING / "buffer_size_kb").write_text("1408")
        (_TRACING / "tracing_on").write_text("1")


def most_locks(lines: list[str]) -> int:
    """How many locks the search took that took the most."""
    most = locks = 0
    for line in lines:
        if SEARCH in line:
            locks = 0
        locks += f"{LOCK}()" in line
        most = max(most, locks)
    return most


def _longest(lines: list[str]) -> float:
    """Microseconds of the search that took longest."""
    found = [re.search(r"([\d.]+) us +\|  [^ ]", line) for line in lines]
    return max(float(match[1]) for match in found if match)


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


@app.command()
def measure(
    tib: Annotated[list[int] | None, typer.Option(help="Size in TiB; repeatable.")] = None,
    module: Annotated[
        list[Path] | None,
        typer.Option(help="Module to load instead of the guest's; repeatable."),
    ] = None,
) -> None:
    """Print a row for each size and module: groups, locks of a search, its microseconds.

    The locks are counted in one search, and the time is taken in the next one, without tracing
    locks.
    """
    if not can_trace():
        raise Fault("the kernel draws no graphs of functions")
    command(["modprobe", "loop"])
    print("module tib groups locks us")
    for size in tib or [1, 4, 16]:
        with sparse_device(size) as device:
            backing = Path(f"/sys/block/{Path(device).name}/loop/backing_file").read_text().strip()
            volume = Volume(catalogue.load_filesystem("lanefs"), device)
            volume.make("--domains", "1", "--inodes", str(1 << 20))
            craft_log(Path(backing))
            groups = blocks.read_layout(Path(backing)).groups
            for file in module or [None]:
                if file:
                    load_module("lanefs", file)
                locks, longest = _search(volume)
                name = file.stem if file else "lanefs"
                print(f"{name} {size} {groups} {locks} {longest:.1f}", flush=True)


def _search(volume: Volume) -> tuple[int, float]:
    volume.mount()
    # All is counted, and collectors find nothing to do.
    os.statvfs(MOUNT)
    (Path("/sys/fs/lanefs") / Path(volume.device).name / "gc_low").write_text("0")
    locks = most_locks(traced(lambda: write_blocks(MOUNT / "one", 1), LOCK))
    # The first segment is full in between.
    longest = _longest(traced(lambda: write_blocks(MOUNT / "more", 600)))
    for name in ("one", "more"):
        (MOUNT / name).unlink()
    volume.unmount()
    return locks, longest


if __name__ == "__main__":
    try:
        app()
    except Fault as fault:
        raise SystemExit(str(fault)) from None
