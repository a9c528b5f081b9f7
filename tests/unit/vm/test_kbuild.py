# SPDX-License-Identifier: GPL-2.0-only
"""Which source package belongs to a suite's kernel."""

import pytest

from fscale.model.errors import FscaleError
from fscale.vm.kbuild import source_version


def never() -> str:
    raise AssertionError("a released suite needs no look-up")


@pytest.mark.parametrize(("suite", "version"), [("bookworm", "6.1"), ("trixie", "6.12")])
def test_a_released_suite_keeps_its_version(suite: str, version: str) -> None:
    assert source_version(suite, never) == version


def test_the_version_of_another_is_that_of_its_newest_image() -> None:
    assert source_version("sid", lambda: "linux-image-7.2.13+deb14-amd64") == "7.2"


def test_an_image_without_a_version_is_refused() -> None:
    with pytest.raises(FscaleError, match="linux-image-amd64"):
        source_version("sid", lambda: "linux-image-amd64")
