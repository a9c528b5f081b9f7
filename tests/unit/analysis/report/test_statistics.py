# SPDX-License-Identifier: GPL-2.0-only
"""Figures worked out by hand: what the report computes from cells."""

import csv
import io
import json
import math
from itertools import pairwise

import pytest
from matplotlib.figure import Figure

from fscale.analysis.curves import BACKGROUND, Curve, Page, arrange
from fscale.analysis.diagnosis.run import _law
from fscale.analysis.diagnosis.verdict import Shape, shape_of
from fscale.analysis.findings import Scaling, findings, judge
from fscale.analysis.numbers import interval, microseconds, rate, span, times
from fscale.analysis.plots import core_ticks, draw_curves, layout_keys, scaled_unit
from fscale.analysis.style import MARKERS, SERIES, lines, speedup_colours
from fscale.analysis.summary import Point, Ratio, Spread, summarise
from fscale.analysis.tables.points import COLUMNS, rows
from fscale.analysis.tables.text import to_csv, to_json
from fscale.model.bench import CpuTimes, Descriptor
from fscale.model.results import Cell, CellKey
from fscale.model.topology import core_counts, layout
from tests.support import synthetic
from tests.support.synthetic import cell, cpus_of, descriptor

NAMES: dict[str | None, str] = {None: "today"}


def key(cores: int = 1, repetition: int = 1, workload: str = "DRBL", **more: object) -> CellKey:
    return synthetic.key(repetition, workload=workload, cores=cores, **({"duration": 2} | more))


def cells(rates: list[float], cores: int = 1, **more: object) -> list[Cell]:
    return [cell(key(cores, i, **more), r) for i, r in enumerate(rates, 1)]  # type: ignore[arg-type]


def point(rates: list[float], cores: int = 1, **more: object) -> Point:
    (only,) = summarise(cells(rates, cores, **more))
    return only


def page(scored: list[Cell], *workloads: str) -> Page:
    described = {w: descriptor(w) for w in workloads}
    (only,) = arrange(summarise(scored), ["tmpfs", "ext4", "xfs"], described)
    return only


def test_point_of_three_repetitions() -> None:
    three = point([100, 130, 110])
    assert three.n == 3
    assert three.median == 110
    assert three.spread == Spread(100, 130, "min-max")
    assert three.mad == 10  # |100-110|, |130-110|, |110-110| -> 0, 10, 20


def test_spread_is_quartiles_from_five_repetitions_on() -> None:
    assert point([10, 20, 30, 40]).spread == Spread(10, 40, "min-max")
    assert point([10, 20, 30, 40, 1000]).spread == Spread(20, 40, "quartiles")


def test_one_repetition_has_no_spread() -> None:
    one = point([100])
    assert one.spread.kind == "none"
    assert one.mad is None


def test_repetitions_are_the_unit_and_parameters_separate_points() -> None:
    scored = [*cells([1, 2]), *cells([3], cores=2), *cells([4], options={"variant": "stat"})]
    scored += cells([5], medium="ssd") + cells([6], side="A")
    assert sorted(p.n for p in summarise(scored)) == [1, 1, 1, 1, 2]


def test_cpu_fractions_add_up_with_softirq_under_irq() -> None:
    times_one = CpuTimes(user=1, system=5, idle=2, iowait=0.5, irq=0.25, softirq=0.75, steal=0.5)
    times_two = times_one.model_copy(update={"user": 3.0, "system": 3.0})
    one, two = (
        c.model_copy(update={"cpu": t})
        for c, t in zip(cells([1, 2]), (times_one, times_two), strict=True)
    )
    (both,) = summarise([one, two])
    assert both.cpu == pytest.approx(
        {"user": 0.2, "system": 0.4, "iowait": 0.05, "irq": 0.1, "steal": 0.05, "idle": 0.2}
    )


def test_operations_per_own_cpu_second() -> None:
    measured = [
        c.model_copy(update={"ops": 600.0, "own_cpu_seconds": own})
        for c, own in zip(cells([300, 300, 300]), (2.0, 3.0, 4.0), strict=True)
    ]
    (three,) = summarise(measured)
    assert three.ops_per_cpu_second == 200
    (partly,) = summarise([*measured[:2], measured[2].model_copy(update={"own_cpu_seconds": None})])
    assert partly.ops_per_cpu_second is None


def test_disturbed_repetitions_count_and_are_counted() -> None:
    first, second = cells([100, 300])
    (both,) = summarise([first, second.model_copy(update={"disturbed": "make -j used 1.9 CPUs"})])
    assert (both.disturbed, both.median) == (1, 200)


