# SPDX-License-Identifier: GPL-2.0-only
"""Take the README's picture of a report.

    python -m docs.scripts.picture docs/results/data/sixteen-cores.json docs/img/report.png

It needs Debian's chromium and chromium-driver, and shows the first screen of the report on the
packed cells (docs.scripts.pack). The report lacks what the packed cells do not have.
"""

import sys
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

from docs.scripts.unpack import unpack
from fscale.analysis.report import build

WIDTH, HEIGHT = 1280, 900
DRAWN = "return document.body.dataset.drawn === 'all'"


def take(html: Path, picture: Path) -> None:
    """Write what a window of WIDTH x HEIGHT pixels shows of the page at first."""
    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        browser.set_window_size(WIDTH, HEIGHT)
        browser.get(html.as_uri())
        WebDriverWait(browser, 60).until(lambda page: page.execute_script(DRAWN))
        picture.parent.mkdir(parents=True, exist_ok=True)
        picture.write_bytes(browser.get_screenshot_as_png())
    finally:
        browser.quit()


def main() -> None:
    """Draw the report of packed cells and take its picture."""
    packed, picture = Path(sys.argv[1]), Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as place:
        run = unpack(packed, Path(place) / "run")
        take(build(run), picture.resolve())


if __name__ == "__main__":
    main()
