# SPDX-License-Identifier: GPL-2.0-only
"""A workload is one C file, a file system one TOML file: all that lists, runs or draws has it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fscale.model import paths
from tests.support.clone import CODE, copy_clone

pytestmark = [pytest.mark.root, pytest.mark.live]

FILESYSTEM = """
title = "a new file system"
kernel = "tmpfs"
nodev = true
size = "1%"
max_size = "64M"
mount_options = ["size={size}"]
colour = "sky blue"
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository with one more workload and one more file system, built."""
    root = tmp_path_factory.mktemp("copy")
    # What is built is copied, so that what is not new is not compiled again.
    copy_clone(root, *CODE)
    new = (paths.ROOT / "microbench/workloads/DWOL.c").read_text()
    new = new.replace('"DWOL"', '"new"').replace('.title = "', '.title = "Newly o')
    (root / "microbench/workloads/new.c").write_text(new)
    (root / "configs/filesystems/newfs.toml").write_text(FILESYSTEM)
    subprocess.run(["make", "-s", "-C", "microbench"], cwd=root, check=True)
    return root


def fscale(root: Path, *arguments: str) -> str:
    argv = [sys.executable, "-m", "fscale", *arguments]
    return subprocess.run(argv, cwd=root, check=True, capture_output=True, text=True).stdout


def test_list_and_docs_have_it(copy: Path) -> None:
    assert "new" in {w["id"] for w in json.loads(fscale(copy, "list", "workloads", "--json"))}
    systems = json.loads(fscale(copy, "list", "filesystems", "--json"))
    assert "newfs" in {fs["name"] for fs in systems}
    argv = [sys.executable, "microbench/docs.py"]
    page = subprocess.run(argv, cwd=copy, check=True, capture_output=True, text=True).stdout
    assert "| new | Newly o" in page
    assert page.count("| new |") == 2  # among the operations, and with its set-up


def test_run_plots_and_report_have_it(copy: Path, tmp_path: Path) -> None:
    given = ["--workload", "new,DWOL", "--fs", "newfs", "--cores", "1", "--duration", "0.1"]
    fscale(copy, "run", "smoke", *given, "--wait", "300", "--output", str(tmp_path))
    fscale(copy, "report", str(tmp_path))
    page = (tmp_path / "report.html").read_text()
    (group,) = [g for g in page.split('<div class="group"') if "<b>new</b>" in g][:1]
    assert "<h3>Data writes</h3>" in group
    assert "<b>DWOL</b>" in group
    assert "Newly o" in group
    assert "var(--series-6)" in group  # sky blue
    assert (tmp_path / "plots/data-writes.pdf").exists()
