# SPDX-License-Identifier: GPL-2.0-only
"""What tests that change the machine share."""

from collections.abc import Iterator
from typing import Any

import pytest

from fscale.model.paths import is_root
from tests.runner_support import machine_alone, put_back, state


@pytest.fixture(scope="session", autouse=True)
def whole() -> None:
    """Nothing of a run that was killed is left when the first test begins."""
    if is_root():
        put_back()


@pytest.fixture(scope="module")
def machine() -> Iterator[None]:
    """No run of others comes in between."""
    with machine_alone():
        yield


@pytest.fixture
def unchanged(machine: None) -> Iterator[None]:
    """The test leaves the machine as it was."""
    before = state()
    yield
    assert state() == before


@pytest.fixture(scope="module", params=["chromium", "firefox"])
def browser(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """Each browser in turn opens the pages of a module."""
    # Selenium takes half a second to import, which no other test needs to wait for.
    from tests.browser import launched  # noqa: PLC0415

    with launched(tmp_path_factory.mktemp(request.param), request.param) as driver:
        yield driver
