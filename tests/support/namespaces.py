# SPDX-License-Identifier: GPL-2.0-only
"""Namespaces for tests, also in a chroot whose root is no mount point."""

from fscale.system import mountinfo


def unshare(*options: str) -> tuple[str, ...]:
    """The command that makes a mount namespace and others.

    Only the propagation of a mount point can be changed. Where "/" is none, what the command mounts
    on a shared mount appears outside as well, unless it makes that mount private first, as
    --mount-proc does with /proc.
    """
    is_mounted = any(line.target == "/" for line in mountinfo.read())
    propagation = "private" if is_mounted else "unchanged"
    return ("unshare", "--mount", "--propagation", propagation, *options)
