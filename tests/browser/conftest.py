# SPDX-License-Identifier: GPL-2.0-only
"""What tests of pages share."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.browser import launched


@pytest.fixture(scope="session")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Any]]:
    """A browser by its name, which is started once in a worker."""
    running: dict[str, Any] = {}
    with ExitStack() as stack:

        def launch(name: str) -> Any:
            if name not in running:
                profile = tmp_path_factory.mktemp(name)
                running[name] = stack.enter_context(launched(profile, name))
            return running[name]

        yield launch


@pytest.fixture(params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest, launch: Callable[[str], Any]) -> Any:
    """Each browser in turn opens the pages."""
    return launch(request.param)
