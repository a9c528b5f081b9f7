# SPDX-License-Identifier: GPL-2.0-only
"""How the kernel queues requests to a device that is not ours: scheduler, cache, read-ahead."""

import os
import re
from pathlib import Path

from fscale.system.sysfs import text

_NAMES = (
    "dax",
    "io_poll",
    "logical_block_size",
    "max_sectors_kb",
    "nomerges",
    "nr_requests",
    "physical_block_size",
    "read_ahead_kb",
    "rotational",
    "rq_affinity",
    "scheduler",
    "wbt_lat_usec",
    "write_cache",
    "zoned",
)


def under(place: Path, root: Path = Path("/")) -> dict[str, str] | None:
    """The settings of a block device, or of the one below a directory; None where there is none.

    `root` is where /sys is. A directory on tmpfs, overlayfs or btrfs has no one device.
    """
    found = place.stat()
    number = found.st_rdev or found.st_dev
    device = root / f"sys/dev/block/{os.major(number)}:{os.minor(number)}"
    if not device.exists():
        return None
    # A partition has its disk's queue.
    disk = device.resolve()
    queue = (disk.parent if (disk / "partition").exists() else disk) / "queue"
    values = {name: text(queue / name) for name in _NAMES}
    settings = {name: value for name, value in values.items() if value is not None}
    if chosen := re.search(r"\[(\S+)\]", settings.get("scheduler", "")):
        settings["scheduler"] = chosen[1]
    return settings or None
