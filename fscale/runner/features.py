# SPDX-License-Identifier: GPL-2.0-only
"""What each feature needs besides fscale itself, and the Debian packages that bring it."""

from dataclasses import dataclass

from fscale.model import paths
from fscale.system.programs import COMPILED_WITH, COMPILER, FLAME_GRAPHS, Need, found

_ELF: dict[Need, str] = {"/usr/include/libelf.h": "libelf-dev"}
_GUEST: dict[Need, str] = {
    "mmdebstrap": "mmdebstrap",
    "mksquashfs": "squashfs-tools",
    "busybox": "busybox-static",
    "cpio": "cpio",
    "depmod": "kmod",
    "zstd": "zstd",
}


@dataclass(frozen=True)
class Feature:
    """A feature by the words of the command line; what it needs -> the Debian package with it.

    `compiled`: not where a package brings it compiled. `profilers` are tried.
    """

    name: str
    needs: dict[Need, str]
    compiled: bool = False
    profilers: tuple[str, ...] = ()

    def missing(self) -> dict[str, str]:
        """What this machine lacks, with its packages."""
        if self.compiled and paths.BUILD == paths.PREBUILT:
            return {}
        return {
            need if isinstance(need, str) else need[-1]: package
            for need, package in self.needs.items()
            if found(need) is None
        }


FEATURES = (
    Feature(
        "run: fresh file systems",
        {
            "mount": "mount",
            "losetup": "mount",
            "lscpu": "util-linux",
            "wipefs": "util-linux",
            "blkid": "util-linux",
        },
    ),
    Feature("run: its programs", COMPILED_WITH["microbench"], compiled=True),
    Feature("run --profile cpu", {"perf": "linux-perf"}, profilers=("cpu",)),
    Feature(
        "run --profile locks",
        COMPILED_WITH["lockprofile"],
        compiled=True,
        profilers=("locks",),
    ),
    Feature(
        "run --profile offcpu, counts",
        {"bpftrace": "bpftrace"},
        profilers=("offcpu", "counts"),
    ),
    Feature("report: flame graphs", {FLAME_GRAPHS: "libdevel-nytprof-perl"}),
    Feature(
        "ab, bisect --on ssh, booted here",
        {"kexec": "kexec-tools", ("dracut", "mkinitramfs"): "initramfs-tools"},
    ),
    Feature("vm, simulate, gate, commute", _GUEST),
    Feature("calibrate", COMPILED_WITH["calibrate"], compiled=True),
    Feature("vm module build", COMPILER | _ELF),
    Feature("vm kernel build", COMPILER | _ELF | {"bc": "bc", "bison": "bison", "flex": "flex"}),
)
