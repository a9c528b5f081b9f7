# SPDX-License-Identifier: GPL-2.0-only
"""What each feature needs besides fscale itself, and the Debian packages that bring it."""

from dataclasses import dataclass
from pathlib import Path

from fscale.model import paths
from fscale.system.executor import which

_COMPILER = {"gcc": "build-essential", "make": "build-essential"}
_GUEST = {
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

    A need is a program, or a file with its path. `compiled`: not where a package brings it
    compiled.
    """

    name: str
    needs: dict[str, str]
    compiled: bool = False

    def missing(self) -> dict[str, str]:
        """What this machine lacks, with its packages."""
        if self.compiled and paths.BUILD == paths.PREBUILT:
            return {}
        return {need: package for need, package in self.needs.items() if not _there(need)}


def _there(need: str) -> bool:
    return Path(need).exists() if need.startswith("/") else which(need) is not None


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
    Feature(
        "run: its programs",
        _COMPILER
        | {"/usr/include/jansson.h": "libjansson-dev", "/usr/include/liburing.h": "liburing-dev"},
        compiled=True,
    ),
    Feature("run --profile cpu", {"perf": "linux-perf"}),
    Feature(
        "run --profile locks",
        {"clang": "clang", "/usr/include/bpf/libbpf.h": "libbpf-dev"},
        compiled=True,
    ),
    Feature("run --profile offcpu, counts", {"bpftrace": "bpftrace"}),
    Feature(
        "report: flame graphs",
        {"/usr/share/perl5/Devel/NYTProf/flamegraph.pl": "libdevel-nytprof-perl"},
    ),
    Feature("vm, simulate, gate", _GUEST),
    Feature("vm module build", _COMPILER | {"/usr/include/libelf.h": "libelf-dev"}),
    Feature(
        "vm kernel build",
        _COMPILER
        | {
            "bc": "bc",
            "bison": "bison",
            "flex": "flex",
            "/usr/include/libelf.h": "libelf-dev",
        },
    ),
)
