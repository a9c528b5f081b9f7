# SPDX-License-Identifier: GPL-2.0-only
"""The curves of report.html that answer: by mouse, by keyboard, by address."""

import re
import statistics
import time
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.support.ui import WebDriverWait

from fscale.analysis.report import build
from fscale.model.results import NO_FILESYSTEM, Command
from tests.browser import By, accessible, drawn, in_one, media, quiet, show
from tests.support.build_once import build_once
from tests.support.cpu_speed import reference_seconds_in
from tests.support.hostile import good
from tests.support.predicted import (
    measured_cells,
    predict_in,
    simulated_cells,
    write_measured,
    write_simulated,
)
from tests.support.synthetic import BACKGROUND, PAPER, cell, grid, write_run

FILESYSTEMS = ("tmpfs", "ext4", "xfs", "btrfs")
WORKLOADS = ["DRBL", "DWOL", "MRPL", "MWCL"]
CORES = (1, 2, 4, 8, 16)
MANY = (*FILESYSTEMS, "ext4-nj", "f2fs")
WIDTHS = (360, 768, 1280, 2560)
DRBL = "panel-0-DRBL"
HANDLES = f"#{DRBL} .handles path"

# Frames are of other origins, to which axe would wait for an answer.
CLICK = """document.querySelector(arguments[0]).dispatchEvent(
    new MouseEvent("click", {bubbles: true}))"""


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_once(tmp_path_factory, "charts", written)


def written(directory: Path) -> Path:
    """Up to 16 cores, four file systems; a point is disturbed, one failed, one has latencies; and
    a control.
    """
    cells = grid(CORES, 3, WORKLOADS, FILESYSTEMS)
    first = next(i for i, c in enumerate(cells) if c.key.workload == "DRBL" and c.key.cores == 4)
    cells[first] = cells[first].model_copy(update={"disturbed": "others used 0.4 CPU"})
    cells[30] = cells[30].model_copy(update={"status": "error", "reason": "no space"})
    cells = [
        c.model_copy(update={"latency": {"quantiles": {"50": 2000, "99": 9000}}})
        if c.key.workload == "DRBL"
        else c
        for c in cells
    ]
    control = grid((1, 4, 16), 3, ["control_user"], [NO_FILESYSTEM], ["none"])
    write_run(directory, cells + control, workloads=WORKLOADS, filesystems=FILESYSTEMS, cpus=16)
    return build(directory)


def labels(browser: Any, panel: str = DRBL) -> list[str]:
    script = "return [...document.querySelectorAll(arguments[0])].map(h => h.ariaLabel)"
    return list(browser.execute_script(script, f"#{panel} .handles path"))


def choose(browser: Any, name: str, value: str) -> None:
    browser.find_element(By.CSS_SELECTOR, f"[name={name}] option[value={value}]").click()
    drawn(browser)


def click(browser: Any, selector: str) -> None:
    browser.execute_script(CLICK, selector)
    drawn(browser)


def fragment(browser: Any) -> str:
    return str(browser.execute_script("return decodeURIComponent(location.hash.slice(1))"))


def handle(browser: Any, says: str) -> Any:
    """The point whose label begins so."""
    found = browser.find_element(By.CSS_SELECTOR, f'{HANDLES}[aria-label^="{says}"]')
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", found)
    return found


def test_every_point_is_there_and_says_what_it_is(browser: Any, html: Path) -> None:
    show(browser, html)
    assert len(labels(browser)) == len(CORES) * len(FILESYSTEMS)
    said = next(label for label in labels(browser) if label.startswith("tmpfs at 4 cores: "))
    assert "ops/s, from " in said
    assert said.endswith(", 3 repetitions, 1 disturbed")
    hollow = browser.find_elements(By.CSS_SELECTOR, f'#{DRBL} .symbols [fill="var(--paper)"]')
    assert len(hollow) == 1
    quiet(browser)


@in_one
def test_what_the_machine_gives_is_drawn_with_linear_scaling(browser: Any, html: Path) -> None:
    show(browser, html)
    line = browser.find_element(By.CSS_SELECTOR, f"#{DRBL} .chart .given path")
    assert line.get_attribute("d").count("L") == 2  # of three core counts
    assert line.is_displayed()
    browser.find_element(By.ID, "ideal").click()
    assert not line.is_displayed()
    choose(browser, "measure", "latency")
    assert not browser.find_elements(By.CSS_SELECTOR, f"#{DRBL} .chart .given path[d]:not([d=''])")
    quiet(browser)


