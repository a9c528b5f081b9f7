# SPDX-License-Identifier: GPL-2.0-only
"""The memory that `--memory` gives a guest."""

from fscale.model.config import parse_size
from fscale.model.errors import FscaleError
from fscale.model.limits import MOST_MEMORY
from fscale.system import cgroups

# MiB with which the kernels of Debian 12, 13 and sid boot.
_LEAST = 128


def mebibytes(memory: str, least: int = _LEAST) -> int:
    """MiB of a size such as "4G"; a number alone is in MiB, as for QEMU.

    Raises FscaleError if it is no size, or below `least` MiB.
    """
    try:
        wanted = parse_size(f"{memory}M" if memory.isdecimal() else memory) >> 20
    except ValueError:
        raise FscaleError(f"--memory: {memory[:60]!r} is not a size such as 4G") from None
    if wanted < least:
        raise FscaleError(f"--memory {memory} is too little for a guest; give {least}M or more")
    if wanted > MOST_MEMORY:
        raise FscaleError(f"--memory {memory} is too much; give {MOST_MEMORY >> 20}T or less")
    return wanted


def check(memory: str) -> None:
    """FscaleError if a guest cannot have this memory (such as "4G").

    Beyond the limits of the control groups, the kernel would kill the guest when it reaches one.
    """
    wanted = mebibytes(memory)
    left = cgroups.memory_left(cgroups.chain("memory"))
    if left and wanted << 20 > left.value:
        raise FscaleError(
            f"not enough memory: a guest of {memory} does not fit into the "
            f"{int(left.value) >> 20} MiB that are left below the limit of this control group "
            f"({left.file}); lower --memory, or raise the limit"
        )
