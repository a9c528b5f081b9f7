# SPDX-License-Identifier: GPL-2.0-only
"""How long recovery takes, in a guest: serial, parallel and by fsck, of one and the same log.

    bin/fscale vm exec --kernel 6.12 --smp 4 --fs lanefs -- \
        python3 -m tests.lanefs.recovery_time --domains 4 --delay 0 --delay 2
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from fscale.vm.crashtest import map_device
from tests.lanefs.device import (
    MOUNT,
    RAM,
    SHUTDOWN_NOW,
    Fault,
    command,
    drop_caches,
    make_ram_disks,
    shut_down,
)

SECTOR = 512
DIRECTORIES = 64
"""created between two syncs, with a file in each"""
app = typer.Typer(add_completion=False)


def _written(device: str) -> int:
    """Bytes written to a device since it was made."""
    number = os.minor(Path(device).stat().st_rdev)
    return int(Path(f"/sys/class/block/dm-{number}/stat").read_text().split()[6]) * SECTOR


def crash_with_log(device: str, size: int) -> None:
    """Create directories until `size` bytes went to the device, all to the logs; then stop."""
    command(["mount", "-t", "lanefs", "-o", "placement=roundrobin", device, str(MOUNT)])
    before, number = _written(device), 0
    while _written(device) - before < size:
        for _ in range(DIRECTORIES):
            directory = MOUNT / f"d{number}"
            directory.mkdir()
            (directory / "file").touch()
            number += 1
        os.sync()
    shut_down(MOUNT, SHUTDOWN_NOW)
    command(["umount", str(MOUNT)])


@contextmanager
def crashed(device: str, sectors: int, delay: int) -> Iterator[str]:
    """The crashed device, as often as wanted, with each read and write `delay` ms later."""
    with map_device("lanefs-snapshot", f"0 {sectors} snapshot {device} {RAM[1]} N 8") as snapshot:
        if not delay:
            yield snapshot
            return
        with map_device("lanefs-delay", f"0 {sectors} delay {snapshot} 0 {delay}") as slow:
            yield slow


def _mount(options: str) -> Callable[[str], None]:
    def recover(device: str) -> None:
        command(["mount", "-t", "lanefs", "-o", f"ro{options}", device, str(MOUNT)])

    return recover


def _replay(threads: int) -> Callable[[str], None]:
    def recover(device: str) -> None:
        command(["fsck.lanefs", "--replay", "-j", str(threads), device])

    return recover


WAYS: dict[str, Callable[[str], None]] = {
    "mount": _mount(""),
    "ablate=recovery": _mount(",ablate=recovery"),
    "fsck -j 1": _replay(1),
    "fsck -j 16": _replay(16),
}


@app.command()
def measure(
    domains: Annotated[int, typer.Option(help="Domains of the file system.")] = 4,
    log: Annotated[
        int, typer.Option(help="Size of all journals together in MiB; half is filled.")
    ] = 32,
    delay: Annotated[list[int] | None, typer.Option(help="Device delay in ms; repeatable.")] = None,
    way: Annotated[
        list[str] | None, typer.Option(help=f"Way to recover: {', '.join(WAYS)}.")
    ] = None,
    rounds: Annotated[int, typer.Option(help="Rounds; each runs every way once.")] = 3,
) -> None:
    """Print the recovery time of each way in seconds, and the kernel's messages about it."""
    mib = 6 * log + 64
    make_ram_disks(mib)
    sectors = mib * 2048
    with map_device("lanefs-whole", f"0 {sectors} linear {RAM[0]} 0") as device:
        options = ["--domains", str(domains), "--journal", f"{log // domains}M"]
        command(["mkfs.lanefs", *options, device])
        crash_with_log(device, (log << 20) // 2)
        for milliseconds in delay or [0]:
            for _ in range(rounds):
                for name in way or list(WAYS)[1:]:
                    with crashed(device, sectors, milliseconds) as image:
                        _one(name, image, milliseconds)


def _one(name: str, image: str, milliseconds: int) -> None:
    drop_caches()
    command(["dmesg", "--clear"])
    started = time.monotonic()
    WAYS[name](image)
    seconds = time.monotonic() - started
    if name.startswith(("mount", "recovery")):
        command(["umount", str(MOUNT)])
    said = [line.strip() for line in command(["dmesg"]).splitlines() if "recover" in line]
    print(f"{name}, delay {milliseconds} ms: {seconds:.2f} s", *said, sep="\n    ", flush=True)


if __name__ == "__main__":
    try:
        app()
    except Fault as fault:
        raise SystemExit(str(fault)) from None
