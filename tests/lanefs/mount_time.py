# SPDX-License-Identifier: GPL-2.0-only
"""What a mount of a large device takes, in a guest: seconds, reads and memory.

    bin/fscale vm exec --kernel 6.1 --smp 2 --memory 3G --fs lanefs -- \
        python3 -m tests.lanefs.mount_time --tib 1 --tib 4 --tib 16

The device is a sparse file in memory, and the file system on it is empty.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from fscale.model import catalogue
from tests.lanefs.device import MOUNT, Fault, Volume, available, command, drop_caches, reads

app = typer.Typer(add_completion=False)


@contextmanager
def sparse_device(tib: int) -> Iterator[str]:
    """A loop device of so many TiB."""
    with tempfile.TemporaryDirectory() as directory:
        command(["mount", "-t", "tmpfs", "-o", "size=80%", "sparse", directory])
        try:
            backing = Path(directory) / "backing"
            with backing.open("wb") as file:
                file.truncate(tib << 40)
            device = command(["losetup", "--find", "--show", str(backing)]).strip()
            try:
                yield device
            finally:
                command(["losetup", "--detach", device])
        finally:
            command(["umount", directory])


@app.command()
def measure(
    fs: Annotated[str, typer.Option(help="File system.")] = "lanefs",
    tib: Annotated[list[int] | None, typer.Option(help="Size in TiB; repeatable.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Mounts of each size.")] = 3,
) -> None:
    """Print a row for each mount.

    Seconds are from the start of the mount to its end, to the end of the first write of 1 MiB and
    its fsync, and to the end of a statfs() after that. Then come reads of the device and MiB of
    memory that the mount keeps.
    """
    command(["modprobe", "loop"])
    print("tib mounted written counted reads mib")
    for size in tib or [1, 4, 16]:
        with sparse_device(size) as device:
            volume = Volume(catalogue.load_filesystem(fs), device)
            volume.make()
            for _ in range(rounds):
                _row(size, volume)


def _row(tib: int, volume: Volume) -> None:
    drop_caches()
    memory, before, started = available(), reads(volume.device), time.monotonic()
    volume.mount()
    seconds = [time.monotonic() - started]
    with (MOUNT / "file").open("wb") as file:
        file.write(bytes(1 << 20))
        file.flush()
        os.fsync(file.fileno())
    seconds.append(time.monotonic() - started)
    os.statvfs(MOUNT)
    seconds.append(time.monotonic() - started)
    counted = reads(volume.device) - before
    drop_caches()
    taken = (memory - available()) / (1 << 20)
    volume.unmount()
    times = " ".join(f"{part:.2f}" for part in seconds)
    print(f"{tib} {times} {counted} {taken:.1f}", flush=True)


if __name__ == "__main__":
    try:
        app()
    except Fault as fault:
        raise SystemExit(str(fault)) from None
