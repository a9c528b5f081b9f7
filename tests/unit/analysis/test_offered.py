# SPDX-License-Identifier: GPL-2.0-only
"""Latency against load, of a sweep by the rate of arrivals."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from fscale.analysis import loadplot
from fscale.analysis.members import Member
from fscale.analysis.offered import by_cores
from fscale.analysis.plotsettings import PlotSettings
from fscale.analysis.reader import load
from fscale.analysis.report import build
from fscale.analysis.report.section import Report
from fscale.analysis.style import lines
from fscale.analysis.sweeps import Sweep, sweeps
from fscale.model.results import Cell
from tests.support.synthetic import cell, key, write_run

RATES = (0, 100, 1000, 10_000)
SERVED = 2000.0


def measured(rate: int, cores: int, repetition: int) -> Cell:
    """A load whose p99 is 1 us a hundred arrivals, and that more than SERVED overloads."""
    one = key(repetition, workload="DWSL", cores=cores, options={"rate": rate})
    done = cell(one, min(rate or SERVED, SERVED) * cores)
    quantiles = {"count": 10_000, "dropped": 0, "quantiles": {"99": 10.0 * rate + repetition}}
    assert done.bench
    backlog = int(max(rate - SERVED, 0) * one.duration)
    bench = done.bench.model_copy(update={"backlog": backlog})
    return done.model_copy(update={"latency": quantiles, "bench": bench})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    cells = [measured(rate, cores, r) for rate in RATES for cores in (1, 2) for r in (1, 2, 3)]
    return write_run(tmp_path / "run", cells, workloads=("DWSL",), filesystems=("ext4",))


def swept(run: Path) -> Sweep:
    (found,) = sweeps(Report((Member(load(run), None),), run).pages)
    return found


def test_points_are_by_the_arrivals_of_all_workers(run: Path) -> None:
    loads = by_cores(swept(run))
    assert list(loads) == ["1 core", "2 cores"]
    assert [one.offered for one in loads["2 cores"]] == [200, 2000, 20_000]
    assert [one.point.median * 1e9 for one in loads["1 core"]] == [
        pytest.approx(10 * rate + 2) for rate in RATES[1:]
    ]
    assert [one.exceeded for one in loads["1 core"]] == [False, False, True]


def test_an_exceeded_load_is_hollow(run: Path) -> None:
    ax = Figure().add_subplot()
    loads = by_cores(swept(run))
    loadplot.draw_load(ax, loads, lines(dict.fromkeys(loads)))
    marked = [line for line in ax.lines if line.get_marker() not in ("None", "_", "|")]
    shown = {
        float(x): line.get_markerfacecolor() == line.get_color()
        for line in marked
        for x in line.get_xdata()
    }
    assert shown == {0.1: True, 0.2: True, 1.0: True, 2.0: True, 10.0: False, 20.0: False}


def test_the_page_and_the_files_have_it(run: Path) -> None:
    build(run, plots=PlotSettings())
    assert (
        "p99 of the latency against load for 1 core, 2 cores" in (run / "report.html").read_text()
    )
    assert (run / "plots/sweep-DWSL-on-ext4-by-rate-load.pdf").exists()


def test_another_sweep_has_none(tmp_path: Path) -> None:
    cells = [cell(key(workload="DWAL", options={"block": b}), 1.0) for b in (512, 1024)]
    run = write_run(tmp_path / "run", cells, workloads=("DWAL",), filesystems=("ext4",))
    assert not by_cores(swept(run))


def test_a_sweep_without_latencies_has_none(tmp_path: Path) -> None:
    cells = [cell(key(workload="DWSL", options={"rate": rate}), 1.0) for rate in (100, 1000)]
    run = write_run(tmp_path / "run", cells, workloads=("DWSL",), filesystems=("ext4",))
    assert not by_cores(swept(run))
