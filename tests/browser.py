# SPDX-License-Identifier: GPL-2.0-only
"""Chromium without a screen, for tests that open a page as a reader would."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("selenium", reason="selenium is missing (make test installs it)")
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By  # noqa: F401
from selenium.webdriver.support.ui import WebDriverWait

BROWSER = Path("/usr/bin/chromium")
DRIVER = Path("/usr/bin/chromedriver")
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
)
DRAWN = "return document.body.dataset.drawn === 'all'"
LOADED = "return performance.getEntriesByType('resource').map(e => e.name)"

needed = pytest.mark.skipif(
    not (BROWSER.exists() and DRIVER.exists()),
    reason="no browser; install Debian's chromium and chromium-driver",
)


@contextmanager
def launched(profile: Path) -> Iterator[Any]:
    """A browser whose files go to `profile`."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={profile}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        yield driver
    finally:
        driver.quit()


def drawn(browser: Any) -> None:
    """Wait until all panels are as the view says."""
    WebDriverWait(browser, 60, 0.05).until(lambda b: b.execute_script(DRAWN))


def media(browser: Any, scheme: str = "light", medium: str = "") -> None:
    """A desktop with this colour scheme; `medium` "print" is paper."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature], "media": medium})


def show(
    browser: Any, html: Path, width: int = 1280, scheme: str = "light", view: str = ""
) -> None:
    """Open the page in a window of this width, on a desktop with this colour scheme.

    `view` is what stands behind the # of the address.
    """
    media(browser, scheme)
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    browser.get("about:blank")
    browser.get(f"{html.as_uri()}#{view}" if view else html.as_uri())
    drawn(browser)


def quiet(browser: Any) -> None:
    """The page said nothing on the console and asked for nothing."""
    assert browser.get_log("browser") == []
    names = browser.execute_script(LOADED)
    assert [name for name in names if not name.startswith("data:")] == []