def test_speedup_and_its_interval() -> None:
    scored = cells([100, 110, 90]) + cells([150, 180, 165], cores=2)
    curve = page(scored, "DRBL").panels[0].curves[0]
    ratio = curve.top_speedup
    assert ratio is not None
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((1.65, 150 / 110, 180 / 90))
    assert curve.linear == 2
    assert curve.peak.key.cores == 2


def test_peak_is_the_highest_median() -> None:
    scored = [c for n, r in ((1, 10.0), (2, 30.0), (4, 20.0)) for c in cells([r], cores=n)]
    curve = page(scored, "DRBL").panels[0].curves[0]
    assert (curve.peak.key.cores, curve.top.key.cores) == (2, 4)
    assert curve.share_of_linear == pytest.approx(0.5)  # 2x of 4x, in logarithms


def test_no_speedup_without_one_core() -> None:
    curve = page(cells([1], cores=2) + cells([2], cores=4), "DRBL").panels[0].curves[0]
    assert curve.base is None
    assert curve.top_speedup is None
    assert curve.share_of_linear is None


def test_background_workloads_start_at_two_cores_and_count_their_readers() -> None:
    scored = cells([10], cores=2, workload="DRBL_bg") + cells([25], cores=4, workload="DRBL_bg")
    background = page(scored, "DRBL_bg")
    assert background.groups[0].title == BACKGROUND
    curve = background.panels[0].curves[0]
    assert curve.top_speedup is not None
    assert curve.top_speedup.value == 2.5
    assert curve.linear == 3  # three readers against one


def threaded(workload: str = "DRBL", base: int = 1) -> Curve:
    """A curve on 2 sockets x 4 cores x 2 threads, 10 operations a second and physical core."""
    counts = [base, 4, 8, 16]
    scored = [c for n in counts for c in cells([10 * min(n, 8)], cores=n, workload=workload)]
    there = layout(cpus_of(2, 4, 2), range(16))
    described = {workload: descriptor(workload)}
    return arrange(summarise(scored), ["ext4"], described, there)[0].panels[0].curves[0]


def test_linear_is_by_physical_cores() -> None:
    curve = threaded()
    assert [curve.linear_at(p) for p in curve.points] == [1, 4, 8, 8]
    assert curve.linear == 8
    assert curve.share_of_linear == 1
    assert curve.top_speedup is not None
    assert judge(curve.top_speedup, curve.linear, curve.most) is Scaling.SCALES
    assert shape_of(curve) == (Shape.SCALES, None, 1)


def test_a_writer_beside_the_readers_takes_a_physical_core() -> None:
    curve = threaded("DRBL_bg", base=2)
    assert [curve.linear_at(p) for p in curve.points] == [1, 3, 7, 7]


def test_hardware_threads_may_gain_over_the_cores_but_not_over_themselves() -> None:
    assert judge(Ratio(10, 9.9, 10.1), linear=8, most=16) is Scaling.SCALES
    assert judge(Ratio(19, 18, 20), linear=8, most=16) is Scaling.SUPERLINEAR


def test_a_background_writer_is_no_worker_of_the_scaling_law() -> None:
    sigma = 0.3
    points = summarise(
        cell(key(n, repetition, "DRBL_bg"), 1e6 * (n - 1) / (1 + sigma * (n - 2)))
        for n in (2, 4, 8, 16, 32)
        for repetition in (1, 2, 3)
    )
    law = _law("DRBL_bg", Curve("ext4", None, tuple(points), 2))
    assert law.fit and law.fit.lack.fits and law.beside == 1
    assert law.fit.sigma.value == pytest.approx(sigma, rel=1e-3)
    assert law.fit.most == 31


def test_plots_mark_full_sockets_and_hardware_threads() -> None:
    def marks(sockets: int, cores: int, threads: int) -> tuple[list[float], list[float]]:
        count = sockets * cores * threads
        there = layout(cpus_of(sockets, cores, threads), range(count))
        scored = [c for n in core_counts("topology", there) for c in cells([10], cores=n)]
        (panel,) = arrange(summarise(scored), ["ext4"], {}, there)[0].panels
        ax = Figure().add_subplot()
        draw_curves(ax, panel, lines({"ext4": None}))
        lines_at = [line.get_xdata()[0] for line in ax.lines if line.get_gid() == "socket"]
        grey = [patch.get_x() for patch in ax.patches if patch.get_gid() == "threads"]
        return lines_at, grey

    assert marks(8, 10, 1) == ([10.5, 20.5, 30.5, 40.5, 50.5, 60.5, 70.5], [])
    assert marks(2, 48, 2) == ([48.5, 96.5], [96.5])
    assert marks(1, 6, 2) == ([], [6.5])
    assert marks(1, 2, 1) == ([], [])


