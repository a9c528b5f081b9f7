# SPDX-License-Identifier: GPL-2.0-only
"""The kernels of guests, and their modules, read out of an archive."""

import subprocess
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from fscale.model.errors import FscaleError
from fscale.vm.kernel import Kernel, module_of, resolve
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
    (tmp_path / "linux.deb").touch()
    for spec, tree in (
        ("6.1", None),
        (str(tmp_path), None),
        (str(tmp_path / "linux.deb"), None),
        ("6.1", tmp_path),
    ):
        with pytest.raises(FscaleError, match="has its own modules"):
            resolve(spec, steps, modules=tmp_path, tree=tree)
    with pytest.raises(FscaleError, match=r"unknown kernel 6\.none"):
        resolve("6.none", steps, modules=tmp_path)
    (tmp_path / "bzImage").write_bytes(b"none")
    with pytest.raises(FscaleError, match="is not an x86 bzImage"):
        resolve(str(tmp_path / "bzImage"), steps, modules=tmp_path)
