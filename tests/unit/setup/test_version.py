# SPDX-License-Identifier: GPL-2.0-only
"""The packages and the list of changes are of the version that fscale says."""

import re

import pytest

from fscale import __version__
from fscale.model.paths import ROOT


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("CHANGELOG.md", r"^## (\d\S*) \("),
        ("debian/changelog", r"^fscale \((\S+)\)"),
        ("debian/lanefs-dkms.install", r"lanefs-(\S+)"),
    ],
)
def test_the_newest_version_is_this_one(path: str, pattern: str) -> None:
    found = re.search(pattern, (ROOT / path).read_text(), re.MULTILINE)
    assert found is not None
    assert found[1] == __version__
