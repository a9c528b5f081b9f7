# SPDX-License-Identifier: GPL-2.0-only
"""Chooses the NUMA nodes of the pages of a file system or medium in memory."""

from pathlib import Path

from fscale.model.config import Placement
from fscale.model.errors import FscaleError
from fscale.model.perfstat import cpu_list
from fscale.model.words import ranges
from fscale.system.sysfs import text

HAS_MEMORY = Path("/sys/devices/system/node/has_memory")
STATUS = Path("/proc/self/status")


def _listed(path: Path) -> set[int] | None:
    listed = text(path)
    return None if listed is None else set(cpu_list(listed))


def _with_memory() -> set[int]:
    return _listed(HAS_MEMORY) or set()


def nodes() -> list[int]:
    """Return the nodes of an interleaved medium: those with CPUs and with memory that we may use.

    Nodes without CPUs (CXL or GPU memory) are left out, because their memory is slower than what a
    load would get by default.
    """
    usable = _with_memory()
    for line in (text(STATUS) or "").splitlines():
        if line.startswith("Mems_allowed_list:"):
            usable &= set(cpu_list(line.partition(":")[2]))
    with_cpus = _listed(HAS_MEMORY.with_name("has_cpu"))
    return sorted(usable if with_cpus is None else usable & with_cpus)


def _choice(placement: Placement | None) -> bool:
    """Return whether a placement has an effect, because there are several nodes."""
    if placement == "interleave":
        return len(nodes()) > 1
    return placement is not None and len(_with_memory()) > 1


def _interleaved() -> str | None:
    """Return the interleaved nodes as a kernel list; None if these are all nodes with memory."""
    return None if set(nodes()) == _with_memory() else ranges(nodes())


def fits_mount(placement: Placement | None) -> bool:
    """Return whether a mount option can express a placement.

    It cannot if the list of nodes contains a comma, which mount(8) takes as a separator.
    """
    return placement != "interleave" or "," not in (_interleaved() or "")


def mount_options(placement: Placement | None) -> list[str]:
    """Return the mount options of a tmpfs for a placement (Documentation/filesystems/tmpfs.rst).

    Raises:
        FscaleError: no mount option can express the placement.
    """
    if not _choice(placement):
        return []
    if isinstance(placement, int):
        return [f"mpol=bind:{placement}"]
    if not fits_mount(placement):
        raise FscaleError(
            f'numa = "interleave" means nodes {_interleaved()} here, which a mount option cannot '
            f'express because of the comma; give "local" or one node'
        )
    where = _interleaved() if placement == "interleave" else None
    return [f"mpol={placement}:{where}" if where else f"mpol={placement}"]


def prefix(placement: Placement | None) -> list[str]:
    """Return the argv prefix that gives a command's memory a placement."""
    if not _choice(placement):
        return []
    if isinstance(placement, int):
        return ["numactl", f"--membind={placement}"]
    if placement == "interleave":
        return ["numactl", f"--interleave={_interleaved() or 'all'}"]
    return ["numactl", "--localalloc"]
