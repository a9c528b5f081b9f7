# SPDX-License-Identifier: GPL-2.0-only
"""What a comparison's ratios are drawn from: dots, blocks, interval, margin, names."""

import json
import math
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.transforms import Bbox

from fscale.analysis.compare import ratios as drawing
from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.model import Comparison
from fscale.analysis.compare.ratios import Ratios, ratios
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import Sides, open_sides
from fscale.analysis.report.ratioplot import REACH, ratio_figure, reach
from fscale.analysis.style import RC
from fscale.model.results import Cell
from tests.support.synthetic import cell, key, sliced, write_run


def judged(directory: Path, cells: list[Cell]) -> tuple[Sides, Comparison]:
    write_run(directory, cells, workloads=("DRBL",), filesystems=("ext4",))
    record = {"base": "ext4", "new": "ext4", "looks": []}
    (directory / "ab.json").write_text(json.dumps(record))
    sides = open_sides(directory, None)
    return sides, compare(sides, Settings())


def drawn(directory: Path, cells: list[Cell]) -> dict[str, list[Ratios]]:
    return ratios(*judged(directory, cells))


def both(repetition: int, change: float, blocks: int = 6, **fields: Any) -> list[Cell]:
    """A pair whose blocks differ by one in a thousand."""
    rates = [1e6 * (1 + block / 1000) for block in range(blocks)]
    return [
        sliced(key(repetition, side=side, **fields), [rate * factor for rate in rates])
        for side, factor in (("A", 1.0), ("B", change))
    ]


CHANGES = (0.9, 0.91, 0.89, 0.9, 0.92, 0.88)


def test_a_pair_is_a_dot_and_its_blocks_are_ticks(tmp_path: Path) -> None:
    cells = [c for i, change in enumerate(CHANGES, 1) for c in both(i, change)]
    found = drawn(tmp_path, cells)
    assert list(found) == ["throughput", "per-cpu-second"]
    (row,) = found["throughput"]
    assert [dot.ratio for dot in row.dots] == pytest.approx(list(CHANGES), rel=1e-4)
    assert row.dots[1].label == "pair 2: -9.0%, 6 blocks"
    assert len(row.ticks) == 6 * len(CHANGES)
    assert min(row.ticks) == pytest.approx(0.88, rel=1e-4)
    assert row.margins == pytest.approx((0.98, 1 / 0.98))
    assert row.remark == "-10.0% slower"
    assert row.label.startswith("DRBL, ext4 on ram, buffered, 1 core: -10.0% [")


def test_of_too_many_blocks_only_the_pairs_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [c for i, change in enumerate(CHANGES, 1) for c in both(i, change)]
    monkeypatch.setattr(drawing, "MOST_TICKS", 2 * 6 * len(CHANGES) - 1)
    (row,) = drawn(tmp_path, cells)["throughput"]
    assert row.ticks == ()
    assert len(row.dots) == len(CHANGES)


def test_a_block_of_whole_repetitions_is_a_dot(tmp_path: Path) -> None:
    cells = [
        cell(key(r, side=side), (1000 + r) * (0.8 if side == "B" and r > 4 else 1.0))
        for r in range(1, 10)
        for side in "AB"
    ]
    (row,) = drawn(tmp_path, cells)["throughput"]
    assert [dot.ratio for dot in row.dots] == pytest.approx([1, 0.8])
    # The ninth repetition is no block of its own.
    assert row.dots[1].label == "block 2: -20.0%, 5 and 5 repetitions"
    assert row.ticks == ()


def test_runs_that_were_not_interleaved_have_no_dots(tmp_path: Path) -> None:
    for name, factor in (("a", 1.0), ("b", 0.8)):
        cells = [cell(key(r), factor * (1000 + r)) for r in range(1, 13)]
        write_run(tmp_path / name, cells, workloads=("DRBL",))
    sides = open_sides(tmp_path / "a", tmp_path / "b")
    (row,) = ratios(sides, compare(sides, Settings()))["throughput"]
    assert row.dots == ()
    assert row.judgement.ratio == pytest.approx(0.8, rel=0.01)


def test_names_say_what_is_not_the_same_in_all(tmp_path: Path) -> None:
    cells = [
        c
        for i, change in enumerate(CHANGES, 1)
        for fields in ({"cores": 1}, {"cores": 2, "mode": "direct", "options": {"size": 4}})
        for c in both(i, change, **fields)
    ]
    found = drawn(tmp_path, cells)["throughput"]
    assert sorted(row.name for row in found) == [
        "DRBL ext4 buffered, 1 core", "DRBL ext4 direct size=4, 2 cores",
    ]  # fmt: skip


def test_all_but_stray_blocks_is_on_the_axis(tmp_path: Path) -> None:
    cells = [c for i, change in enumerate(CHANGES, 1) for c in both(i, change)]
    found = drawn(tmp_path, cells)["throughput"]
    low, high = reach(found)
    (row,) = found
    judgement = row.judgement
    assert judgement.low is not None
    assert low < min(0.88, judgement.low)
    assert high > max(row.margins[1], 1 + REACH)
    assert math.isfinite(low)


@pytest.mark.parametrize("option", [4, "a long value of an option " * 8])
def test_words_of_the_still_drawing_lie_over_no_band(tmp_path: Path, option: int | str) -> None:
    cells = [
        c
        for i, change in enumerate(CHANGES, 1)
        for cores in (1, 2, 80)
        for c in both(i, change, cores=cores, options={"size": option})
    ]
    rows = drawn(tmp_path, cells)["throughput"]
    with mpl.rc_context(RC):
        figure = ratio_figure(rows)
        figure.set_dpi(720)  # at which letters are as wide as in an SVG
        FigureCanvasAgg(figure).draw()
        (ax,) = figure.axes
        words = [text.get_window_extent() for text in ax.texts]
        bands = [band.get_window_extent() for band in ax.patches]
        ticks = [label.get_window_extent() for label in ax.get_xticklabels() if label.get_text()]
        marks = [line.get_window_extent() for line in ax.lines]
    assert (len(words), len(bands)) == (2 * len(rows), len(rows))
    for box in words:
        assert 0 <= box.x0 <= box.x1 <= figure.bbox.x1
        assert box.y1 <= figure.bbox.y1
        for other in [*words, *bands, *ticks, *marks]:
            assert other is box or Bbox.intersection(box, other) is None
