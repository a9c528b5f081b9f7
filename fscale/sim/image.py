# SPDX-License-Identifier: GPL-2.0-only
"""The initramfs of a simulated guest: the microbenchmark, mkfs, modules, and init.sh."""

import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from fscale.model import paths
from fscale.model.config import FileSystem, Medium
from fscale.model.errors import FscaleError
from fscale.system.programs import made
from fscale.vm import initramfs
from fscale.vm.cache import digest, entry, file_digest, prune
from fscale.vm.initramfs import module_name
from fscale.vm.kernel import Kernel
from fscale.vm.module_build import Parts, own_name
from fscale.vm.steps import Steps, need

INIT = Path(__file__).parent / "init.sh"
TRANSPORT = ("virtio_pci", "9p", "9pnet_virtio")
MEDIA = ("brd", "null_blk")
# mkfs.ext4 has its defaults in a file.
CONFIGURATION = (Path("/etc/mke2fs.conf"),)


def build(
    kernel: Kernel,
    filesystems: Mapping[str, FileSystem],
    media: Iterable[Medium],
    mounts: Iterable[str],
    parts: Parts,
    steps: Steps,
) -> Path:
    """The archive for all points of a sweep, from the cache if it exists there.

    `mounts` are file systems that workloads mount themselves: a kernel may lack them, and the
    workload is then skipped. `parts` are modules and tools under test. FscaleError if the kernel
    lacks another module, MissingTool if this machine lacks a mkfs.
    """
    files = _files(filesystems.values(), parts)
    kinds = {medium.kind for medium in media}
    own = {own_name(path) for path in parts.modules}
    wanted = (
        *TRANSPORT,
        *(kind for kind in MEDIA if kind in kinds),
        *sorted({fs.kernel for fs in filesystems.values()} - own),
    )
    optional = sorted({*mounts} - own)
    key = digest(
        *(kernel.image.parent.name, wanted, optional),
        *(file_digest([INIT, *files.values()]), sorted(files), 3),
    )

    def make(directory: Path) -> None:
        archive = directory / "initramfs.cpio"
        if kernel.modules is None:
            initramfs.build(archive, None, steps, init=INIT, files=files)
            return
        tree = _Modules(kernel.modules, kernel.release, directory / "modules", steps)
        needed = [name for module in parts.modules for name in _needs(module) if name not in own]
        modular = [name for name in wanted if tree.modular(name)]
        known = [path for name in (*optional, *needed) for path in tree.called(name)]
        names = tree.with_soft((*modular, *known))
        tree.extract(initramfs.load_order(tree.directory, names))
        initramfs.build(archive, tree.directory, steps, wanted=names, init=INIT, files=files)
        tree.remove()

    made = entry("simulated", key, make)
    prune(made)  # every build of the microbenchmark makes one
    return made / "initramfs.cpio"


def _files(filesystems: Iterable[FileSystem], parts: Parts) -> dict[str, Path]:
    """Host files by their names in the guest; programs with the libraries that they need."""
    programs = {"bin/fscale-bench": made(paths.BENCH), **parts.files}
    for fs in filesystems:
        if fs.mkfs and f"bin/{fs.mkfs[0]}" not in programs:
            programs[f"bin/{fs.mkfs[0]}"] = Path(need(fs.mkfs[0], fs.package or fs.mkfs[0]))
    # The order of a set differs from process to process.
    libraries = sorted({path for program in programs.values() for path in _libraries(program)})
    return {
        **programs,
        **{str(path.relative_to("/")): path for path in libraries},
        **{str(path.relative_to("/")): path for path in CONFIGURATION if path.exists()},
        **{f"modules/under-test/{path.name}": path for path in parts.modules},
    }


def _needs(module: Path) -> list[str]:
    """The modules to load before a module under test: `depends`, and `pre` of `softdep`."""
    argv = [need("modinfo", "kmod"), "-F"]
    depends, soft = (
        subprocess.run([*argv, key, module], capture_output=True, text=True, check=True).stdout
        for key in ("depends", "softdep")
    )
    before = re.findall(r"pre: ((?:(?!post:)\S+\s*)+)", soft)
    return [*depends.replace(",", " ").split(), *" ".join(before).split()]


def _libraries(program: Path) -> list[Path]:
    """The shared libraries of a program, including its loader; none for a static program."""
    listed = subprocess.run(
        [need("ldd", "libc-bin"), str(program)], capture_output=True, text=True, check=False
    )
    paths = re.findall(r"(?:=> )?(/\S+) \(0x", listed.stdout)
    return [Path(path) for path in paths]


class _Modules:
    """Part of a kernel's lib/modules, out of its squashfs image."""

    def __init__(self, image: Path, release: str, directory: Path, steps: Steps) -> None:
        self._image = image
        self._root = directory
        self._steps = steps
        self.directory = directory / release
        self.extract([f"modules.{part}" for part in ("dep", "builtin", "softdep", "alias")])
        builtin = (self.directory / "modules.builtin").read_text().split()
        self._builtin = {module_name(line) for line in builtin}
        dep = (self.directory / "modules.dep").read_text()
        self._known = {module_name(line.partition(":")[0]) for line in dep.splitlines()}
        self._aliases: dict[str, list[str]] = {}
        for line in (self.directory / "modules.alias").read_text().splitlines():
            word, _, rest = line.partition(" ")
            alias, _, module = rest.rpartition(" ")
            if word == "alias" and alias.startswith("crypto-"):
                self._aliases.setdefault(alias.removeprefix("crypto-"), []).append(module)

    def extract(self, names: Iterable[str]) -> None:
        """Unpack files by their paths below lib/modules/RELEASE."""
        wanted = [f"{self.directory.name}/{name}" for name in names]
        argv = [need("unsquashfs", "squashfs-tools"), "-q", "-n", "-f", "-d", str(self._root)]
        self._steps.run([*argv, str(self._image), *wanted], "unpacking kernel modules")

    def modular(self, name: str) -> bool:
        """Whether the module exists; False if built in; FscaleError if the kernel has neither."""
        if name in self._known:
            return True
        if name in self._builtin or name == "tmpfs":  # which every kernel has
            return False
        raise FscaleError(
            f"kernel {self.directory.name} has no {name}, neither as a module nor built in; use "
            "another kernel"
        )

    def called(self, name: str) -> list[str]:
        """The modules of a name: several for some algorithms of the kernel, or none."""
        algorithm = name.removeprefix("crypto-")
        given = [algorithm.replace("-", "_"), *self._aliases.get(algorithm, [])]
        return [one for one in given if one in self._known]

    def with_soft(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The modules, each after those that modules.softdep requires before it.

        Without them a file system would ask user space for its checksum, and get no answer.
        """
        before: dict[str, list[str]] = {}
        for line in (self.directory / "modules.softdep").read_text().splitlines():
            if found := re.match(r"softdep (\S+) pre: (.*)", line):
                before.setdefault(found[1].replace("-", "_"), []).extend(found[2].split())
        order: dict[str, None] = {}
        for name in names:
            needed = map(module_name, initramfs.load_order(self.directory, (name,)))
            for module in needed:
                for soft in before.get(module, []):
                    order |= dict.fromkeys(self.called(soft))
            order[name] = None
        return tuple(order)

    def remove(self) -> None:
        """Delete the unpacked files."""
        self._steps.run(["rm", "-rf", str(self._root)], "removing the unpacked modules")
