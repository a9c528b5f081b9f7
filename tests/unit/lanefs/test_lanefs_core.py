# SPDX-License-Identifier: GPL-2.0-only
"""The pure parts that lanefs's module and tools share, under AddressSanitizer and UBSan."""

import subprocess

import lanefs_image as lanefs
import pytest

TESTS = sorted(path.stem for path in (lanefs.ROOT / "lanefs" / "tests").glob("test_*.c"))


@pytest.mark.parametrize("name", TESTS)
def test_unit(name):
    lanefs.build("tests")
    done = subprocess.run(
        [lanefs.BUILD / "san" / name], check=False, capture_output=True, text=True
    )
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr


def test_all_are_there():
    assert {"test_hashes", "test_extents", "test_leaf", "test_xattrs", "test_cut"} <= set(TESTS)