def test_hover_tells_the_point_and_how_to_repeat_it(browser: Any, html: Path) -> None:
    show(browser, html)
    ActionChains(browser).move_to_element(handle(browser, "tmpfs at 4 cores")).perform()
    tip = browser.find_element(By.ID, "tip")
    assert tip.is_displayed()
    assert "1 disturbed" in tip.text
    command = "bin/fscale run quick --output results/again --workload DRBL --fs tmpfs --cores 4"
    assert command in tip.text
    ActionChains(browser).move_to_element(browser.find_element(By.ID, "how")).perform()
    assert not tip.is_displayed()


@in_one
def test_a_file_system_is_switched_off_in_all_panels(browser: Any, html: Path) -> None:
    show(browser, html)
    click(browser, ".legend input[value=xfs]")
    for workload in WORKLOADS:
        assert len(labels(browser, f"panel-0-{workload}")) == len(CORES) * (len(FILESYSTEMS) - 1)
        assert not any(s.startswith("xfs ") for s in labels(browser, f"panel-0-{workload}"))
    assert fragment(browser) == "off=xfs"
    click(browser, ".legend input[value=xfs]")
    assert any(s.startswith("xfs ") for s in labels(browser))
    assert fragment(browser) == ""


@in_one
@pytest.mark.parametrize(
    ("measure", "words"),
    [("cpu", "ops per CPU second"), ("latency", "s, from"), ("p50", "2 µs"), ("p99", "9 µs")],
)
def test_other_figures(browser: Any, html: Path, measure: str, words: str) -> None:
    show(browser, html)
    choose(browser, "measure", measure)
    assert all(words in label for label in labels(browser))
    assert fragment(browser) == f"measure={measure}"
    assert len(labels(browser, "panel-0-MWCL")) == (0 if measure.startswith("p") else 20)
    quiet(browser)


@in_one
def test_a_predicted_point_is_no_measured_one(browser: Any, tmp_path: Path) -> None:
    run = write_measured(tmp_path / "two", measured_cells(), workloads=["MWCL"])
    predict_in(run, write_simulated(tmp_path / "sim", simulated_cells()))
    show(browser, build(run))
    said = labels(browser, "panel-0-MWCL")
    assert [label.partition(":")[2][:24] for label in said[2:]] == [" predicted, not measured"] * 2
    point = f'#panel-0-MWCL [aria-label="{said[2]}"]'
    click(browser, point)
    assert not browser.find_element(By.ID, "detail").is_displayed()
    assert browser.find_element(By.CSS_SELECTOR, point).get_attribute("role") == "img"
    accessible(browser, "light")
    choose(browser, "measure", "latency")
    assert len(labels(browser, "panel-0-MWCL")) == 2
    quiet(browser)


@in_one
def test_speed_up_starts_at_one(browser: Any, html: Path) -> None:
    show(browser, html)
    click(browser, "[name=relative]")
    ones = [label for label in labels(browser) if " at 1 core:" in label]
    assert len(ones) == len(FILESYSTEMS)
    assert all(" at 1 core: 1\u00d7" in label for label in ones)
    title = "return document.querySelector(arguments[0]).textContent"
    assert "speed-up" in browser.execute_script(title, f"#{DRBL} .chart")


def places(browser: Any) -> list[float]:
    """Where tmpfs's points are across, from its first to its last, 0 to 1."""
    script = """return [...document.querySelectorAll(arguments[0])]
        .filter(h => h.ariaLabel.startsWith("tmpfs ")).map(h => h.getBoundingClientRect().x)"""
    x = browser.execute_script(script, HANDLES)
    return [(value - x[0]) / (x[-1] - x[0]) for value in x]


@in_one
def test_axes_are_linear_or_logarithmic(browser: Any, html: Path) -> None:
    show(browser, html)
    assert places(browser)[2] == pytest.approx(3 / 15, abs=0.01)  # 4 cores of 1 to 16
    click(browser, "[name=x]")
    assert places(browser)[2] == pytest.approx(0.5, abs=0.01)
    click(browser, "[name=y]")
    assert fragment(browser) == "x=log&y=log"
    quiet(browser)


