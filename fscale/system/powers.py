# SPDX-License-Identifier: GPL-2.0-only
"""What this process may do to the machine. Root in a container is not root of the machine.

Run as a program, it exits with 0 if file systems can be mounted, else with 1 and the reason.
"""

import ctypes
import errno
import os
import sys
from pathlib import Path

from fscale.system import namespaces
from fscale.system.sysfs import text

CPUS = Path("/sys/devices/system/cpu")
DROP_CACHES = Path("/proc/sys/vm/drop_caches")
_CAP_SYS_ADMIN = 21  # include/uapi/linux/capability.h


def no_admin() -> str | None:
    """Return why this process lacks administrator rights on the machine; None if it has them."""
    if os.geteuid() != 0:
        return "it needs root"
    if namespaces.initial("user") is False:
        return "it needs root of the machine, but this is root of a user namespace"
    if not _effective_capabilities() >> _CAP_SYS_ADMIN & 1:
        return "it needs CAP_SYS_ADMIN, which this root lacks (in a container?)"
    return None


def no_mount() -> str | None:
    """Return why this process cannot mount and format; None if it can."""
    if reason := no_admin():
        return reason
    # Without a type, mount(2) fails with EINVAL, but only after it has checked all permissions.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"none", b"/", None, 0, None) and ctypes.get_errno() != errno.EINVAL:
        return f"mount(2) is denied: {os.strerror(ctypes.get_errno())} (in a container?)"
    return None


def no_hotplug() -> str | None:
    """Return why no CPU can be taken offline; None if one can."""
    switches = list(CPUS.glob("cpu[0-9]*/online"))
    if not switches:
        return "this kernel cannot take CPUs offline"
    if any(os.access(path, os.W_OK) for path in switches):
        return None
    return f"{CPUS} cannot be written" if os.geteuid() == 0 else "it needs root"


def no_drop_caches() -> str | None:
    """Return why the caches cannot be dropped before a cell; None if they can."""
    if os.access(DROP_CACHES, os.W_OK):
        return None
    return f"{DROP_CACHES} cannot be written" if os.geteuid() == 0 else "it needs root"


def denied_actions() -> dict[str, str]:
    """Return each action that this process cannot do -> why."""
    reasons = {
        "mount": no_mount(),
        "hotplug": no_hotplug(),
        "drop caches": no_drop_caches(),
    }
    return {what: reason for what, reason in reasons.items() if reason}


def _effective_capabilities() -> int:
    lines = (text(Path("/proc/self/status")) or "").splitlines()
    return next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), 0)


if __name__ == "__main__":
    refused = no_mount()
    sys.exit(f"file systems cannot be mounted: {refused}" if refused else 0)
