# SPDX-License-Identifier: GPL-2.0-only
"""A kernel's modules, read out of their archive."""

import subprocess
from pathlib import Path

import pytest

from fscale.vm.kernel import Kernel, module_of

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
