# SPDX-License-Identifier: GPL-2.0-only
"""The wheel in a minimal root of Debian 12: installed by pipx, used and removed (use.sh)."""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
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
        "py.typed",
        "reports/report.css",
        "sim/init.sh",
    ],
)
def test_what_is_no_python_is_in_it(wheel: Path, path: str) -> None:
    assert f"fscale/{path}" in zipfile.ZipFile(wheel).namelist()


def contents(tree: Path, made: Path, backend: Path) -> dict[str, bytes]:
    """The files of the wheel that is made of a tree, without an isolated environment."""
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", made]
    subprocess.run(argv, cwd=tree, env=os.environ | {"PYTHONPATH": str(backend)}, check=True)
    opened = zipfile.ZipFile(next(made.glob("*.whl")))
    return {name: opened.read(name) for name in opened.namelist()}


def test_a_clone_its_archive_and_its_sdist_make_the_same_wheel(tmp_path: Path) -> None:
    if not (paths.ROOT / ".git").exists():
        pytest.skip("an archive is made of a clone only")
    clone, archive, sdist, backend = (tmp_path / n for n in ("clone", "archive", "sdist", "lib"))
    subprocess.run(["git", "clone", "-q", paths.ROOT, clone], check=True)
    git_archive = ["git", "archive", "--prefix=archive/", "-o", tmp_path / "archive.tar", "HEAD"]
    subprocess.run(git_archive, cwd=clone, check=True)
    requires = tomllib.loads((clone / "pyproject.toml").read_text())["build-system"]["requires"]
    pip = [sys.executable, "-m", "pip", "install", "-q", "--target", backend, *requires]
    subprocess.run(pip, check=True)
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path]
    subprocess.run(argv, cwd=clone, env=os.environ | {"PYTHONPATH": str(backend)}, check=True)
    for packed in (tmp_path / "archive.tar", next(tmp_path.glob("*.tar.gz"))):
        with tarfile.open(packed) as opened:
            opened.extractall(tmp_path)
    next(tmp_path.glob("fscale-*/")).rename(sdist)
    of_clone, *others = (
        contents(tree, tmp_path / f"{tree.name}-wheel", backend) for tree in (clone, archive, sdist)
    )
    assert "fscale/microbench/workloads/MWCL.c" in of_clone
    assert all(of_clone == other for other in others)


@pytest.mark.root
@pytest.mark.timeout(900)
def test_it_is_installed_used_and_removed_without_the_repository(wheel: Path) -> None:
    if os.geteuid():
        pytest.skip("a root is made by root only")
    assert use("wheel", "bookworm")
