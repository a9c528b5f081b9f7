# SPDX-License-Identifier: GPL-2.0-only
"""Reads which Linux security modules are enabled. Their hooks can affect every file operation."""

from pathlib import Path

from fscale.system.sysfs import text


def names(root: Path = Path("/")) -> list[str] | None:
    """Return the enabled LSMs in the order of their calls; None if unknown.

    Without securityfs only LSMs that are visible elsewhere are found; there may be others.
    """
    listed = text(root / "sys/kernel/security/lsm")
    if listed:
        return listed.split(",")
    modules = []
    if (root / "sys/fs/selinux").is_dir():
        modules.append("selinux")
    if text(root / "sys/module/apparmor/parameters/enabled") == "Y":
        modules.append("apparmor")
    return modules or None


def state(root: Path = Path("/")) -> dict[str, str]:
    """Return LSM -> its state, for SELinux and AppArmor."""
    on = names(root) or []
    found = {}
    if "selinux" in on:
        found["selinux"] = _selinux(root)
    if "apparmor" in on:
        found["apparmor"] = _apparmor(root)
    return found


def _selinux(root: Path) -> str:
    # Without a policy every label is "kernel"; the labels of a policy have colons.
    label = text(root / "proc/self/attr/current")
    if label is not None and ":" not in label:
        return "no policy is loaded"
    enforce = text(root / "sys/fs/selinux/enforce")
    return {"1": "enforcing", "0": "permissive"}.get(enforce or "", "unknown")


def _apparmor(root: Path) -> str:
    profiles = text(root / "sys/kernel/security/apparmor/profiles")
    loaded = "unknown profiles" if profiles is None else "profiles" if profiles else "no profile"
    attributes = root / "proc/self/attr"
    label = text(attributes / "apparmor/current") or text(attributes / "current")
    return f"{loaded}; this process is {label or 'unknown'}"
