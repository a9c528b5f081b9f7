# SPDX-License-Identifier: GPL-2.0-only
"""The kernels of guests, and their modules, read out of an archive."""

import subprocess
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from fscale.model.errors import FscaleError
from fscale.vm import initramfs, vmlinux
from fscale.vm import kernel as kernels
from fscale.vm.bootable import bootable
from fscale.vm.kernel import Kernel, module_of, of_guest, resolve
from fscale.vm.steps import Steps

RELEASE = "6.1.0"


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    modules = tmp_path / "lib" / RELEASE
    (modules / "kernel").mkdir(parents=True)
    (modules / "kernel" / "lib-one.ko").write_bytes(b"its content")
    (modules / "modules.dep").write_text("kernel/lib-one.ko: kernel/other.ko\n")
    archive = tmp_path / "modules.squashfs"
    subprocess.run(["mksquashfs", modules.parent, archive, "-quiet", "-no-progress"], check=True)
    return Kernel("made up", RELEASE, tmp_path / "vmlinux", tmp_path / "initramfs", archive)


def test_a_module_is_found_by_its_name(kernel: Kernel) -> None:
    assert module_of(kernel, "lib_one") == b"its content"


@pytest.mark.parametrize("tool", ["gzip", "xz", "zstd"])
def test_a_module_is_unpacked_however_it_is_packed(
    kernel: Kernel, tmp_path: Path, tool: str
) -> None:
    assert kernel.modules is not None
    modules = tmp_path / "lib" / RELEASE
    packed = subprocess.run([tool, "-c"], input=b"another", capture_output=True, check=True).stdout
    (modules / "kernel" / f"lib-two.ko.{tool}").write_bytes(packed)
    (modules / "modules.dep").write_text(f"kernel/lib-two.ko.{tool}:\n")
    argv = ["mksquashfs", modules.parent, kernel.modules, "-noappend", "-quiet", "-no-progress"]
    subprocess.run(argv, check=True)
    assert module_of(kernel, "lib_two") == b"another"


def test_what_is_no_module_is_none(kernel: Kernel) -> None:
    assert module_of(kernel, "other") is None
    assert module_of(Kernel("all built in", RELEASE, *[Path()] * 2, None), "lib_one") is None


def test_modules_are_those_of_an_image_alone(tmp_path: Path) -> None:
    steps = Steps(Console(file=StringIO()))
    for spec, tree in (
        ("6.1", None),
        (str(tmp_path), None),
        ("6.1", tmp_path),
    ):
        with pytest.raises(FscaleError, match="has its own modules"):
            resolve(spec, steps, modules=tmp_path, tree=tree)
    with pytest.raises(FscaleError, match=r"unknown kernel 6\.none"):
        resolve("6.none", steps, modules=tmp_path)
    (tmp_path / "bzImage").write_bytes(b"none")
    with pytest.raises(FscaleError, match="is not an x86 bzImage"):
        resolve(str(tmp_path / "bzImage"), steps, modules=tmp_path)


IMAGE, MODULES = "linux-image-6.1.0", "linux-modules-6.1.0"


def package(place: Path, name: str, files: dict[str, bytes]) -> Path:
    tree = place / name
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(
        f"Package: {name}\nVersion: 1\nArchitecture: amd64\nMaintainer: A <a@b>\nDescription: x\n"
    )
    for file, content in files.items():
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        (tree / file).write_bytes(content)
    made = place / f"{name}.deb"
    subprocess.run(["dpkg-deb", "-b", tree, made], check=True, capture_output=True)
    return made


