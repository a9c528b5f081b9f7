# SPDX-License-Identifier: GPL-2.0-only
"""Kernels to boot: Debian's by suite or package, a .deb, a built tree, a bzImage and modules."""

import json
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fscale.model import filetest
from fscale.model.errors import FscaleError
from fscale.vm import initramfs, vmlinux
from fscale.vm.cache import cache_root, digest, entry, file_digest
from fscale.vm.debian import SUITES, Apt, recent
from fscale.vm.decompress import decompress
from fscale.vm.steps import Steps, need

# Versions by which users name Debian's kernels.
ALIASES = {"6.1": "bookworm", "6.12": "trixie"}
# Raised when the layout of a cache entry changes.
RECIPE = 4
IMAGES = ("vmlinux", "bzImage")


@dataclass(frozen=True)
class Kernel:
    """A kernel ready to boot."""

    name: str
    release: str
    image: Path
    """the file that QEMU starts: the uncompressed kernel, or the bzImage if it has no PVH entry"""
    initramfs: Path
    modules: Path | None
    """squashfs image of lib/modules; None if everything is built in"""
    no_guest: str = ""
    """why no guest can boot it, although a machine may; it has no initramfs then"""


def release_of(image: Path) -> str:
    """The release string in a bzImage's header (Documentation/arch/x86/boot.rst).

    FscaleError if the file is not a bzImage.
    """
    try:
        data = image.read_bytes()
    except OSError as error:
        raise FscaleError(
            f"cannot read {image}: {error.strerror}; give a bzImage that you may read"
        ) from None
    if data[0x202:0x206] != b"HdrS":
        raise FscaleError(f"{image} is not an x86 bzImage")
    start = struct.unpack_from("<H", data, 0x20E)[0] + 0x200
    return data[start : start + 256].split(b"\0")[0].split(b" ")[0].decode()


def of_guest(
    spec: str, steps: Steps, *, modules: Path | None = None, tree: Path | None = None
) -> Kernel:
    """The kernel that the user named for a guest; see `resolve`.

    Raises:
        FscaleError: no guest can boot it.
    """
    kernel = resolve(spec, steps, modules=modules, tree=tree)
    if kernel.no_guest:
        raise FscaleError(kernel.no_guest)
    return kernel


def resolve(
    spec: str, steps: Steps, *, modules: Path | None = None, tree: Path | None = None
) -> Kernel:
    """The kernel that the user named, for a guest or for a machine.

    `spec` is a Debian suite (`bookworm`, `trixie`, or `6.1`, `6.12`), `SUITE:PACKAGE`, a .deb, a
    directory of a built tree, or a bzImage. `modules` names the modules (`lib/modules/RELEASE`, or
    a .deb with them) of a bzImage, or of a .deb without any. `tree` is a built tree and takes
    precedence.
    """
    spec = ALIASES.get(spec, spec)
    suite, _, package = spec.partition(":")
    path = Path(spec)
    if modules is not None and (tree is not None or suite in SUITES or filetest.is_dir(path)):
        raise _has_own(modules, tree or spec)
    if tree is not None:
        return from_tree(tree, steps)
    if suite in SUITES:
        return from_debian(suite, package or None, steps)
    if filetest.is_dir(path):
        return from_tree(path, steps)
    if filetest.is_file(path) and path.suffix == ".deb":
        return from_deb(path, modules, steps)
    if filetest.is_file(path):
        return from_image(path, modules, steps)
    raise FscaleError(
        f"unknown kernel {spec}; give {', '.join([*SUITES, *ALIASES])}, SUITE:PACKAGE, a .deb, "
        "a bzImage or the directory of a built kernel"
    )


def module_of(kernel: Kernel, name: str) -> bytes | None:
    """A kernel's module by its name, uncompressed; None if it is built in or does not exist."""
    path = _listed(kernel).get(name)
    if kernel.modules is None or path is None:
        return None
    packed = _member(kernel.modules, f"{kernel.release}/{path}")
    return decompress(packed) or packed


def lacking(kernel: Kernel, filesystems: Iterable[str]) -> list[str]:
    """Return the file systems that a kernel certainly lacks: no module, and not even the name."""
    image = kernel.image.read_bytes()
    elf = vmlinux.extract(image) if kernel.image.name == "bzImage" else image
    if elf is None:
        return []
    aliases = _text(kernel, "modules.alias")
    return [
        name
        for name in filesystems
        if not _mentions(elf, name)
        and name not in _listed(kernel)
        and f"alias fs-{name} " not in aliases  # ext4 is ext2 and ext3, too
    ]


def _mentions(elf: bytes, filesystem: str) -> bool:
    """Whether a kernel contains the name, as it does where the file system is built in."""
    return f"{filesystem}\0".encode() in elf


