# SPDX-License-Identifier: GPL-2.0-only
"""The pure parts that lanefs's module and tools share, under AddressSanitizer and UBSan."""

import subprocess

import pytest

from fscale.model import paths
from tests.support import lanefs_image as lanefs

SOURCES = paths.ROOT / "lanefs/tests"
TESTS = sorted(path.stem for path in SOURCES.glob("test_*.c"))
THREADS = sorted(path.stem for path in SOURCES.glob("threads_*.c"))


@pytest.mark.parametrize("name", TESTS)
def test_unit(name):
    lanefs.build("tests")
    done = subprocess.run(
        [lanefs.BUILD / "san" / name], check=False, capture_output=True, text=True
    )
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", THREADS)
def test_threads(name):
    """The thread sanitizer has nothing to say, and something where a race was planted."""
    lanefs.build("tests")
    for planted in ("", "_planted"):
        done = subprocess.run(
            [lanefs.BUILD / "tsan" / f"{name}{planted}"],
            check=False,
            capture_output=True,
            text=True,
        )
        assert ("data race" in done.stderr) == bool(planted), done.stderr
        assert (done.returncode != 0) == bool(planted), done.stderr


def test_all_are_there():
    assert {"test_hashes", "test_extents", "test_leaf", "test_xattrs", "test_cut"} <= set(TESTS)
    assert {"test_slot_orders", "test_joinlist_orders"} <= set(TESTS)
    assert THREADS == ["threads_join"]
