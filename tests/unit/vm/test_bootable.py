# SPDX-License-Identifier: GPL-2.0-only
"""Kernels for another machine, by how users name them."""

import struct

import pytest
from rich.console import Console

from fscale.model.errors import FscaleError
from fscale.vm import vmlinux
from fscale.vm.bootable import bootable
from fscale.vm.steps import Steps

STEPS = Steps(Console(stderr=True))


def test_an_installed_kernel_is_its_release() -> None:
    kernel = bootable("6.12.48+deb13-amd64", None, STEPS)
    assert (kernel.release, kernel.image, kernel.modules) == ("6.12.48+deb13-amd64", None, None)


@pytest.mark.parametrize("spec", ["linux", "/no/such/tree", "6.1 -x", "6;reboot", "../6.1"])
def test_what_is_no_kernel_is_refused(spec: str) -> None:
    with pytest.raises(FscaleError, match="unknown kernel"):
        bootable(spec, None, STEPS)


def test_the_build_id_of_a_kernel_is_in_its_notes() -> None:
    note = struct.pack("<III", 4, 3, 3) + b"GNU\0" + b"\xab\xcd\xef"
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF", 2, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    program = struct.pack("<IIQQQQQQ", 4, 0, 120, 0, 0, len(note), len(note), 4)
    assert vmlinux.build_id(head + program + note) == "abcdef"
    other = note.replace(b"GNU", b"Xen")
    assert vmlinux.build_id(head + program + other) is None
