# SPDX-License-Identifier: GPL-2.0-only
"""The wheel in a minimal root of Debian 12: installed by pipx, used and removed (use.sh)."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from fscale.model import paths
from tests.packages import place, use

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel() -> Path:
    made = place("wheel", "bookworm")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    argv = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", made, paths.ROOT]
    subprocess.run(argv, check=True)
    return next(made.glob("*.whl"))


def test_one_name_is_on_the_import_path(wheel: Path) -> None:
    names = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert names == {"fscale", wheel.name.removesuffix("-py3-none-any.whl") + ".dist-info"}


def test_the_licence_is_in_it(wheel: Path) -> None:
    opened = zipfile.ZipFile(wheel)
    (name,) = [name for name in opened.namelist() if name.endswith("licenses/LICENSE")]
    assert opened.read(name) == (paths.ROOT / "LICENSE").read_bytes()


@pytest.mark.parametrize(
    "path",
    [
        "configs/suites/quick.toml",
        "lanefs/Kbuild",
        "lanefs/kernel/journal/commit.c",
        "lockprofile/locks.bpf.c",
        "microbench/workloads/MWCL.c",
        "reports/report.css",
        "sim/init.sh",
    ],
)
def test_what_is_no_python_is_in_it(wheel: Path, path: str) -> None:
    assert f"fscale/{path}" in zipfile.ZipFile(wheel).namelist()


@pytest.mark.root
@pytest.mark.timeout(900)
def test_it_is_installed_used_and_removed_without_the_repository(wheel: Path) -> None:
    if os.geteuid():
        pytest.skip("a root is made by root only")
    assert use("wheel", "bookworm")
