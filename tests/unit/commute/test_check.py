# SPDX-License-Identifier: GPL-2.0-only
"""The kernel of this machine does what the model says, in both orders."""

import random
import tempfile
from pathlib import Path

import pytest

from fscale.commute import posix
from fscale.commute.check import differences
from fscale.commute.generate import generate, pairs


@pytest.fixture
def tmpfs():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        yield Path(directory)


def test_a_sample_of_all_pairs(tmpfs):
    tests = [test for pair in pairs(list(posix.CALLS)) for test in generate(*pair)]
    assert differences(random.Random(1).sample(tests, 600), tmpfs) == {}


def test_a_wrong_model_is_found(tmpfs, monkeypatch):
    tests = list(generate("link", "link"))
    assert differences(tests, tmpfs) == {}
    monkeypatch.setitem(posix.CALLS, "link", posix.CALLS["rename"])
    assert differences(tests, tmpfs)
