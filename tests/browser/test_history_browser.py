# SPDX-License-Identifier: GPL-2.0-only
"""The site of a history in headless Chromium: it answers, stays at home, and fits."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.support.ui import WebDriverWait
from typer.testing import CliRunner

from fscale.cli import app
from tests.browser import LOADED, By, accessible, drawn, media, show
from tests.support.build_once import build_once
from tests.support.histories import STEP, stepping, write_history

WIDTHS = (360, 768, 1280, 2560)
COUNT = 60
CORES = (1, 2)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_once(tmp_path_factory, "history", history_site)


def history_site(root: Path) -> Path:
    """Of many runs on one host and three on another."""
    write_history(root / "runs", COUNT, stepping)
    write_history(root / "runs", 3, host="other")
    arguments = ["history", "report", str(root / "runs"), "--output", str(root / "site")]
    CliRunner().invoke(app, arguments, catch_exceptions=False)
    return root / "site"


@pytest.fixture(scope="module")
def page(site: Path) -> Path:
    """MWCL on ext4, which loses a fifth at two cores."""
    found = [p for p in site.glob("series/MWCL-ext4-*.html") if "host-059" in p.read_text()]
    return found[0]


@pytest.fixture
def browser(launch: Callable[[str], Any]) -> Any:
    return launch("chromium")


@pytest.fixture(autouse=True)
def silent(browser: Any, site: Path) -> Iterator[None]:
    """After each test: nothing on the console, nothing from outside the site's directory."""
    browser.get_log("browser")
    yield
    assert browser.get_log("browser") == []
    names = browser.execute_script(LOADED)
    assert [n for n in names if not n.startswith(("data:", site.as_uri()))] == []


def handles(browser: Any, figure: str = "cores-2") -> list[Any]:
    return list(browser.find_elements(By.CSS_SELECTOR, f"#{figure} .handles path"))


def choose(browser: Any, name: str, value: str) -> None:
    browser.find_element(By.CSS_SELECTOR, f"[name={name}] option[value='{value}']").click()
    drawn(browser)


def press(browser: Any, *keys: str) -> None:
    ActionChains(browser).send_keys(*keys).perform()
    drawn(browser)


def focused(browser: Any) -> str:
    return str(browser.execute_script("return document.activeElement.ariaLabel"))


def fragment(browser: Any) -> str:
    return str(browser.execute_script("return decodeURIComponent(location.hash.slice(1))"))


def test_every_run_is_a_point_that_says_what_it_is(browser: Any, page: Path) -> None:
    show(browser, page)
    points = handles(browser)
    assert len(points) == COUNT
    said = points[STEP].get_attribute("aria-label")
    assert said.startswith("host-012, 2026-03-13, kernel 6.13.0: 1")
    assert said.endswith("k) ops/s, 3 repetitions")
    for name, count in (("edges", 1), ("flats", 2), ("sizes", 1)):
        found = browser.find_elements(By.CSS_SELECTOR, f"#cores-2 .chart .{name} > *")
        assert len(found) == count, name
    assert not browser.find_elements(By.CSS_SELECTOR, "#cores-1 .chart .edges > *")


def test_the_step_stands_between_its_runs(browser: Any, page: Path) -> None:
    show(browser, page)
    (edge,) = browser.find_elements(By.CSS_SELECTOR, "#cores-2 .chart .edges > *")
    script = "const b = arguments[0].getBoundingClientRect(); return b.x + b.width / 2"
    before, after = (
        browser.execute_script(script, h) for h in handles(browser)[STEP - 1 : STEP + 1]
    )
    assert before < browser.execute_script(script, edge) < after


def test_hover_tells_the_run(browser: Any, page: Path) -> None:
    show(browser, page)
    point = handles(browser)[STEP]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", point)
    ActionChains(browser).move_to_element(point).perform()
    tip = browser.find_element(By.ID, "tip")
    assert tip.text == point.get_attribute("aria-label")
    ActionChains(browser).move_to_element(browser.find_element(By.ID, "how")).perform()
    assert not tip.is_displayed()