def axis(browser: Any) -> list[str]:
    script = """return [...document.querySelectorAll(arguments[0])]
        .filter(t => getComputedStyle(t).opacity > 0).map(t => t.textContent)"""
    return list(browser.execute_script(script, f"#{DRBL} .role-axis-label text"))


def chart(browser: Any) -> Any:
    """DRBL's, in sight."""
    found = browser.find_element(By.CSS_SELECTOR, f"#{DRBL} .chart svg")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", found)
    return found


def test_a_dragged_box_zooms_and_a_double_click_shows_all(browser: Any, html: Path) -> None:
    show(browser, html)
    before = axis(browser)
    drag = ActionChains(browser).move_to_element_with_offset(chart(browser), 30, -50)
    drag.click_and_hold().move_by_offset(30, 30).move_by_offset(30, 30).release().perform()
    drawn(browser)
    assert axis(browser) != before
    zoomed = fragment(browser)
    assert zoomed.startswith(f"zoom={DRBL}:")
    show(browser, html, view=zoomed)
    assert axis(browser) != before
    ActionChains(browser).double_click(chart(browser)).perform()
    drawn(browser)
    assert axis(browser) == before
    assert fragment(browser) == ""


@in_one
def test_an_address_brings_the_view_back(browser: Any, html: Path) -> None:
    show(browser, html)
    click(browser, "[name=relative]")
    click(browser, "[name=y]")
    click(browser, ".legend input[value=btrfs]")
    click(browser, f"#{DRBL} .enlarge")
    choose(browser, "measure", "cpu")
    address, before = fragment(browser), labels(browser)
    show(browser, html, view=address)
    assert labels(browser) == before
    assert fragment(browser) == address
    assert not browser.find_element(By.CSS_SELECTOR, "input[value=btrfs]").is_selected()
    assert browser.find_element(By.CSS_SELECTOR, "[name=y]").is_selected()
    width = "return document.getElementById(arguments[0]).clientWidth"
    assert browser.execute_script(width, DRBL) > 2 * browser.execute_script(width, "panel-0-MWCL")
    click(browser, "#whole")
    assert fragment(browser) == ""


@in_one
@pytest.mark.parametrize(
    "view", ["measure=x", "zoom=a:1,2", f"zoom={DRBL}:9,1,2,1", "point=:", "x=%ff&off", "=&&=%"]
)
def test_an_address_that_says_nothing_shows_all(browser: Any, html: Path, view: str) -> None:
    show(browser, html, view=view)
    assert len(labels(browser)) == len(CORES) * len(FILESYSTEMS)
    quiet(browser)


def focused(browser: Any) -> str:
    return str(browser.execute_script("return document.activeElement.ariaLabel"))


def press(browser: Any, *keys: str) -> None:
    ActionChains(browser).send_keys(*keys).perform()
    drawn(browser)


def test_the_keyboard_alone_does_it_all(browser: Any, html: Path) -> None:
    show(browser, html)
    for _ in range(300):  # from the top of the page
        press(browser, Keys.TAB)
        if browser.execute_script("return document.activeElement.name") == "measure":
            break
    press(browser, "operations per C")
    assert fragment(browser) == "measure=cpu"
    press(browser, Keys.TAB, Keys.SPACE)
    assert fragment(browser) == "measure=cpu&relative=yes"
    while "tmpfs at 1 core" not in focused(browser):
        press(browser, Keys.TAB)
    assert browser.find_element(By.ID, "tip").is_displayed()
    press(browser, Keys.ARROW_RIGHT)
    assert focused(browser).startswith("tmpfs at 2 cores")
    press(browser, Keys.ARROW_UP)
    other = focused(browser)
    assert " at 2 cores" in other
    assert not other.startswith("tmpfs")
    press(browser, "+")
    assert "zoom=" in fragment(browser)
    assert focused(browser) == other
    press(browser, "0")
    assert "zoom=" not in fragment(browser)
    press(browser, Keys.ESCAPE)
    assert not browser.find_element(By.ID, "tip").is_displayed()
    press(browser, Keys.ENTER)
    dialog = browser.find_element(By.ID, "detail")
    assert dialog.is_displayed()
    assert "Command to measure this point again" in dialog.text
    assert "point=" in fragment(browser)
    press(browser, Keys.ESCAPE)
    assert not dialog.is_displayed()
    assert focused(browser) == other
    assert "point=" not in fragment(browser)


