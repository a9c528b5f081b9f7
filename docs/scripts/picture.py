# SPDX-License-Identifier: GPL-2.0-only
"""Take the README's picture of a report.

    python -m docs.scripts.picture docs/results/data/sixteen-cores.json docs/img/report.png

It needs Debian's chromium and chromium-driver, and shows the first screen of the report on the
packed cells (docs.scripts.pack). The report lacks what the packed cells do not have.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

from fscale import __version__
from fscale.analysis.report import build
from fscale.model import paths
from fscale.model.results import NO_FILESYSTEM, Cell, CellKey, Cpu, Machine, Run
from fscale.runner.microbench import find

WIDTH, HEIGHT = 1280, 900
SECONDS = 0.4  # of each cell's window
DRAWN = "return document.body.dataset.drawn === 'all'"


def unpack(data: dict[str, Any], directory: Path) -> Path:
    """Write packed cells as a run of that directory; it has no times, CPU times or commands."""
    machine = data["machine"]
    cpus = range(machine["cpus"])
    (directory / "cells").mkdir(parents=True)
    for workload, filesystem, medium, cores, repetition, rate, disturbed in data["cells"]:
        key = CellKey(
            workload=workload,
            filesystem=filesystem,
            medium=medium,
            mode="buffered",
            cores=cores,
            repetition=repetition,
            duration=SECONDS,
        )
        cell = Cell(
            id=key.id,
            key=key,
            status="ok",
            started=f"{data['runs'][0]['started']}:00Z",
            wall_seconds=None,
            ops=round(rate * SECONDS),
            seconds=SECONDS,
            ops_per_second=rate,
            disturbed="by other processes" if disturbed else None,
        )
        path = directory / "cells" / f"{key.id}.json"
        path.write_text(cell.model_dump_json(by_alias=True))
    run = Run(
        id=data["title"],
        started=f"{data['runs'][0]['started']}:00Z",
        state="complete",
        fscale_version=__version__,
        revision=None,
        command=[run["command"] for run in data["runs"]],
        seed=0,
        suite={},
        filesystems={
            name: {} for name in sorted({cell[1] for cell in data["cells"]} - {NO_FILESYSTEM})
        },
        media={},
        machine=Machine(
            hostname="not recorded",
            kernel=machine["kernel"],
            kernel_cmdline="",
            architecture="x86_64",
            cpu_model=machine["cpu"],
            memory_bytes=machine["memory_bytes"],
            topology=[Cpu(cpu=i, core=i, socket=0, node=0) for i in cpus],
            cpu_order=list(cpus),
            governor=None,
            mitigations={},
            virtualization=None,
        ),
        versions={},
        workloads=[one.descriptor.model_dump() for one in find(paths.BENCH)],
        planned_cells=len(data["cells"]),
    )
    (directory / "run.json").write_text(run.model_dump_json(by_alias=True))
    return directory


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
        run = unpack(json.loads(packed.read_text()), Path(place) / "run")
        take(build(run), picture.resolve())


if __name__ == "__main__":
    main()
