# SPDX-License-Identifier: GPL-2.0-only
"""The kernel of this machine does what the model says, in both orders."""

import random
import subprocess
import tempfile
from pathlib import Path

import pytest

from fscale.commute import posix
from fscale.commute.generate import generate, pairs
from fscale.model import paths
from tests.support import commute_check as check


@pytest.fixture
def tmpfs():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        yield Path(directory)


def sanitized(program):
    subprocess.run(["make", "-s", "-C", paths.PACKAGE / "commute", "san"], check=True)
    return program.parent / "san" / program.name


@pytest.mark.slow
def test_a_sample_of_all_pairs(tmpfs, monkeypatch):
    monkeypatch.setattr(check, "made", sanitized)
    tests = [test for pair in pairs(list(posix.CALLS)) for test in generate(*pair)]
    assert check.differences(random.Random(1).sample(tests, 600), tmpfs) == {}


def test_a_wrong_model_is_found(tmpfs, monkeypatch):
    tests = list(generate("link", "link"))
    assert check.differences(tests, tmpfs) == {}
    monkeypatch.setitem(posix.CALLS, "link", posix.CALLS["rename"])
    assert check.differences(tests, tmpfs)