def _text(kernel: Kernel, name: str) -> str:
    """A file of lib/modules/RELEASE; empty if the kernel has no modules."""
    if kernel.modules is None:
        return ""
    return _member(kernel.modules, f"{kernel.release}/{name}").decode()


def _listed(kernel: Kernel) -> dict[str, str]:
    """The modules of a kernel: name -> path below lib/modules/RELEASE."""
    lines = _text(kernel, "modules.dep").splitlines()
    paths = [line.partition(":")[0] for line in lines]
    return {initramfs.module_name(path): path for path in paths}


def _member(archive: Path, path: str) -> bytes:
    argv = [need("unsquashfs", "squashfs-tools"), "-cat", str(archive), path]
    done = subprocess.run(argv, capture_output=True, check=False)
    if done.returncode:
        raise FscaleError(f"{archive}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def from_debian(suite: str, package: str | None, steps: Steps) -> Kernel:
    """Debian's newest kernel of a suite; the package lists are updated at most once a day."""
    if package is None:
        known = cache_root() / "kernel" / f"{suite}.latest"
        if recent(known):
            package = known.read_text().strip()
        else:
            package = Apt(suite, steps).latest_kernel()
            known.parent.mkdir(parents=True, exist_ok=True)
            known.write_text(package + "\n")
    name = package

    def fetch(directory: Path) -> list[Path]:
        apt = Apt(suite, steps)
        return apt.download(apt.kernel_parts(name), directory)

    return _load(
        f"Debian {suite} {package}",
        digest("debian", suite, package),
        lambda stage: _unpack(fetch(stage), stage, steps),
        steps,
    )


def from_deb(path: Path, modules: Path | None, steps: Steps) -> Kernel:
    """A kernel image package by its file, with `modules` if another package has them.

    By default that is the package of the same build beside it.
    """
    given, beside = modules, _modules_package(path)
    if modules is None and filetest.is_file(beside):
        modules = beside

    def provide(stage: Path) -> tuple[Path, Path | None]:
        image, own = _unpack([path], stage, steps)
        if own and given:
            raise _has_own(given, path)
        if own or _needs_none(image):
            return image, own
        if modules is None:
            raise FscaleError(
                f"{path.name} contains no modules of {release_of(image)}; put their package, "
                f"{beside.name}, beside it, or give it with --modules (for a side with modules=)"
            )
        if modules.suffix == ".deb":
            _extract([modules], stage / "modules", steps)
            return image, modules_in(stage / "modules", release_of(image), modules)
        return image, modules_in(modules, release_of(image), modules)

    files = [path, modules] if modules and modules.suffix == ".deb" else [path]
    tree = _modules_key(modules) if modules and modules.suffix != ".deb" else None
    return _load(path.stem, digest("deb", file_digest(files), tree), provide, steps)


def _modules_package(image: Path) -> Path:
    """Where the modules of a split image package lie if both were fetched."""
    return image.with_name(re.sub(r"^linux-image-(unsigned-)?", "linux-modules-", image.name))


def _has_own(modules: Path, kernel: Path | str) -> FscaleError:
    return FscaleError(
        f"{kernel} has its own modules: leave {modules} out, or give it with a bzImage, or with a "
        ".deb whose modules are in another package"
    )


def _needs_none(image: Path) -> bool:
    """Whether the configuration beside an image says that nothing is built as a module."""
    config = image.with_name(f"config-{release_of(image)}")
    return config.is_file() and "=m\n" not in config.read_text()


def _extract(debs: Sequence[Path], tree: Path, steps: Steps) -> None:
    for deb in debs:
        steps.run([need("dpkg-deb", "dpkg"), "-x", str(deb), str(tree)], f"unpacking {deb.name}")
    if not (tree / "lib").exists():
        (tree / "lib").symlink_to("usr/lib")


def _unpack(debs: Sequence[Path], stage: Path, steps: Steps) -> tuple[Path, Path | None]:
    """Unpack the packages of a kernel; its bzImage and its lib/modules/RELEASE."""
    tree = stage / "tree"
    names = " and ".join(deb.name for deb in debs)
    _extract(debs, tree, steps)
    places = ("boot/vmlinuz-*", "lib/modules/*/vmlinuz")
    images = sorted(path for place in places for path in tree.glob(place))
    if not images:
        raise FscaleError(
            f"{names} is not a kernel image package: it contains no {' or '.join(places)}"
        )
    modules = tree / "lib" / "modules" / release_of(images[0])
    return images[0], modules if (modules / "modules.order").is_file() else None


def modules_in(directory: Path, release: str, given: Path) -> Path:
    """The modules of a release: `directory` is lib/modules/RELEASE or holds it.

    FscaleError, which names `given`, if they are not there.
    """
    tries = [directory / "lib" / "modules" / release, directory / release, directory]
    found = next((path for path in tries if (path / "modules.order").exists()), None)
    if found is None:
        raise FscaleError(
            f"{given} contains no modules of {release}; give the directory that "
            "`make modules_install INSTALL_MOD_PATH=DIR` filled, or the package of its modules"
        )
    return found


def from_image(image: Path, modules: Path | None, steps: Steps) -> Kernel:
    """A bzImage, with `modules` = lib/modules/RELEASE or a directory that holds it."""
    release = release_of(image)
    directory = modules_in(modules, release, modules) if modules is not None else None
    if directory is None:
        steps.note(
            f"{image} is booted without modules: only what is built into it can be measured; "
            "--modules, or modules= of a side, names the others"
        )
    key = digest("image", file_digest([image]), _modules_key(directory) if directory else None)
    return _load(f"{image.name} {release}", key, lambda _stage: (image, directory), steps)


def from_tree(tree: Path, steps: Steps) -> Kernel:
    """A built kernel tree (or its O= directory)."""
    image = tree / "arch" / "x86" / "boot" / "bzImage"
    if not image.exists():
        raise FscaleError(f"{tree} contains no arch/x86/boot/bzImage; run make there first")
    order = tree / "modules.order"
    built = order.read_text().split() if order.exists() else []
    objects = [tree / Path(name).with_suffix(".ko") for name in built]

    def install(stage: Path) -> tuple[Path, Path | None]:
        if not built:
            return image, None
        steps.run(
            [
                need("make", "make"),
                "-s",
                "-C",
                str(tree.resolve()),
                f"INSTALL_MOD_PATH={stage / 'tree'}",
                "INSTALL_MOD_STRIP=1",
                "modules_install",
            ],
            f"installing the modules of {tree}",
        )
        return image, stage / "tree" / "lib" / "modules" / release_of(image)

    stats = [(str(o), o.stat().st_size, o.stat().st_mtime_ns) for o in objects]
    key = digest("tree", file_digest([image]), stats)
    return _load(f"{tree.resolve().name} {release_of(image)}", key, install, steps)


def _modules_key(modules: Path) -> list[tuple[str, int, int]]:
    files = sorted(path for path in modules.rglob("*.ko*") if path.is_file())
    return [(str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in files]


def _load(
    name: str,
    key: str,
    provide: Callable[[Path], tuple[Path, Path | None]],
    steps: Steps,
) -> Kernel:
    """The cache entry of a kernel, made from what `provide` finds: bzImage and modules."""

    def build(directory: Path) -> None:
        stage = directory / "stage"
        stage.mkdir()
        image, modules = provide(stage)
        shutil.copyfile(image, directory / "bzImage")
        unpacked = vmlinux.extract(image.read_bytes())
        if unpacked and vmlinux.has_pvh_entry(unpacked):
            (directory / "vmlinux").write_bytes(unpacked)
        if modules is not None:
            base = modules.parents[2]
            steps.run(
                [need("depmod", "kmod"), "-b", str(base), modules.name],
                "indexing the modules",
            )
            steps.run(
                [
                    need("mksquashfs", "squashfs-tools"),
                    str(modules),
                    str(directory / "modules.squashfs"),
                    *("-comp", "lz4", "-no-progress", "-quiet", "-keep-as-directory"),
                ],
                f"packing the modules of {modules.name}",
            )
        no_guest = _not_built_in(name, unpacked) if modules is None and unpacked else ""
        try:
            initramfs.build(directory / "initramfs.cpio", modules, steps)
        except initramfs.LacksModule as error:
            no_guest = str(error)
        shutil.rmtree(stage)
        about = {
            "release": release_of(directory / "bzImage"),
            "modules": modules is not None,
            "no_guest": no_guest,
        }
        (directory / "kernel.json").write_text(json.dumps(about))

    made = entry("kernel", f"{key}-{initramfs.RECIPE}-{RECIPE}", build)
    about = json.loads((made / "kernel.json").read_text())
    return Kernel(
        name=name,
        release=about["release"],
        image=next(path for name in IMAGES if (path := made / name).exists()),
        initramfs=made / "initramfs.cpio",
        modules=made / "modules.squashfs" if about["modules"] else None,
        no_guest=about["no_guest"],
    )


def _not_built_in(name: str, elf: bytes) -> str:
    """Why a kernel without modules can be no guest; empty if it can."""
    missing = [needed for needed in initramfs.FILESYSTEMS if not _mentions(elf, needed)]
    if not missing:
        return ""
    return (
        f"{name} has no {', '.join(missing)} built in, which every guest needs; give its modules "
        "with --modules (for a side with modules=)"
    )


def version(release: str) -> tuple[int, int]:
    """(major, minor) of a release string."""
    version = re.match(r"(\d+)\.(\d+)", release)
    if not version:
        raise FscaleError(f"{release} is not a kernel release such as 6.12.1")
    return int(version[1]), int(version[2])
