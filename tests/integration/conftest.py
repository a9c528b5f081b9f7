# SPDX-License-Identifier: GPL-2.0-only
"""What tests that change the machine share."""

from collections.abc import Iterator

import pytest

from fscale.system import powers
from tests.support.runner import hold_machine, restore_machine, state


@pytest.fixture(scope="session", autouse=True)
def whole() -> None:
    """Nothing of a run that was killed is left when the first test begins."""
    if powers.no_mount() is None:
        restore_machine()


@pytest.fixture(scope="module")
def machine() -> Iterator[None]:
    """No run of others comes in between."""
    with hold_machine():
        yield


@pytest.fixture
def unchanged(machine: None) -> Iterator[None]:
    """The test leaves the machine as it was."""
    before = state()
    yield
    assert state() == before
