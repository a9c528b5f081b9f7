# SPDX-License-Identifier: GPL-2.0-only
"""What tests of pages share."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser import launched


@pytest.fixture(scope="module", params=["chromium", "firefox"])
def browser(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """Each browser in turn opens the pages of a module."""
    with launched(tmp_path_factory.mktemp(request.param), request.param) as driver:
        yield driver
