# SPDX-License-Identifier: GPL-2.0-only
"""On which NUMA nodes the pages of a file system in memory, or of a medium in memory, lie."""

from pathlib import Path

from fscale.model.config import Placement
from fscale.model.errors import FscaleError
from fscale.model.perfstat import cpu_list
from fscale.system.sysfs import ranges, text

HAS_MEMORY = Path("/sys/devices/system/node/has_memory")
STATUS = Path("/proc/self/status")


def _listed(path: Path) -> set[int] | None:
    said = text(path)
    return None if said is None else set(cpu_list(said))


def _with_memory() -> set[int]:
    return _listed(HAS_MEMORY) or set()


def nodes() -> list[int]:
    """The nodes that an interleaved medium lies on: with CPUs, and with memory that we may use.

    Memory without CPUs (of CXL, of a GPU) is slower than what a load gets first on this machine.
    """
    found = _with_memory()
    for line in (text(STATUS) or "").splitlines():
        if line.startswith("Mems_allowed_list:"):
            found &= set(cpu_list(line.partition(":")[2]))
    with_cpus = _listed(HAS_MEMORY.with_name("has_cpu"))
    return sorted(found if with_cpus is None else found & with_cpus)


def _choice(placement: Placement | None) -> bool:
    """Whether a placement can be followed, as there are several nodes to choose from."""
    if placement == "interleave":
        return len(nodes()) > 1
    return placement is not None and len(_with_memory()) > 1


def _interleaved() -> str | None:
    """The nodes of `nodes` as the kernel lists them; None where these are all."""
    return None if set(nodes()) == _with_memory() else ranges(nodes())


def fits_mount(placement: Placement | None) -> bool:
    """Whether a mount option can say it: mount takes the comma of a list of nodes for its own."""
    return placement != "interleave" or "," not in (_interleaved() or "")


def mount_options(placement: Placement | None) -> list[str]:
    """The options of a tmpfs whose pages are to lie so (Documentation/filesystems/tmpfs.rst).

    Raises FscaleError where no option can say it.
    """
    if not _choice(placement):
        return []
    if isinstance(placement, int):
        return [f"mpol=bind:{placement}"]
    if not fits_mount(placement):
        raise FscaleError(
            f'numa = "interleave" would be nodes {_interleaved()}, which a mount option cannot '
            f'say; give "local" or one node'
        )
    where = _interleaved() if placement == "interleave" else None
    return [f"mpol={placement}:{where}" if where else f"mpol={placement}"]


def prefix(placement: Placement | None) -> list[str]:
    """What starts a command so that the pages that it touches first lie so."""
    if not _choice(placement):
        return []
    if isinstance(placement, int):
        return ["numactl", f"--membind={placement}"]
    if placement == "interleave":
        return ["numactl", f"--interleave={_interleaved() or 'all'}"]
    return ["numactl", "--localalloc"]
