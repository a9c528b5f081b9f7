# SPDX-License-Identifier: GPL-2.0-only
"""Opens report.html in headless Chromium, as a reader would, without a network."""

import re
from pathlib import Path
from typing import Any

import pytest

from fscale.analysis.report import build
from tests.browser import By, in_one, quiet, show
from tests.support.build_once import build_once
from tests.support.synthetic import grid, write_run

WORKLOADS = ["DRBL", "DWOM", "MRPL", "MWCM", "MWUM", "DRBM_bg"]
FILESYSTEMS = ("tmpfs", "ext4", "ext4-nj", "xfs", "btrfs")


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_once(tmp_path_factory, "report", written)


def written(directory: Path) -> Path:
    """Four file systems on up to 8 cores; a cell is disturbed, one failed."""
    cells = grid((1, 2, 4, 8), 3, WORKLOADS, FILESYSTEMS)
    cells[0] = cells[0].model_copy(update={"disturbed": "others used 0.4 CPU"})
    cells[30] = cells[30].model_copy(update={"status": "error", "reason": "a" * 200})
    write_run(directory, cells, workloads=WORKLOADS, filesystems=FILESYSTEMS, cpus=8)
    return build(directory)


def test_no_console_message_and_no_request(browser: Any, html: Path) -> None:
    browser.get_log("browser")
    show(browser, html)
    quiet(browser)


def test_every_panel_is_drawn(browser: Any, html: Path) -> None:
    show(browser, html)
    panels = browser.execute_script(
        """return [...document.querySelectorAll("figure")].map(figure => {
            const svg = figure.querySelector(".chart svg") ?? figure.querySelector("svg");
            const box = svg.getBoundingClientRect(), still = figure.querySelector("svg.plot");
            const drawn = [...svg.querySelectorAll("path")].filter(
                path => path.getBoundingClientRect().width > 0);
            return {id: figure.id, width: box.width, height: box.height, paths: drawn.length,
                    curves: svg.querySelectorAll(".lines path").length,
                    still: still.querySelectorAll("[id*=-curve-] path").length,
                    label: (svg.closest("[aria-label]") ?? svg).getAttribute("aria-label")};
        })"""
    )
    curves = [p for p in panels if p["id"]]
    assert len(curves) == len(WORKLOADS)
    assert len(panels) == 2 * len(WORKLOADS)  # and the CPU bars
    for panel in panels:
        assert panel["width"] > 200
        assert panel["height"] > 100
        assert panel["paths"] > 10
        assert panel["label"]
    assert {p["curves"] for p in curves} == {p["still"] for p in curves} == {len(FILESYSTEMS)}


CELLS = """return [...document.querySelectorAll(".answer td")].map(cell => {
    const box = cell.getBoundingClientRect(), curve = cell.querySelector("polyline:not(.linear)");
    return {text: cell.textContent, top: box.top, coloured: cell.style.background !== "",
        drawn: curve.getBoundingClientRect().width, cut: cell.scrollWidth > cell.clientWidth,
        leads: [...cell.querySelectorAll("a")].map(a => document.querySelector(a.hash)?.tagName)};
})"""


@pytest.mark.parametrize("width", [1400, 390])
def test_the_first_screen_answers(browser: Any, html: Path, width: int) -> None:
    show(browser, html, width)
    cells = browser.execute_script(CELLS)
    assert len(cells) == len(WORKLOADS) * len(FILESYSTEMS)
    assert cells[0]["top"] < 450  # half of the window's height
    for cell in cells:
        assert re.search(r"\d\u00d7\*? (scales|gains|falls|no change|in doubt)", cell["text"])
        assert cell["coloured"] == ("in doubt" not in cell["text"])
        assert cell["drawn"] > 40
        assert not cell["cut"]
        assert cell["leads"] == ["FIGURE"]


@pytest.mark.parametrize("width", [1400, 390])
def test_curves_are_large(browser: Any, html: Path, width: int) -> None:
    show(browser, html, width)
    size = """return [...document.querySelectorAll("figure[id] .chart svg")].map(
        svg => [svg.getBoundingClientRect().width, svg.getBoundingClientRect().height])"""
    for wide, high in browser.execute_script(size):
        assert wide > 330
        assert high > 230


@in_one
def test_the_table_of_figures_fits_a_desktop(browser: Any, html: Path) -> None:
    show(browser, html, 1400)
    box = "const box = document.querySelector('#figures-table').parentElement;"
    assert browser.execute_script(f"{box} return box.scrollWidth <= box.clientWidth")


@in_one
def test_linear_scaling_ends_in_the_plot_or_says_that_it_goes_on(browser: Any, html: Path) -> None:
    show(browser, html)
    ends = browser.execute_script(
        """return [...document.querySelectorAll("figure[id] .chart svg")].map(svg => {
            const line = svg.querySelector(".ideal path").getBoundingClientRect();
            const plot = svg.querySelector(".role-frame .background").getBoundingClientRect();
            return [line.top >= plot.top - 1, svg.querySelectorAll(".beyond path").length];
        })"""
    )
    assert [inside == (beyond == 0) for inside, beyond in ends] == [True] * len(WORKLOADS)
    assert {beyond for _, beyond in ends} == {0, 1}


