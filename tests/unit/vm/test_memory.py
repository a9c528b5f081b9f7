# SPDX-License-Identifier: GPL-2.0-only
"""The memory of guests, as `--memory` gives it."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from fscale.cli import app
from fscale.model.errors import FscaleError
from fscale.system import cgroups
from fscale.vm import memory


def test_a_guest_larger_than_the_groups_limit_is_refused(monkeypatch):
    left = cgroups.Limit(3 << 30, Path("/cg/memory.max"))
    monkeypatch.setattr(cgroups, "memory_left", lambda groups: left)
    memory.check("3G")
    for larger in ("4G", "3073"):
        with pytest.raises(FscaleError, match=rf"\b{larger}\b.* 3072 MiB"):
            memory.check(larger)
    monkeypatch.setattr(cgroups, "memory_left", lambda groups: None)
    memory.check("4G")


WRONG = ["0", "64M", "64", "4096K", "-1G", "-4096", "4X", "1,maxmem=3G", "", "many", "9" * 5000]


@pytest.mark.parametrize("wrong", WRONG)
def test_memory_that_no_guest_boots_with_is_refused(wrong):
    with pytest.raises(FscaleError, match="--memory"):
        memory.mebibytes(wrong)


@pytest.mark.parametrize(
    ("given", "mib"),
    [("128M", 128), ("4G", 4096), ("4g", 4096), ("512 MiB", 512), ("4096", 4096), ("1.5G", 1536)],
)
def test_memory_is_a_size_and_a_number_alone_is_in_mib(given, mib):
    assert memory.mebibytes(given) == mib


@pytest.mark.parametrize("given", ["256M", "256", "64 GiBs"])
@pytest.mark.parametrize(
    "command",
    [
        ["simulate", "--fs", "ext4", "--workload", "MWCM"],
        ["gate", "--base", "ext4", "--new", "ext4:mount=commit=1"],
    ],
)
def test_the_simulator_needs_more(command, given, tmp_path):
    done = CliRunner().invoke(app, [*command, "--output", str(tmp_path / "o"), "--memory", given])
    assert isinstance(done.exception, FscaleError)
    assert "--memory" in str(done.exception)
    assert not (tmp_path / "o").exists()
