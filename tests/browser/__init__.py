# SPDX-License-Identifier: GPL-2.0-only
"""Browsers without a screen, for tests that open a page as a reader would."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_core_python.base import AXE_SCRIPT
from selenium.webdriver.common.by import By  # noqa: F401
from selenium.webdriver.support.ui import WebDriverWait

from tests.browser.chromium import PATIENCE, Chromium
from tests.browser.firefox import Firefox

# Of what a rule finds nothing wrong with, one element is told, for large pages have thousands.
AXE = """axe.run(document, {iframes: false, resultTypes: ["violations"], ...arguments[0]})
    .then(arguments[1])"""
# Only the contrast, of its rules, has to do with the scheme.
RULES: dict[str, dict[str, Any]] = {"light": {}, "dark": {"runOnly": ["color-contrast"]}}
DRAWN = "return document.body.dataset.drawn === 'all'"
LOADED = "return performance.getEntriesByType('resource').map(e => e.name)"
KINDS = {"chromium": Chromium, "firefox": Firefox}
# For tests of what no browser does in its own way: one is enough, and both would cost minutes.
in_one = pytest.mark.parametrize("browser", ["chromium"], indirect=True)


@contextmanager
def launched(profile: Path, name: str = "chromium") -> Iterator[Any]:
    """A browser whose files go to `profile`."""
    kind = KINDS[name]
    if not all(path.exists() for path in kind.needs):
        pytest.skip(f"no browser; install Debian's {' and '.join(kind.packages)}")
    driver = kind(profile)
    try:
        yield driver
    finally:
        driver.quit()


def drawn(browser: Any) -> None:
    """Wait until all panels are as the view says."""
    WebDriverWait(browser, PATIENCE, 0.05).until(lambda b: b.execute_script(DRAWN))


def media(browser: Any, scheme: str = "light", medium: str = "") -> None:
    """A desktop with this colour scheme; `medium` "print" is paper."""
    browser.emulate(scheme, medium)


def show(
    browser: Any, html: Path, width: int = 1280, scheme: str = "light", view: str = ""
) -> None:
    """Open the page in a window of this width, on a desktop with this colour scheme.

    `view` is what stands behind the # of the address.
    """
    media(browser, scheme)
    browser.resize(width, 900)
    browser.get("about:blank")
    browser.get(f"{html.as_uri()}#{view}" if view else html.as_uri())
    drawn(browser)


def quiet(browser: Any) -> None:
    """The page said nothing on the console and asked for nothing."""
    said = browser.get_log("browser")
    assert said == [], said
    names = browser.execute_script(LOADED)
    assert [name for name in names if not name.startswith("data:")] == []


def accessible(browser: Any, scheme: str) -> None:
    """axe finds nothing wrong with the page that is shown; in the dark it looks at contrast."""
    browser.execute_script(AXE_SCRIPT)
    found = browser.execute_async_script(AXE, RULES[scheme])
    told = [(v["id"], v["impact"], v["nodes"][0]["html"][:200]) for v in found["violations"]]
    assert told == []
    assert len(found["passes"]) > (0 if RULES[scheme] else 15)
