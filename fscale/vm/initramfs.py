# SPDX-License-Identifier: GPL-2.0-only
"""The small first root of a guest: busybox, the drivers of its disks, and init/initramfs.sh."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from fscale.model.errors import FscaleError
from fscale.vm.cache import file_digest
from fscale.vm.decompress import decompress
from fscale.vm.steps import StepError, Steps, need

INIT = Path(__file__).parent / "init" / "initramfs.sh"
# What it takes to reach the real root; everything else is loaded from there.
FILESYSTEMS = ("squashfs", "overlay", "9p")
WANTED = ("virtio_pci", "virtio_blk", *FILESYSTEMS, "9pnet_virtio")
RECIPE = file_digest([INIT])[:8]


class LacksModule(FscaleError):  # noqa: N818 - it says what is wrong
    """A kernel has a module that a guest needs neither as a file nor built in."""


def module_name(path: str) -> str:
    """The name that the kernel gives a module file."""
    return Path(path).name.split(".ko")[0].replace("-", "_")


def load_order(modules: Path, wanted: tuple[str, ...] = WANTED) -> list[str]:
    """Paths below `modules` of the wanted modules and what they depend on, in loading order.

    Built-in ones are left out.

    Raises:
        LacksModule: the kernel has a wanted one neither as a module nor built in.
    """
    depends: dict[str, list[str]] = {}
    paths: dict[str, str] = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        path, _, needs = line.partition(":")
        paths[module_name(path)] = path
        # modules.dep lists the nearest first and the one to load first last.
        depends[module_name(path)] = list(reversed(needs.split()))
    builtin = {module_name(line) for line in (modules / "modules.builtin").read_text().split()}
    order: list[str] = []
    for name in wanted:
        if name in builtin:
            continue
        if name not in paths:
            raise LacksModule(
                f"kernel {modules.name} has no {name}, which every guest needs; use a kernel with "
                "it, as a module or built in"
            )
        order += [*depends[name], paths[name]]
    return list(dict.fromkeys(order))


def _plain(source: Path, target: Path) -> None:
    """Copy a module uncompressed, because busybox's insmod cannot load compressed ones."""
    packed = source.read_bytes()
    target.write_bytes(decompress(packed) or packed)


def build(
    target: Path,
    modules: Path | None,
    steps: Steps,
    *,
    wanted: tuple[str, ...] = WANTED,
    init: Path = INIT,
    files: Mapping[str, Path] = MappingProxyType({}),
) -> None:
    """Write the archive `target` for a kernel with `modules` = lib/modules/RELEASE.

    None: the kernel has all that it needs built in. `init` loads the `wanted` modules in the order
    of /modules/order; `files` are added under their names.

    Raises:
        LacksModule: see `load_order`; nothing is written.
        FscaleError: busybox or cpio is missing or fails.
    """
    order = load_order(modules, wanted) if modules is not None else []
    busybox = need("busybox", "busybox-static")
    with Path(busybox).open("rb") as file:
        if b"ld-linux" in file.read(4096):
            raise FscaleError(f"{busybox} is not static; apt-get install busybox-static")
    tree = target.with_suffix(".tree")
    for directory in ("bin", "dev", "proc", "sys", "modules"):
        (tree / directory).mkdir(parents=True)
    shutil.copy(busybox, tree / "bin" / "busybox")
    shutil.copy(init, tree / "init")
    (tree / "init").chmod(0o755)
    names = []
    for path in order:
        assert modules is not None
        name = module_name(path) + ".ko"
        _plain(modules / path, tree / "modules" / name)
        names.append(name + "\n")
    (tree / "modules" / "order").write_text("".join(names))
    for name, source in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, tree / name)
    steps.note("packing the initramfs")
    members = "".join(f"{path.relative_to(tree)}\n" for path in sorted(tree.rglob("*")))
    with target.open("wb") as archive:
        packed = subprocess.run(
            [need("cpio", "cpio"), "-o", "-H", "newc", "--quiet", "-R", "0:0"],
            cwd=tree,
            input=os.fsencode(members),
            stdout=archive,
            stderr=subprocess.PIPE,
            check=False,
        )
    if packed.returncode != 0:
        raise StepError(f"cpio failed: {packed.stderr.decode(errors='replace').strip()}")
    shutil.rmtree(tree)
