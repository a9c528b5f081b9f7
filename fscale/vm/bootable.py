# SPDX-License-Identifier: GPL-2.0-only
"""Makes a kernel that the user named ready for another machine."""

import re
import shutil
from pathlib import Path

from fscale.farm.bootable import Bootable
from fscale.model import filetest
from fscale.model.errors import FscaleError
from fscale.vm import vmlinux
from fscale.vm.cache import digest, entry, file_digest
from fscale.vm.debian import SUITES
from fscale.vm.kernel import ALIASES, Kernel, resolve
from fscale.vm.steps import Steps, need

_RELEASE = re.compile(r"[0-9][\w.+~-]{0,63}")


def bootable(spec: str, modules: Path | None, steps: Steps) -> Bootable:
    """The kernel that `spec` names: as for a guest, or the release of one that is installed there.

    Raises:
        FscaleError: it is neither, or has no modules.
    """
    path = Path(spec).expanduser()
    if filetest.exists(path) or ALIASES.get(spec, spec).partition(":")[0] in SUITES:
        return _brought(resolve(str(path), steps, modules=modules), steps)
    if not _RELEASE.fullmatch(spec):
        raise FscaleError(
            f"unknown kernel {spec}; give a built tree, a .deb, {', '.join(SUITES)}, or the "
            "release of a kernel that is installed on the other machine"
        )
    return Bootable(spec)


def _brought(kernel: Kernel, steps: Steps) -> Bootable:
    if kernel.modules is None:
        raise FscaleError(
            f"{kernel.name} has no modules, with which the other machine makes an initramfs; give "
            "a built tree or a .deb"
        )
    image = kernel.image.with_name("bzImage")
    elf = vmlinux.extract(image.read_bytes())
    return Bootable(
        kernel.release,
        image,
        _archive(kernel.modules, steps),
        vmlinux.build_id(elf) if elf else None,
    )


def _archive(modules: Path, steps: Steps) -> Path:
    """The modules as a tar archive."""

    def build(directory: Path) -> None:
        stage = directory / "stage"
        unpack = [need("unsquashfs", "squashfs-tools"), "-quiet", "-no-progress"]
        steps.run([*unpack, "-dest", str(stage), str(modules)], "unpacking the modules")
        archive = ["tar", "--owner=0", "--group=0", "-C", str(stage), "-czf"]
        steps.run([*archive, str(directory / "modules.tar.gz"), "."], "packing the modules")
        shutil.rmtree(stage)

    return entry("modules", digest("tar.gz", file_digest([modules])), build) / "modules.tar.gz"