def test_slower_cores_are_marked_and_linear_does_not_count_them() -> None:
    cpus = [c.model_copy(update={"capacity": 1024 if c.core < 4 else 500}) for c in cpus_of(1, 12)]
    there = layout(cpus, range(12))
    # Ten a second of each fast core, five of each slow one; then a lock that lets no more in.
    scored = [
        c
        for n in core_counts("topology", there)
        for c in cells([10 * min(n, 4) + 5 * max(0, n - 4)], cores=n)
    ]
    (panel,) = arrange(summarise(scored), ["ext4"], {}, there)[0].panels
    ax = Figure().add_subplot()
    draw_curves(ax, panel, lines({"ext4": None}))
    assert [line.get_xdata()[0] for line in ax.lines if line.get_gid() == "kind"] == [4.5]
    (curve,) = panel.curves
    assert [(p.key.cores, curve.linear_at(p)) for p in curve.points] == [
        (1, 1),
        (2, 2),
        (4, 4),
        (8, 4),
        (12, 4),
    ]
    assert shape_of(curve)[0] is Shape.SCALES
    assert panel.ideal is not None
    assert panel.ideal.factors[-1] == (12, 4)
    page = arrange(summarise(scored), ["ext4"], {}, there)[0]
    assert "slower cores from here" in [name for _, name in layout_keys(page)]
    assert _law("DRBL", curve).fit is None  # three counts of equal cores


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        (Ratio(1.9, 1.8, 2.0), Scaling.SCALES),
        (Ratio(1.6, 1.5, 1.7), Scaling.SCALES),
        (Ratio(1.59, 1.5, 1.7), Scaling.PARTLY),
        (Ratio(2.29, 2.2, 2.3), Scaling.SCALES),
        (Ratio(2.31, 2.2, 2.4), Scaling.SUPERLINEAR),
        (Ratio(1.9, 0.9, 2.5), Scaling.FLAT),
        (Ratio(1.04, 1.03, 1.05), Scaling.FLAT),
        (Ratio(0.8, 0.7, 0.9), Scaling.FALLS),
        (Ratio(0.8, 0.7, 1.1), Scaling.FLAT),
    ],
)
def test_verdicts_at_two_cores(ratio: Ratio, verdict: Scaling) -> None:
    assert judge(ratio, linear=2, most=2) is verdict


def test_findings_cover_every_curve_with_a_speedup() -> None:
    scored = cells([100]) + cells([195], cores=2) + cells([50], filesystem="tmpfs")
    (found,) = findings(page(scored, "DRBL"))
    assert (found.curve.filesystem, found.verdict) == ("ext4", Scaling.SCALES)
    assert not found.disturbed
    scored[0] = scored[0].model_copy(update={"disturbed": "others used 1 CPU"})
    assert findings(page(scored, "DRBL"))[0].disturbed


def test_groups_and_panels_come_from_the_descriptors() -> None:
    described = {
        name: Descriptor.model_validate(
            {
                **descriptor("DRBL").model_dump(),
                **{"id": name, "type": type_, "action": action},
                **{"sharing": sharing, "background": beside},
            }
        )
        for name, type_, action, sharing, beside in (
            ("alpha", "metadata", "write", "medium", False),
            ("beta", "data", "read", "high", False),
            ("gamma", "data", "write", "low", False),
            ("delta", "data", "read", "low", False),
            ("epsilon", "data", "read", "low", True),
        )
    }
    scored = [c for w in ["unknown", *described] for c in cells([1], workload=w)]
    (arranged,) = arrange(summarise(scored), ["ext4"], described)
    assert [(g.title, [p.name for p in g.panels]) for g in arranged.groups] == [
        ("Data reads", ["delta", "beta"]),
        ("Data writes", ["gamma"]),
        ("Metadata writes", ["alpha"]),
        ("Readers beside a writer", ["epsilon"]),
        ("Other workloads", ["unknown"]),
    ]
    two = arrange(summarise(scored + cells([1], medium="ssd")), [], {})
    assert [p.title for p in two] == ["ram medium, buffered I/O", "ssd medium, buffered I/O"]


