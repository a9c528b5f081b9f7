# SPDX-License-Identifier: GPL-2.0-only
"""The table that answers what scales, and what stops the rest."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from fscale.analysis.members import Member, NamedRun
from fscale.analysis.reader import load
from fscale.analysis.report import answer, build, build_several, diagnosis, headline
from fscale.analysis.report.section import Report
from fscale.analysis.style import SERIES
from fscale.model.results import Cell, CellKey
from tests.support.pages import text_of
from tests.support.synthetic import cell, key, write_run

pytestmark = pytest.mark.slow

LEAF = "d_move"  # takes rename_lock


def curve(rates: dict[int, float], **where: Any) -> list[Cell]:
    changes = {"disturbed": where.pop("disturbed", None)}
    return [
        cell(key(r, **({"workload": "MWRL"} | where), cores=n), rate, **changes)
        for n, rate in rates.items()
        for r in (1, 2)
    ]


def lock_profile(run: Path, where: CellKey, waited: int, other: int = 0) -> Cell:
    """A cell whose lock profile has `waited` of 1000 ns on rename_lock, and `other` elsewhere."""
    (run / "profiles").mkdir(parents=True, exist_ok=True)
    name = f"profiles/{where.id}.json.gz"
    wait = {
        f"1,-{n},_raw_spin_lock\n{leaf}\n": {"count": 1, "total": total}
        for n, (leaf, total) in enumerate({LEAF: waited, "elsewhere": other}.items(), 9)
        if total
    }
    maps = {"type": "stats", "data": {"@wait": wait, "@active": 1000}}
    (run / name).write_bytes(gzip.compress(json.dumps({"output": json.dumps(maps)}).encode()))
    return cell(where, 1.0 + waited, profiles={"locks": name})


def written(directory: Path, cells: list[Cell]) -> Report:
    run = write_run(directory, cells, workloads=["MWRL", "MWCL", "MWCM"], cpus=8)
    return Report((Member(load(run)),), directory)


def test_the_sentence_counts_each_curve_once(tmp_path: Path) -> None:
    report = written(
        tmp_path,
        [
            *curve({1: 100, 4: 390}),
            *curve({1: 100, 4: 200}, filesystem="xfs"),
            *curve({1: 100, 4: 101}, filesystem="btrfs"),
            *curve({1: 100, 4: 50}, workload="MWCL"),
            *curve({1: 100, 4: 40}, workload="MWCM"),
            *curve({1: 100, 4: 900}, filesystem="tmpfs"),
        ],
    )
    (page,) = report.pages
    assert answer.sentence(page) == (
        "Of 6 curves up to 4 cores, 2 fall, 1 shows no clear change, 1 stays well below linear, 1 "
        "scales, 1 is faster than linear, which is doubtful; lowest: MWCM on ext4, 0.4 times the "
        "throughput of 1 core with 4."
    )
    rows = answer.rows(report, page)
    cells = {(r.panel.name, a.curve.filesystem): a for r in rows for a in r.answers if a}
    assert len(cells) == 6
    assert [a for row in rows for a in row.answers].count(None) == 2 * 4 - 2
    # What cannot be judged has no colour, so it looks like no verdict.
    assert {name for (_, name), a in cells.items() if a.colours is None} == {"tmpfs"}
    (start, _), (end, high) = (
        tuple(map(float, p.split(","))) for p in cells["MWRL", "ext4"].measured.split()
    )
    assert (start, end) == (0, answer.WIDTH)
    assert high == pytest.approx(answer.HEIGHT * (1 - 1 / answer.TOP), abs=0.01)


def test_a_curve_without_its_base_has_no_verdict(tmp_path: Path) -> None:
    cells = [*curve({2: 100, 4: 150}), *curve({1: 100, 4: 150}, filesystem="xfs")]
    report = written(tmp_path, cells)
    words = text_of(build(tmp_path))
    assert "no base" in words
    (row,) = answer.rows(report, report.pages[0])
    assert [a.found is None for a in row.answers if a] == [True, False]


def test_a_cell_names_the_object_and_the_evidence_stands_below_the_curve(tmp_path: Path) -> None:
    top = key(workload="MWRL", cores=4, profile="locks")
    cells = [
        *curve({1: 100, 2: 150, 4: 60}),
        lock_profile(tmp_path, top, 500),
        lock_profile(tmp_path, top.model_copy(update={"cores": 2}), 200),
        lock_profile(tmp_path, top.model_copy(update={"workload": "MWCM"}), 200),
    ]
    html = build(write_run(tmp_path, cells, workloads=["MWRL"], cpus=8)).read_text()
    cell_html = re.findall(r"<td.*?</td>", html, re.DOTALL)[0]
    assert "falls" in cell_html
    assert "peak at 2" in cell_html
    (anchor,) = re.findall(r'href="#(why-\d+)">rename_lock, 50%', cell_html)
    figure = re.findall(r'<figure id="panel.*?</figure>', html, re.DOTALL)[0]
    assert f'<div id="{anchor}">' in figure
    assert "because of rename_lock: 50.0%" in figure
    assert figure.count("<template data-diagnosis") == 1
    # A point that was profiled and not scored has no curve to stand below.
    assert html.count("<h3>Points without a curve</h3>") == 1
    assert html.count("<details data-diagnosis") == 2


@pytest.mark.parametrize(
    ("waited", "other", "rate", "said"),
    [
        (60, 50, 60, "possibly rename_lock, 6%"),
        (60, 0, 60, "rename_lock, 6%"),
        (40, 0, 60, "no object explains it"),
        (40, 0, 390, None),  # nothing is to be explained
    ],
)
def test_the_object_is_told_as_far_as_it_is_known(
    tmp_path: Path, waited: int, other: int, rate: float, said: str | None
) -> None:
    top = key(workload="MWRL", cores=4, profile="locks")
    cells = [*curve({1: 100, 4: rate}), lock_profile(tmp_path, top, waited, other)]
    report = written(tmp_path, cells)
    html = answer.table(report)
    assert html is not None
    assert re.findall(r'href="#why-0">(.*?)</a>', html) == ([said] if said else [])


def test_evidence_of_a_curve_on_two_pages_stands_once(tmp_path: Path) -> None:
    there = {"filesystem": "tmpfs", "medium": "none"}
    cells = [
        *curve({1: 100, 2: 60}, **there),
        lock_profile(tmp_path, key(workload="MWRL", cores=2, profile="locks", **there), 500),
        *curve({1: 100, 2: 150}, medium="ram"),
        *curve({1: 100, 2: 150}, medium="disk"),
    ]
    html = build(write_run(tmp_path, cells, workloads=["MWRL"], cpus=8)).read_text()
    assert len(re.findall(r'href="#why-0">rename_lock', html)) == 2
    assert html.count('id="why-0"') == 1


def test_several_runs_have_their_own_evidence(tmp_path: Path) -> None:
    for label, waited in (("a", 300), ("b", 600)):
        run = tmp_path / label
        cells = [
            *curve({1: 100 + waited, 2: 60 + waited}),
            lock_profile(run, key(workload="MWRL", cores=2, profile="locks"), waited),
        ]
        write_run(run, cells, workloads=["MWRL"], cpus=8, id=label)
    named = [NamedRun(tmp_path / label, label) for label in ("a", "b")]
    html = build_several(named, tmp_path / "out").read_text()
    found = re.findall(r'href="#(why-\d)">rename_lock, (\d+)%', html)
    assert found == [("why-0", "30"), ("why-1", "60")]
    assert re.findall(r'<div id="(why-\d)"', html) == ["why-0", "why-1"]


@pytest.mark.parametrize(("load", "marked"), [({"xfs"}, True), ({"xfs", "ext4"}, False)])
def test_disturbance_is_marked_by_cell_or_said_once(
    tmp_path: Path, load: set[str], marked: bool
) -> None:
    cells = [
        one
        for name in ("ext4", "xfs", "btrfs", "tmpfs", "f2fs")
        for one in curve(
            {1: 100, 2: 150}, filesystem=name, disturbed="others" if name in load else None
        )
    ]
    report = written(tmp_path, cells)
    html = build(tmp_path).read_text()
    assert answer.mostly_disturbed(report) is not marked
    assert ("\u00d7</b>* gains" in html) == marked
    assert any("Other processes disturbed" in one for one in headline.limits(report)) != marked


def test_nothing_profiled_is_said_and_how_to_profile(tmp_path: Path) -> None:
    report = written(tmp_path, curve({1: 100, 2: 60}))
    assert report.diagnosed == {}
    assert diagnosis.SECTION.build(report) is None
    assert "--profile locks,cpu,offcpu" in text_of(build(tmp_path))


def test_a_file_system_without_configuration_has_the_colour_of_its_name(tmp_path: Path) -> None:
    run = write_run(tmp_path, curve({1: 100, 2: 60}), workloads=["MWRL"], filesystems=["ext4"])
    report = Report((Member(load(run)),), tmp_path)
    assert "colour" not in report.results.run.filesystems["ext4"]
    assert report.lines["ext4"].colour == SERIES["blue"].light