@in_one
def test_a_tab_stop_a_panel(browser: Any, html: Path) -> None:
    show(browser, html)
    stops = browser.find_elements(By.CSS_SELECTOR, '.handles path[tabindex="0"]')
    assert len(stops) == len(WORKLOADS)


def test_without_javascript_it_is_what_it_was(browser: Any, html: Path) -> None:
    browser.allow_scripts(False)
    try:
        browser.get("about:blank")
        browser.get(html.as_uri())
        plots = browser.find_elements(By.CSS_SELECTOR, "figure[id] svg.plot")
        assert len(plots) == len(WORKLOADS)
        assert all(plot.is_displayed() for plot in plots)
        for hidden in ("#controls", "#detail", ".chart"):
            assert not any(e.is_displayed() for e in browser.find_elements(By.CSS_SELECTOR, hidden))
    finally:
        browser.allow_scripts(True)


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(good(tmp_path_factory.mktemp("good") / "results"))


@in_one
def test_a_point_opens_its_diagnosis(browser: Any, profiled: Path) -> None:
    show(browser, profiled)
    browser.get_log("browser")
    for cores, flames in ((2, 2), (1, 0)):
        click(browser, f'.handles path[aria-label^="ext4 at {cores} "]')
        detail = browser.find_element(By.ID, "detail")
        assert f"DWOM on ext4, {cores} core" in detail.text
        assert "% of the cores' time" in detail.text
        assert len(detail.find_elements(By.CSS_SELECTOR, ".flame")) == flames
        address = fragment(browser)
        browser.execute_script(
            "document.querySelectorAll('#detail details').forEach(d => d.open = true)"
        )
        detail.find_element(By.ID, "detail-close").click()
    show(browser, profiled, view=address)
    assert "DWOM on ext4, 1 core" in browser.find_element(By.ID, "detail").text
    quiet(browser)


@in_one
def test_an_object_of_the_answer_leads_to_its_evidence(browser: Any, profiled: Path) -> None:
    show(browser, profiled)
    cause = browser.find_element(By.CSS_SELECTOR, '.answer td a[href^="#why"]')
    assert re.search(r"i_rwsem.*, \d+%", cause.text)
    evidence = browser.find_element(By.CSS_SELECTOR, "figure details table")
    assert not evidence.is_displayed()
    cause.click()
    assert evidence.is_displayed()
    top = browser.execute_script("return arguments[0].getBoundingClientRect().top", evidence)
    assert 0 < top < 400
    assert browser.execute_script("return document.querySelectorAll('[id^=why]').length") == 1
    click(browser, '.handles path[aria-label^="ext4 at 2 "]')
    assert browser.execute_script("return document.querySelectorAll('[id^=why]').length") == 1


@in_one
def test_a_point_that_is_opened_at_once_after_another_stays(browser: Any, profiled: Path) -> None:
    show(browser, profiled)
    click(browser, '.handles path[aria-label^="ext4 at 2 "]')
    both = f"document.getElementById('detail').close(); {CLICK}; setTimeout(arguments[1], 200)"
    browser.execute_async_script(both, '.handles path[aria-label^="ext4 at 1 "]')
    assert "DWOM on ext4, 1 core" in browser.find_element(By.ID, "detail").text
    show(browser, profiled, view=fragment(browser))
    assert "DWOM on ext4, 1 core" in browser.find_element(By.ID, "detail").text


FRAMES = """return [...document.querySelectorAll(".flame .frames button")].map(b => [
    b.textContent, b.getBoundingClientRect().width / b.parentElement.clientWidth])"""


def frames(browser: Any) -> dict[str, float]:
    """The names of the first flame graph's frames and their shares of its width."""
    return dict(browser.execute_script(FRAMES))