@in_one
def test_plot_texts_do_not_overlap(browser: Any, html: Path) -> None:
    show(browser, html)
    overlaps = browser.execute_script(
        """const found = [], shown = e => e.textContent && getComputedStyle(e).opacity > 0;
        for (const svg of document.querySelectorAll("figure .chart svg, .bars svg")) {
            const frame = svg.getBoundingClientRect();
            const boxes = [...svg.querySelectorAll("text")].filter(shown).map(
                text => ({text: text.textContent, box: text.getBoundingClientRect()}));
            boxes.forEach(({text, box}, i) => {
                if (box.left < frame.left - 1 || box.right > frame.right + 1 ||
                    box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
                    found.push([text, "is cut"]);
                for (const other of boxes.slice(i + 1))
                    if (box.left < other.box.right && other.box.left < box.right &&
                        box.top + 2 < other.box.bottom && other.box.top + 2 < box.bottom)
                        found.push([text, other.text]);
            });
        }
        return found"""
    )
    assert overlaps == []


def column(browser: Any, number: int) -> list[str]:
    cells = f"#figures-table tbody tr > :nth-child({number})"
    script = "return [...document.querySelectorAll(arguments[0])].map(c => c.dataset.value)"
    return list(browser.execute_script(script, cells))


@in_one
def test_table_sorts_by_value_both_ways(browser: Any, html: Path) -> None:
    show(browser, html)
    buttons = browser.find_elements(By.CSS_SELECTOR, "#figures-table thead button")
    header = buttons[3]
    assert header.text.startswith("median")
    before = [float(v) for v in column(browser, 4)]
    assert before != sorted(before)
    header.click()
    assert [float(v) for v in column(browser, 4)] == sorted(before)
    header.click()
    assert [float(v) for v in column(browser, 4)] == sorted(before, reverse=True)
    sort = browser.find_elements(By.CSS_SELECTOR, "#figures-table th[aria-sort]")
    assert [s.get_attribute("aria-sort") for s in sort] == ["descending"]
    titles = [button.text for button in buttons]
    place = next(i for i, title in enumerate(titles) if title.startswith("speed-up"))
    buttons[place].click()
    speedups = column(browser, place + 1)
    known = [float(v) for v in speedups if v]
    assert known == sorted(known)
    assert "" in speedups
    assert speedups[len(known) :] == [""] * (len(speedups) - len(known))


@in_one
def test_filter_keeps_matching_rows(browser: Any, html: Path) -> None:
    show(browser, html)
    browser.find_element(By.ID, "filter").send_keys("mwcm ext4")
    rows = browser.find_elements(By.CSS_SELECTOR, "#figures-table tbody tr:not([hidden])")
    assert {r.text.split()[0] for r in rows} == {"MWCM"}
    assert {r.text.split()[1] for r in rows} == {"ext4", "ext4-nj"}
    assert browser.find_element(By.ID, "shown").text.startswith(f"{len(rows)} of")


@pytest.mark.parametrize("width", [1280, 400])
def test_page_never_scrolls_sideways(browser: Any, html: Path, width: int) -> None:
    show(browser, html, width)
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


CONTRAST = """
const probe = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
function rgb(colour) {
    probe.clearRect(0, 0, 1, 1);
    probe.fillStyle = colour;
    probe.fillRect(0, 0, 1, 1);
    return [...probe.getImageData(0, 0, 1, 1).data];
}
function luminance(colour) {
    const [r, g, b] = rgb(colour).map(c => c / 255).map(
        c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function contrast(one, two) {
    const [low, high] = [luminance(one), luminance(two)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
}
function behind(element) {
    for (; element; element = element.parentElement) {
        const colour = getComputedStyle(element).backgroundColor;
        if (rgb(colour)[3] > 0)
            return colour;
    }
    return "white";
}
const found = {};
function note(kind, ratio, what) {
    if (!(kind in found) || ratio < found[kind][0])
        found[kind] = [ratio, what];
}
document.querySelectorAll("p, li, a, td, th, h1, h2, h3, h4, dt, dd, button, figcaption, code")
    .forEach(e => e.textContent.trim() &&
             note("text", contrast(getComputedStyle(e).color, behind(e)), e.textContent));
document.querySelectorAll("figure svg text").forEach(
    e => note("plot text", contrast(getComputedStyle(e).fill, behind(e)), e.textContent));
document.querySelectorAll("figure .lines path").forEach(
    e => note("curve", contrast(getComputedStyle(e).stroke, behind(e)), e.outerHTML));
found.page = [luminance(behind(document.body)), "background"];
return found;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_follows_the_scheme(browser: Any, html: Path, scheme: str) -> None:
    show(browser, html, scheme=scheme)
    worst = browser.execute_script(CONTRAST)
    assert (worst["page"][0] < 0.05) == (scheme == "dark")
    assert worst["text"][0] >= 4.5, worst["text"]  # WCAG 2 AA
    assert worst["plot text"][0] >= 4.5, worst["plot text"]
    # Sky blue, the palette's lightest line, has 2.3 on white; marker and legend tell it too.
    assert worst["curve"][0] >= (3 if scheme == "dark" else 2.2), worst["curve"]


def test_button_overrides_the_scheme(browser: Any, html: Path) -> None:
    show(browser, html)
    ink = "return getComputedStyle(document.querySelector('.chart svg text')).fill"
    light = browser.execute_script(ink)
    browser.find_element(By.ID, "theme").click()
    assert browser.execute_script(ink) != light
    browser.find_element(By.ID, "theme").click()
    assert browser.execute_script(ink) == light


@in_one
def test_linear_lines_can_be_hidden(browser: Any, html: Path) -> None:
    show(browser, html)
    line = browser.find_element(By.CSS_SELECTOR, "figure .chart .ideal")
    assert line.is_displayed()
    browser.find_element(By.ID, "ideal").click()
    assert not line.is_displayed()
