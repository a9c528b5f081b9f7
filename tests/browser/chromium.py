# SPDX-License-Identifier: GPL-2.0-only
"""Chromium by its own driver."""

from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

BROWSER = Path("/usr/bin/chromium")
DRIVER = Path("/usr/bin/chromedriver")
PATIENCE = 200  # seconds for a script: other tests, and guests, have the CPUs as well
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
)


class Chromium(webdriver.Chrome):
    """Without a screen; its files go to `profile`."""

    needs = (BROWSER, DRIVER)
    packages = ("chromium", "chromium-driver")

    def __init__(self, profile: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = str(BROWSER)
        for flag in FLAGS.split():
            options.add_argument(flag)
        options.add_argument(f"--user-data-dir={profile}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        super().__init__(options=options, service=Service(str(DRIVER)))
        self.set_script_timeout(PATIENCE)

    def emulate(self, scheme: str, medium: str) -> None:
        """A colour scheme of the desktop; a medium ("" is the screen)."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature], "media": medium})

    def resize(self, width: int, height: int) -> None:
        """The page's own size, in CSS pixels."""
        self.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def allow_scripts(self, allowed: bool) -> None:
        """Whether pages may run JavaScript, from the next one on."""
        self.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not allowed})

    def busy(self) -> float:
        """Seconds of CPU time that the page's thread has taken for what is shown since it began."""
        metrics = self.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return float(next(m["value"] for m in metrics if m["name"] == "TaskDuration"))

    def count_time(self) -> None:
        """Let `busy` count threads' CPU time, from the next page on."""
        self.execute_cdp_cmd("Performance.disable", {})
        self.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