def test_a_flame_graph_zooms_and_is_searched(browser: Any, profiled: Path) -> None:
    show(browser, profiled)
    browser.get_log("browser")
    browser.execute_script(
        """const graph = document.querySelector(".flame");
        for (let d = graph; d; d = d.parentElement.closest("details"))
            d.open = true;"""
    )
    WebDriverWait(browser, 20).until(frames)
    graph = browser.find_element(By.CSS_SELECTOR, ".flame")
    assert graph.find_elements(By.TAG_NAME, "iframe") == []
    whole = frames(browser)
    assert whole["all"] == pytest.approx(1, abs=0.01)
    assert len(whole) > 20
    inner = min(whole, key=lambda name: abs(whole[name] - 0.4))
    assert 0.1 < whole[inner] < 0.9

    search = graph.find_element(By.CSS_SELECTOR, "input")
    search.send_keys(inner.upper())
    said = graph.find_element(By.TAG_NAME, "output").text
    count, share = re.fullmatch(r"(\d+) frames?, ([\d.]+)% of the time", said).groups()
    found = graph.find_elements(By.CSS_SELECTOR, ".found")
    assert 1 <= len(found) <= int(count)
    assert float(share) >= 100 * whole[inner] - 1
    search.send_keys(" in no kernel")
    assert graph.find_element(By.TAG_NAME, "output").text == "0 frames, 0.0% of the time"

    frame = next(
        b for b in graph.find_elements(By.CSS_SELECTOR, ".frames button") if b.text == inner
    )
    browser.execute_script("arguments[0].focus()", frame)
    press(browser, Keys.ENTER)
    zoomed = frames(browser)
    assert zoomed["all"] == zoomed[inner] == pytest.approx(1, abs=0.01)
    assert zoomed.keys() < whole.keys() | zoomed.keys()
    assert focused(browser).startswith(f"{inner} (")
    press(browser, Keys.ARROW_DOWN)
    below = focused(browser)
    assert not below.startswith(f"{inner} (")
    press(browser, Keys.ARROW_UP)
    assert focused(browser) != below
    press(browser, Keys.ESCAPE)
    assert frames(browser) == whole
    click(browser, ".flame .frames button:last-child")
    assert frames(browser) != whole
    click(browser, ".flame .controls button")
    assert frames(browser) == whole
    quiet(browser)


@in_one
def test_a_flame_graph_is_a_picture_without_javascript(browser: Any, profiled: Path) -> None:
    browser.allow_scripts(False)
    try:
        browser.get("about:blank")
        browser.get(profiled.as_uri())
        for summary in ("details[data-diagnosis] summary", ".flame summary"):
            browser.find_element(By.CSS_SELECTOR, summary).click()
        assert browser.find_element(By.CSS_SELECTOR, ".flame iframe").is_displayed()
    finally:
        browser.allow_scripts(True)


def test_nothing_acts_but_what_is_ours(browser: Any, tmp_path: Path) -> None:
    """The browser holds the policy, were markup ever to get into the page."""
    (made,) = grid((1,), 1, ("DRBL",), ("ext4",))
    html = build(write_run(tmp_path, [made], workloads=("DRBL",)))
    bad = "<script>window.bad = 1</script><p onclick='window.bad = 2' id='paragraph'>x</p>"
    bad += "<img src='https://example.com/x.png' onerror='window.bad = 3'>"
    bad += '<iframe sandbox="allow-scripts" src="data:text/html,<script>1</script>"></iframe>'
    html.write_text(html.read_text().replace('<main id="main">', f'<main id="main">{bad}'))
    show(browser, html)
    browser.find_element(By.ID, "paragraph").click()
    assert browser.execute_script("return window.bad") is None
    assert "unsafe-eval" not in html.read_text()
    assert len(browser.get_log("browser")) >= 4


@in_one
def test_a_stranger_s_names_stay_names(browser: Any, tmp_path: Path) -> None:
    evil = "</script><script>window.bad=1</script><!--"
    cells = []
    for made in grid((1, 2), 2, ("DRBL",), ("ext4",)):
        key = made.key.model_copy(update={"filesystem": "<b>x", "options": {"a": evil}})
        command = Command(argv=[evil], seconds=1, returncode=0)
        cells.append(cell(key, 1000.0 * key.cores, commands=[command], disturbed=evil))
    run = write_run(tmp_path, cells, workloads=("DRBL",), command=[f"bin/fscale run {evil!r}"])
    html = build(run)
    browser.get_log("browser")
    show(browser, html)
    click(browser, ".handles path")
    assert browser.execute_script("return window.bad") is None
    assert evil in browser.find_element(By.ID, "detail").text
    quiet(browser)