def test_a_file_system_without_medium_is_on_every_page_of_its_mode() -> None:
    tmpfs = cells([9], filesystem="tmpfs", medium="none")
    on_disks = cells([1]) + cells([2], medium="ssd") + cells([3], mode="direct")
    pages = arrange(summarise(tmpfs + on_disks), ["tmpfs", "ext4"], {})
    assert [(p.medium, p.mode, p.names) for p in pages] == [
        ("ram", "buffered", ["tmpfs", "ext4"]),
        ("ram", "direct", ["ext4"]),
        ("ssd", "buffered", ["tmpfs", "ext4"]),
    ]
    assert [(r["medium"], r["median_per_second"]) for r in rows(pages, NAMES)] == [
        ("none", 9),
        ("ram", 1),
        ("ram", 3),
        ("ssd", 2),
    ]
    (alone,) = arrange(summarise(tmpfs), [], {})
    assert alone.title == "no medium, buffered I/O"


def test_options_sides_and_durations_are_told_apart() -> None:
    scored = cells([1]) + cells([2], options={"variant": "stat"}) + cells([3], duration=5)
    assert {p.name for p in page(scored, "DRBL").panels} == {
        "DRBL 2 s",
        "DRBL variant=stat 2 s",
        "DRBL 5 s",
    }
    sides = page(cells([1], side="A") + cells([2], side="B"), "DRBL").panels[0]
    assert [c.name for c in sides.curves] == ["ext4 (A)", "ext4 (B)"]


def test_rows_are_written() -> None:
    scored = cells([100, 110, 90]) + cells([150, 180, 165], cores=2)
    described = {"DRBL": descriptor("DRBL")}
    table = rows(arrange(summarise(scored), ["ext4"], described), NAMES)
    base, top = csv.DictReader(io.StringIO(to_csv(COLUMNS, table)))
    assert (base["speedup"], float(top["speedup"])) == ("", pytest.approx(1.65))
    assert (top["cores"], float(top["low_per_second"]), top["spread"]) == ("2", 150, "min-max")
    assert json.loads(to_json(COLUMNS, table, missing=0))["data"] == table


def test_file_systems_keep_their_colours() -> None:
    alone, together = lines({"new": "green", "old": None}), lines({"a": None, "new": "green"})
    assert alone["new"] == together["new"]
    assert alone["new"].colour == SERIES["green"].light
    twice = lines({"one": "green", "two": "green", "three": "no such colour"})
    assert len(set(twice.values())) == 3
    assert len(lines({f"fs{i}": None for i in range(100)})) == 100
    many = lines({f"fs{i}": None for i in range(2 * len(SERIES))})
    assert len({(v.colour, v.marker, v.dashes) for v in many.values()}) == len(many)
    assert len(MARKERS) == len(SERIES)


def test_matrix_colours_are_red_for_loss_blue_for_linear() -> None:
    def channels(share: float) -> tuple[int, int, int]:
        fill = speedup_colours(share)[0]
        return int(fill[1:3], 16), int(fill[3:5], 16), int(fill[5:7], 16)

    red, _, blue = channels(-1)
    assert red > blue + 80
    red, _, blue = channels(1)
    assert blue > red + 80
    assert min(channels(0)) > 230
    assert speedup_colours(5) == speedup_colours(1)


DIGIT = 0.07  # inches


def test_labels_never_collide() -> None:
    assert core_ticks([1, 2], 1.3, DIGIT) == [1, 2]
    assert core_ticks([4], 1.3, DIGIT) == [4]
    eighty = core_ticks([1, 2, 4, 10, 20, 30, 40, 50, 60, 70, 80], 1.3, DIGIT)
    assert eighty[0] == 1
    assert eighty[-1] == 80
    assert min(b - a for a, b in pairwise(eighty)) >= 10


def test_units_and_numbers() -> None:
    assert scaled_unit(4.5e6, "ops") == (1e6, "M ops/s")
    assert scaled_unit(812, "MB") == (1, "MB/s")
    assert [rate(v) for v in (4_523_000, 999_600, 999.4, 12.34, 0.5)] == [
        "4.52 M",
        "1.00 M",
        "999",
        "12.3",
        "0.50",
    ]
    assert times(1.9731) == "1.97\u00d7"
    assert interval(Ratio(1.9, 1.854, 2.016)) == "1.85\u20132.02"
    assert [microseconds(s) for s in (2.21e-7, 4.15e-5)] == ["0.221", "41.5"]
    assert [span(s) for s in (0.04, 9.96, 570, 3725)] == [
        "0.0 s",
        "10 s",
        "9 min 30 s",
        "1 h 2 min",
    ]


def test_curve_names_a_later_peak_only_when_it_is_higher() -> None:
    curve = Curve("ext4", None, (point([5]), point([5], cores=2)), 1)
    assert curve.peak.key.cores == 1
    assert math.isclose(curve.linear, 2)
