# SPDX-License-Identifier: GPL-2.0-only
"""Take the README's picture of a report.

    python -m docs.scripts.picture results/curves docs/img/report.png

It needs Debian's chromium and chromium-driver, and shows the first plots of the run's report. The
figures of its run are in docs/results/data/sixteen-cores.json, which names its command.
"""

import sys
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

from fscale.analysis.report import build

WIDTH, HEIGHT = 1280, 900
FIRST = "document.querySelector('figure[id]').scrollIntoView(); window.scrollBy(0, -72)"
DRAWN = "return document.body.dataset.drawn === 'all'"


def take(html: Path, picture: Path) -> None:
    """Write what a window of WIDTH x HEIGHT pixels shows of the page's first plots."""
    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        browser.set_window_size(WIDTH, HEIGHT)
        browser.get(html.as_uri())
        WebDriverWait(browser, 60).until(lambda page: page.execute_script(DRAWN))
        browser.execute_script(FIRST)
        picture.parent.mkdir(parents=True, exist_ok=True)
        picture.write_bytes(browser.get_screenshot_as_png())
    finally:
        browser.quit()


def main() -> None:
    """Draw the report of a run anew and take its picture."""
    run, picture = Path(sys.argv[1]), Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as place:
        take(build(run, Path(place), plots=False), picture.resolve())


if __name__ == "__main__":
    main()
