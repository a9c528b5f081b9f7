# SPDX-License-Identifier: GPL-2.0-only
"""Reads the request-queue settings of a user's device: scheduler, cache, read-ahead."""

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


def read_queue(place: Path, root: Path = Path("/")) -> dict[str, str] | None:
    """Return the queue settings of a block device, or of the one below a directory.

    Returns None without a single device, as for a directory on tmpfs, overlayfs or btrfs. `root` is
    the directory with /sys.
    """
    status = place.stat()
    number = status.st_rdev or status.st_dev
    device = root / f"sys/dev/block/{os.major(number)}:{os.minor(number)}"
    if not device.exists():
        return None
    # A partition shares the queue of its disk.
    disk = device.resolve()
    queue = (disk.parent if (disk / "partition").exists() else disk) / "queue"
    values = {name: text(queue / name) for name in _NAMES}
    settings = {name: value for name, value in values.items() if value is not None}
    if chosen := re.search(r"\[(\S+)\]", settings.get("scheduler", "")):
        settings["scheduler"] = chosen[1]
    return settings or None