def image() -> bytes:
    data = bytearray(4096)
    data[0x202:0x206] = b"HdrS"
    data[0x20E:0x210] = (0x300).to_bytes(2, "little")
    data[0x500:0x510] = f"{RELEASE} (me)".encode().ljust(16, b"\0")
    return bytes(data)


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path | None]:
    """The modules that initramfs images are built with; nothing else is made of kernels."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found: list[Path | None] = []

    def build(target: Path, modules: Path | None, steps: Steps) -> None:
        found.append(modules)
        target.write_bytes(b"")

    monkeypatch.setattr(initramfs, "build", build)
    return found


ORDER = {f"lib/modules/{RELEASE}/modules.order": b"kernel/a.ko\n"}


def test_a_package_without_its_modules_takes_them_from_another(
    tmp_path: Path, built: list[Path | None]
) -> None:
    steps = Steps(Console(file=StringIO()))
    spec = str(package(tmp_path, IMAGE, {f"boot/vmlinuz-{RELEASE}": image()}))
    with pytest.raises(FscaleError, match=r"no modules of 6\.1\.0.*linux-modules-6\.1\.0\.deb"):
        resolve(spec, steps)
    modules = package(tmp_path, MODULES, ORDER)
    assert resolve(spec, steps).modules is not None  # it lies beside the image
    modules = modules.rename(tmp_path / "another.deb")
    assert resolve(spec, steps, modules=modules).modules is not None
    assert resolve(spec, steps, modules=tmp_path / MODULES).modules is not None
    assert all(built)
    with pytest.raises(FscaleError, match=r"linux-image.* contains no modules of 6\.1\.0"):
        resolve(spec, steps, modules=Path(spec))


def test_a_package_with_its_modules_takes_no_others(
    tmp_path: Path, built: list[Path | None]
) -> None:
    steps = Steps(Console(file=StringIO()))
    spec = str(package(tmp_path, IMAGE, {f"boot/vmlinuz-{RELEASE}": image(), **ORDER}))
    assert resolve(spec, steps).modules is not None
    with pytest.raises(FscaleError, match="has its own modules"):
        resolve(spec, steps, modules=tmp_path)
    assert len(built) == 1


@pytest.mark.parametrize("config", [b"CONFIG_EXT4_FS=y\n", b"CONFIG_EXT4_FS=m\n"])
def test_a_kernel_without_modules_says_so_in_its_configuration(
    tmp_path: Path, built: list[Path | None], config: bytes
) -> None:
    steps = Steps(Console(file=StringIO()))
    files = {f"boot/vmlinuz-{RELEASE}": image(), f"boot/config-{RELEASE}": config}
    spec = str(package(tmp_path, IMAGE, files))
    if b"=m" in config:
        with pytest.raises(FscaleError, match="--modules"):
            resolve(spec, steps)
    else:
        assert resolve(spec, steps).modules is None
        assert built == [None]


@pytest.mark.parametrize(
    ("content", "modules", "absent"),
    [(b"..ext3\0", [], False), (b"..ext3 data\0", [], True), (b"..", ["ext3", "ext4"], False)],
)
def test_a_file_system_that_a_kernel_lacks(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    content: bytes,
    modules: list[str],
    absent: bool,
) -> None:
    (tmp_path / "vmlinux").write_bytes(content)
    files = {
        "modules.dep": "".join(f"kernel/{name}.ko.xz: kernel/crc.ko.xz\n" for name in modules[1:]),
        "modules.alias": "".join(f"alias fs-{name} a\n" for name in modules[:1]),
    }
    monkeypatch.setattr(kernels, "_member", lambda _, path: files[Path(path).name].encode())
    archive = tmp_path / "modules.squashfs"
    made = Kernel("a", RELEASE, tmp_path / "vmlinux", tmp_path / "initramfs", archive)
    assert kernels.lacking(made, ["ext3", *modules]) == ["ext3"] * absent


def test_an_image_that_cannot_be_a_guest_is_refused_before_its_boot(
    tmp_path: Path, built: list[Path | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bzImage").write_bytes(image())
    package(tmp_path, MODULES, ORDER)
    monkeypatch.setattr(vmlinux, "extract", lambda _image: b"overlay\0")
    monkeypatch.setattr(vmlinux, "has_pvh_entry", lambda _elf: False)
    monkeypatch.setattr(vmlinux, "build_id", lambda _elf: None)
    spec, steps = str(tmp_path / "bzImage"), Steps(Console(file=StringIO()))
    with pytest.raises(FscaleError, match=f"bzImage {RELEASE} has no squashfs, 9p built in"):
        of_guest(spec, steps)
    assert built == [None]
    # A machine, which has an initramfs of its own, needs no more than the modules of a kernel.
    assert bootable(spec, tmp_path / MODULES, steps).release == RELEASE


def test_an_image_alone_is_said_to_have_no_modules(
    tmp_path: Path, built: list[Path | None]
) -> None:
    said = StringIO()
    steps = Steps(Console(file=said, width=200))
    (tmp_path / "bzImage").write_bytes(image())
    package(tmp_path, MODULES, ORDER)
    resolve(str(tmp_path / "bzImage"), steps, modules=tmp_path / MODULES)
    assert "without modules" not in said.getvalue()
    resolve(str(tmp_path / "bzImage"), steps)
    assert "without modules" in said.getvalue()
    assert [bool(modules) for modules in built] == [True, False]


def test_a_kernel_that_no_guest_can_boot_is_one_for_a_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    steps = Steps(Console(file=StringIO()))
    files = {f"boot/vmlinuz-{RELEASE}": image(), f"boot/config-{RELEASE}": b""}
    order = f"lib/modules/{RELEASE}/modules"
    files |= {f"{order}.order": b"", f"{order}.builtin": b""}
    spec = str(package(tmp_path, IMAGE, files))
    assert bootable(spec, None, steps).release == RELEASE
    with pytest.raises(FscaleError, match="no virtio_pci, which every guest needs"):
        of_guest(spec, steps)