@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_the_window(browser: Any, html: Path, width: int) -> None:
    show(browser, html, width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    script = """return [...document.querySelectorAll("figure[id]")].map(f => [
        f.clientWidth, f.querySelector(".chart svg").getBoundingClientRect().width])"""
    for own, chart in browser.execute_script(script):
        assert 150 < chart <= own + 1
    click(browser, ".handles path")
    box = browser.find_element(By.ID, "detail").rect
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width


def test_print_is_the_view(browser: Any, html: Path) -> None:
    show(browser, html, scheme="dark", view="y=log")
    media(browser, "dark", "print")
    for hidden in ("#controls", ".enlarge", ".legend input", "#theme"):
        assert not browser.find_element(By.CSS_SELECTOR, hidden).is_displayed()
    assert browser.find_element(By.CSS_SELECTOR, f"#{DRBL} .chart").is_displayed()
    ink = "return getComputedStyle(document.querySelector('.chart svg text')).fill"
    assert browser.execute_script(ink) == "rgb(27, 27, 27)"
    # Paper has columns of another width, and nothing draws anew for it.
    drawing = browser.find_element(By.CSS_SELECTOR, f"#{DRBL} .chart svg")
    script = """const [drawing] = arguments;
        drawing.setAttribute("width", 5000);
        return drawing.getBoundingClientRect().width - drawing.parentElement.clientWidth"""
    assert abs(browser.execute_script(script, drawing)) < 1
    media(browser)


@in_one
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("opened", [False, True])
def test_axe_finds_nothing(browser: Any, profiled: Path, scheme: str, opened: bool) -> None:
    show(browser, profiled, scheme=scheme)
    if opened:
        click(browser, ".handles path")
    accessible(browser, scheme)


def _timed(run: Path, repetitions: int) -> tuple[int, float, Path]:
    """A report on so many repetitions: their cells, the CPU seconds that it takes, its page."""
    workloads = [*PAPER, *BACKGROUND][::2]
    cells = grid(range(1, 18), repetitions, workloads, MANY)
    write_run(run, cells, workloads=workloads, filesystems=MANY, cpus=17)
    began = time.process_time()
    html = build(run)
    return len(cells), time.process_time() - began, html


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A quarter of ten thousand cells, and all: they must not take four times as long."""
    few, soon, quarter = _timed(tmp_path_factory.mktemp("few"), 2)
    many, later, html = _timed(tmp_path_factory.mktemp("large"), 8)
    assert many == 4 * few > 10_000
    assert later <= 4 * soon  # 2.4 to 2.8 when it was measured
    return quarter, html


@in_one
@pytest.mark.timeout(900)  # its page alone took 246 s beside nine busy programs
def test_a_run_of_ten_thousand_cells_opens_at_once(browser: Any, large: tuple[Path, Path]) -> None:
    """Judged beside a quarter of it, because other tests slow both down."""

    def seconds(page: Path) -> float:
        browser.get("about:blank")
        browser.count_time()
        browser.get(page.as_uri())
        return float(browser.busy())

    ratios, references = [], []
    for _ in range(5):
        soon, later = map(seconds, large)
        ratios.append(later / soon)
        browser.get("about:blank")
        browser.count_time()
        references.append(later / reference_seconds_in(browser))
    assert statistics.median(ratios) <= 2, ratios  # 1 when it was measured
    # 20 when it was measured, 28 beside three other tests, which take cache from it
    assert statistics.median(references) <= 40, references
    browser.get(large[1].as_uri())
    drawn(browser)
    assert len(labels(browser)) == 17 * len(MANY)


@in_one
def test_one_repetition_on_one_core(browser: Any, tmp_path: Path) -> None:
    cells = grid((1,), 1, WORKLOADS, FILESYSTEMS)
    html = build(write_run(tmp_path, cells, workloads=WORKLOADS, filesystems=FILESYSTEMS))
    browser.get_log("browser")
    show(browser, html, view="x=log&y=log&relative=yes")
    assert len(labels(browser)) == len(FILESYSTEMS)
    assert all(label.endswith("1\u00d7, 1 repetition") for label in labels(browser))
    quiet(browser)


@in_one
def test_a_run_that_failed_has_no_charts_and_no_error(browser: Any, tmp_path: Path) -> None:
    (made,) = grid((1,), 1, ("DRBL",), ("ext4",))
    failed = made.model_copy(update={"status": "error", "reason": "no space"})
    html = build(write_run(tmp_path, [failed], workloads=("DRBL",)))
    browser.get_log("browser")
    browser.get(html.as_uri())
    assert "no space" in browser.find_element(By.TAG_NAME, "main").text
    quiet(browser)