def test_the_keyboard_alone_does_it_all(browser: Any, page: Path) -> None:
    show(browser, page)
    for _ in range(20):
        press(browser, Keys.TAB)
        if focused(browser).startswith("host-000"):
            break
    assert browser.find_element(By.ID, "tip").is_displayed()
    press(browser, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert focused(browser).startswith("host-002")
    one = focused(browser)
    press(browser, Keys.ARROW_DOWN)
    assert focused(browser).startswith("host-002")
    assert focused(browser) != one
    press(browser, Keys.END)
    assert focused(browser).startswith(f"host-{COUNT - 1:03}")
    press(browser, Keys.HOME)
    assert focused(browser).startswith("host-000")
    press(browser, Keys.ESCAPE)
    assert not browser.find_element(By.ID, "tip").is_displayed()
    press(browser, Keys.ENTER)
    assert fragment(browser) == "run-0"
    row = browser.find_element(By.CSS_SELECTOR, "tr:target")
    assert row.text.startswith("host-000")


def test_a_tab_stop_a_drawing(browser: Any, page: Path) -> None:
    show(browser, page)
    assert len(browser.find_elements(By.CSS_SELECTOR, '.handles path[tabindex="0"]')) == len(CORES)


def test_the_latest_runs_alone_and_the_axis_from_zero(browser: Any, page: Path) -> None:
    show(browser, page)
    ticks = """return [...document.querySelectorAll("#cores-2 .chart .role-axis-label text")].map(
        t => parseFloat(t.textContent))"""
    assert 0 not in browser.execute_script(ticks)
    choose(browser, "latest", "20")
    assert len(handles(browser)) == 20
    assert handles(browser)[0].get_attribute("aria-label").startswith("host-040")
    browser.find_element(By.CSS_SELECTOR, "[name=zero]").click()
    drawn(browser)
    assert 0 in browser.execute_script(ticks)
    choose(browser, "latest", "0")
    assert len(handles(browser)) == COUNT


def test_the_overview_leads_to_the_series(browser: Any, site: Path) -> None:
    show(browser, site / "index.html")
    browser.find_element(By.CSS_SELECTOR, "#changes tbody a").click()
    drawn(browser)
    assert fragment(browser) == "cores-2"
    assert browser.find_element(By.TAG_NAME, "h1").text.endswith(" on ext4")
    browser.find_element(By.CSS_SELECTOR, ".trail a").click()
    drawn(browser)
    assert browser.current_url.endswith("/index.html")


def rows(browser: Any, section: str) -> list[str]:
    script = """return [...document.querySelectorAll(arguments[0])].filter(r => !r.hidden)
        .map(r => r.textContent)"""
    return list(browser.execute_script(script, f"#{section} tbody tr"))


def test_filters_list_what_is_asked_for_and_the_address_keeps_them(
    browser: Any, site: Path
) -> None:
    show(browser, site / "index.html")
    assert (len(rows(browser, "changes")), len(rows(browser, "series"))) == (2, 16)
    choose(browser, "workload", "MWCL")
    choose(browser, "cores", "2")
    assert (len(rows(browser, "changes")), len(rows(browser, "series"))) == (1, 4)
    assert browser.find_element(By.ID, "shown").text == "4 of 16 series"
    assert fragment(browser) == "workload=MWCL&cores=2"
    show(browser, site / "index.html", view="filesystem=xfs&machine=nobody")
    assert (len(rows(browser, "changes")), len(rows(browser, "series"))) == (0, 8)
    browser.find_element(By.ID, "whole").click()
    assert len(rows(browser, "series")) == 16
    assert len(rows(browser, "runs")) == COUNT + 3


def test_changes_are_sorted_by_size(browser: Any, site: Path) -> None:
    show(browser, site / "index.html")
    button = browser.find_elements(By.CSS_SELECTOR, "#changes thead button")[1]
    script = """return [...document.querySelectorAll("#changes td:nth-child(2)")].map(
        c => Number(c.dataset.value))"""
    button.click()
    assert browser.execute_script(script) == sorted(browser.execute_script(script))
    button.click()
    assert browser.execute_script(script) == sorted(browser.execute_script(script), reverse=True)


def test_without_javascript_all_is_shown(browser: Any, site: Path, page: Path) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(page.as_uri())
        plots = browser.find_elements(By.CSS_SELECTOR, "figure svg.plot")
        assert len(plots) == len(CORES)
        assert all(plot.is_displayed() and plot.size["height"] > 100 for plot in plots)
        assert not browser.find_element(By.ID, "controls").is_displayed()
        assert len(browser.find_elements(By.CSS_SELECTOR, "tr[id^=run-]")) == COUNT
        browser.get((site / "index.html").as_uri())
        assert not browser.find_element(By.ID, "filters").is_displayed()
        assert len(browser.find_elements(By.CSS_SELECTOR, "#series tbody tr")) == 16
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("overview", [True, False])
def test_it_fits_the_window(
    browser: Any, site: Path, page: Path, width: int, overview: bool
) -> None:
    show(browser, site / "index.html" if overview else page, width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    script = """return [...document.querySelectorAll("figure.trend")].map(f => [
        f.clientWidth, f.querySelector(".chart svg").getBoundingClientRect().width])"""
    for own, chart in browser.execute_script(script):
        assert 0.9 * min(own, 1600) < chart <= own + 1


def test_it_follows_a_window_that_changes(browser: Any, page: Path) -> None:
    show(browser, page, 1280)
    width = "return document.querySelector('.chart svg').getBoundingClientRect().width"
    wide = browser.execute_script(width)
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 500, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    WebDriverWait(browser, 30, 0.05).until(lambda b: b.execute_script(width) < 500)
    assert wide > 1000
    drawn(browser)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("overview", [True, False])
def test_axe_finds_nothing(
    browser: Any, site: Path, page: Path, scheme: str, overview: bool
) -> None:
    show(browser, site / "index.html" if overview else page, scheme=scheme)
    accessible(browser, scheme)


def test_print_has_the_drawings_and_no_controls(browser: Any, page: Path) -> None:
    show(browser, page, scheme="dark")
    media(browser, "dark", "print")
    assert not browser.find_element(By.ID, "controls").is_displayed()
    assert browser.find_element(By.CSS_SELECTOR, "#cores-1 .chart").is_displayed()
    ink = "return getComputedStyle(document.querySelector('.chart svg text')).fill"
    assert browser.execute_script(ink) == "rgb(27, 27, 27)"
    media(browser)


def test_markup_that_got_in_would_not_act(browser: Any, page: Path, tmp_path: Path) -> None:
    """The browser holds the policy."""
    bad = "<script>window.bad = 1</script><p onclick='window.bad = 2' id='paragraph'>x</p>"
    bad += "<img src='https://example.com/x.png' onerror='window.bad = 3'>"
    bad += "<script src='https://example.com/x.js'></script>"
    changed = page.with_name("changed.html")
    changed.write_text(page.read_text().replace('<main id="main">', f'<main id="main">{bad}'))
    try:
        show(browser, changed)
        browser.find_element(By.ID, "paragraph").click()
        assert browser.execute_script("return window.bad") is None
        assert len(browser.get_log("browser")) >= 4
        show(browser, page)
    finally:
        changed.unlink()
