# SPDX-License-Identifier: GPL-2.0-only
"""Kernels under test: Debian's with the few modules that the machine needs, one of them planted."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from fscale.vm import kbuild
from fscale.vm.cache import digest, entry, file_digest
from fscale.vm.debian import Apt
from fscale.vm.initramfs import load_order
from fscale.vm.rootfs import root_suite
from fscale.vm.steps import Steps
from tests.validation.gate import PATCHES, kernel_sources

WANTED = ("ext4", "virtio_pci", "virtio_blk", "virtio_net", "loop", "brd", "crc32c_generic")
PLANTS = Path(__file__).parent / "plants"


def kernel(plant: str, steps: Steps) -> str:
    """The kernel with a plant, as a side names it.

    `none`; `create`: a loop in ext4's creation of files; `mute`: without its network card; or a
    source in plants/, which takes the place of a module.
    """
    suite = root_suite()
    target = kbuild.latest(suite, steps)

    def build(directory: Path) -> None:
        (deb,) = Apt(suite, steps).download([f"linux-image-{target.release}"], directory)
        tree = directory / "tree"
        steps.run(["dpkg-deb", "-x", str(deb), str(tree)], f"unpacking {deb.name}")
        deb.unlink()
        everything = tree / "lib/modules" / target.release
        steps.run(["depmod", "-b", str(tree), target.release], "indexing the modules")
        shutil.copy(tree / f"boot/vmlinuz-{target.release}", directory / "bzImage")
        modules = directory / "lib/modules" / target.release
        for path in load_order(everything, WANTED):
            (modules / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(everything / path, modules / path)
        for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
            shutil.copy(everything / name, modules / name)
        shutil.rmtree(tree)
        for module in _planted(plant, suite, target, steps):
            (place,) = modules.rglob(module.name)
            shutil.copy(module, place)
        if plant == "mute":
            (place,) = modules.rglob("virtio_net.ko")
            place.unlink()

    patches = [*PATCHES.glob(f"{plant}.patch"), *PLANTS.rglob(f"{plant}/*")]
    made = entry("ssh-kernel", digest(target.key, plant, WANTED, file_digest(patches), 4), build)
    return f"kernel:{made}/bzImage:modules={made}"


def _planted(plant: str, suite: str, target: kbuild.BuildTarget, steps: Steps) -> list[Path]:
    """The modules of a plant."""
    if (PLANTS / plant).is_dir():
        return kbuild.build_module(PLANTS / plant, target, steps)
    if plant != "create":
        return []
    with tempfile.TemporaryDirectory() as named:
        tree = Path(named)
        kernel_sources(tree, "fs/ext4", suite)
        # Times of an emulated machine differ by a quarter from boot to boot.
        patch = (PATCHES / f"{plant}.patch").read_text().replace(" 100000\n", " 1000000\n")
        subprocess.run(["git", "apply"], input=patch, text=True, cwd=tree, check=True)
        return kbuild.build_module(tree / "fs/ext4", target, steps)
