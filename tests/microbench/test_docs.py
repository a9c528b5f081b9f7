# SPDX-License-Identifier: GPL-2.0-only
"""The page of workloads and the manual page say what the program does."""

import re
import subprocess
import sys

from tests.support import bench


def test_page_is_current():
    bench.build("all")
    argv = [
        sys.executable,
        str(bench.ROOT / "microbench/docs.py"),
        "--bench",
        str(bench.BENCH),
    ]
    made = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    page = bench.ROOT / "docs/reference/workloads.md"
    assert page.read_text() == made, "make -C microbench docs"


def test_manual_names_every_option():
    bench.build("all")
    said = subprocess.run([bench.BENCH, "--help"], check=True, capture_output=True, text=True)
    manual = (bench.ROOT / "microbench/fscale-bench.1").read_text().replace("\\-", "-")
    options = set(re.findall(r"--[a-z-]+", said.stdout))
    assert len(options) > 15
    assert options <= set(re.findall(r"--[a-z-]+", manual))
