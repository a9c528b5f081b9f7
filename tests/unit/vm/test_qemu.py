# SPDX-License-Identifier: GPL-2.0-only
"""Which QEMU is used."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from fscale.vm import qemu
from fscale.vm.steps import Steps
from tests.support.files import write_program


def host_qemu(tmp_path: Path, sandbox: bool, version: str = "10.0.1") -> Path:
    """A QEMU of the host that was built with or without its sandbox."""
    script = tmp_path / "qemu-system-x86_64"
    refuse = "" if sandbox else 'case "$*" in *-sandbox*) exit 1 ;; esac\n'
    return write_program(script, f"#!/bin/sh\n{refuse}echo QEMU emulator version {version}\n")


@pytest.mark.parametrize(
    ("sandbox", "version", "used"),
    [(True, "10.0.1", True), (False, "10.0.1", False), (True, "7.2.0", False)],
)
def test_the_hosts_qemu_is_used_when_it_is_new_and_can_be_confined(
    tmp_path, monkeypatch, sandbox, version, used
):
    script = host_qemu(tmp_path, sandbox, version)
    monkeypatch.setattr(qemu, "TOOL_PATH", str(tmp_path))

    def unpacked(*_: object) -> Path:
        raise LookupError("Debian's is unpacked")

    monkeypatch.setattr(qemu, "entry", unpacked)
    steps = Steps(Console(file=StringIO()))
    if used:
        assert qemu.find(steps).argv == (str(script),)
    else:
        with pytest.raises(LookupError):
            qemu.find(steps)
