# SPDX-License-Identifier: GPL-2.0-only
"""On which NUMA nodes the pages of a file system in memory, or of a medium in memory, lie."""

from pathlib import Path

from fscale.model.config import Placement

HAS_MEMORY = Path("/sys/devices/system/node/has_memory")


def several_nodes() -> bool:
    """Whether there is a choice: more than one node has memory."""
    return HAS_MEMORY.exists() and any(c in HAS_MEMORY.read_text() for c in ",-")


def mount_options(placement: Placement | None) -> list[str]:
    """The options of a tmpfs whose pages are to lie so (Documentation/filesystems/tmpfs.rst)."""
    if placement is None or not several_nodes():
        return []
    return [f"mpol=bind:{placement}" if isinstance(placement, int) else f"mpol={placement}"]


def prefix(placement: Placement | None) -> list[str]:
    """What starts a command so that the pages that it touches first lie so."""
    if placement is None or not several_nodes():
        return []
    if isinstance(placement, int):
        return ["numactl", f"--membind={placement}"]
    return ["numactl", "--interleave=all" if placement == "interleave" else "--localalloc"]
