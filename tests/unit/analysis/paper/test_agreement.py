# SPDX-License-Identifier: GPL-2.0-only
"""What FxMark's paper says, and our curves beside it."""

import itertools
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from fscale.analysis.curves import arrange
from fscale.analysis.paper.agreement import (
    Agreement,
    Verdict,
    compare_with_paper,
    other_operations,
    right_shapes,
    with_turns,
)
from fscale.analysis.paper.statements import statements
from fscale.analysis.report import build
from fscale.analysis.summary import summarise
from fscale.apps.exim import driver as exim
from fscale.model.paths import ROOT
from fscale.model.results import CellKey
from tests.support.synthetic import PAPER, cell, descriptor, grid, key, machine, write_run

pytestmark = pytest.mark.slow

FILESYSTEMS = ("tmpfs", "ext4", "ext4_nj", "xfs", "btrfs", "f2fs")
Rate = Callable[[int], float]


def linear(cores: int) -> float:
    return 1000.0 * cores


def flat(_: int) -> float:
    return 1000.0


def peak(at: int) -> Rate:
    return lambda cores: 1000.0 * (cores if cores <= at else at * at / cores)


def laid(
    workload: str, rate: Rate, cores: tuple[int, ...], filesystem: str = "ext4", noise: float = 0.0
) -> Agreement:
    """The one curve of such a run beside the paper."""

    def drawn(key: CellKey) -> float:
        return rate(key.cores) * (1 + noise * (key.repetition - 2))

    cells = grid(cores, 3, [workload], [filesystem], rate=drawn)
    (page,) = arrange(summarise(cells), [filesystem], {workload: descriptor(workload)})
    (one,) = compare_with_paper(page)
    return one


def test_every_workload_of_the_paper_has_its_file_systems() -> None:
    said = {(w, fs) for w, fs, mode in statements() if mode == "buffered" and w in PAPER}
    assert said == set(itertools.product(PAPER, FILESYSTEMS))


def test_right_shapes_beside_those_of_trivial_predictors() -> None:
    def no_longer(cores: int) -> float:
        return 1000.0 * min(cores, 2)

    counts = (1, 2, 40)
    rows = [
        laid("DRBL", linear, counts),  # the paper: scales
        laid("DRBL", flat, counts),
        laid("DRBH", flat, counts),  # the paper: does not
        laid("DRBH", no_longer, counts),  # linear through one and two cores
    ]
    assert list(right_shapes(rows).values()) == [3, 2, 2, 2]


def test_the_slope_behind_the_peak() -> None:
    counts = (1, 2, 8, 40)
    assert laid("DRBH", linear, counts).ours.behind is None
    assert laid("DRBH", peak(8), counts).ours.behind == "falls"
    assert laid("DRBH", lambda n: 1000.0 * min(n, 8), counts).ours.behind == "flat"


def docs_rows() -> list[tuple[str, str, list[str]]]:
    """Workload, what the paper says and the file systems of the tables of the evidence."""
    found = []
    columns: list[str] = []
    for line in (ROOT / "docs/design/simulator-paper.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[:2] == ["workload", "paper"]:
            columns = [name.lower() for name in cells[2:]]
        elif columns and cells[0] in PAPER:
            found.append((cells[0], cells[1], columns))
        elif not line.startswith("|"):
            columns = []
    return found


def shape_in(text: str, filesystem: str) -> str:
    """Of a file system in words such as "scales, on ext4 not" and "on XFS scales, others not"."""
    if match := re.fullmatch(r"(?:on )?(\w+) scales, others not", text):
        return "scales" if match[1].lower() == filesystem else "does not"
    if match := re.fullmatch(r"scales, on (\w+) not", text):
        return "does not" if match[1].lower() == filesystem else "scales"
    return re.sub(r" \(figure \d\)", "", text)


def test_the_docs_say_the_same_of_the_paper() -> None:
    rows = docs_rows()
    assert len(rows) == 2 * len(PAPER)
    for workload, text, columns in rows:
        for filesystem in columns:
            said = statements()[workload, filesystem, "buffered"].shape
            assert shape_in(text, filesystem) == said, (workload, filesystem)


MANY = (1, 2, 4, 8, 16, 32, 64, 80)


@pytest.mark.parametrize(
    ("workload", "rate", "cores", "verdict"),
    [
        ("DRBL", linear, MANY, "agrees"),
        ("DRBL", flat, MANY, "differs"),
        ("DRBL", lambda n: 1000 * n**0.8, MANY, "neither"),
        ("DRBL", linear, (1, 2), "agrees so far"),
        ("DRBL", flat, (1, 2), "differs"),
        ("DRBH", flat, MANY, "agrees"),
        ("DRBH", linear, MANY, "differs"),
        ("DRBH", lambda n: 1000 * n**0.8, MANY, "neither"),
        ("DRBH", linear, (1, 2), "too few cores"),
        ("DRBH", linear, (1, 16), "too few cores"),
        ("DRBH", linear, (1, 20), "differs"),
        ("DRBH", flat, (1, 2), "agrees"),
        ("MWCM", linear, (1, 16), "too few cores"),
        ("MWCM", linear, (1, 20), "differs"),
    ],
)
def test_shapes(workload: str, rate: Rate, cores: tuple[int, ...], verdict: Verdict) -> None:
    assert laid(workload, rate, cores).verdict == verdict


def test_a_noisy_curve_is_not_one_without_a_gain() -> None:
    assert laid("DRBL", flat, (1, 2), noise=0.1).verdict == "neither"


@pytest.mark.parametrize(
    ("rate", "cores", "verdict"),
    [
        (peak(10), (1, 5, 10, 20, 80), "agrees"),
        (peak(8), MANY, "agrees"),
        (peak(2), MANY, "differs"),
        (flat, (1, 2), "differs"),
        (linear, (1, 2, 8), "too few cores"),
        (lambda n: 1000 * n**0.3, (1, 2), "too few cores"),
        (lambda n: 1000 * min(n, 8), (1, 8, 16), "too few cores"),
        (linear, MANY, "differs"),
        (peak(4), (1, 4, 8), "differs"),
        (peak(8), (1, 4, 8, 16), "agrees"),
    ],
)
def test_turns(rate: Rate, cores: tuple[int, ...], verdict: Verdict) -> None:
    assert laid("DRBH", rate, cores).turn == verdict


def test_a_curve_that_turns_nowhere_in_the_paper_has_no_turn() -> None:
    assert laid("MRPH", flat, MANY).turn is None


def test_marks_stand_where_the_paper_turns_and_the_run_reaches() -> None:
    for most, turns in ((8, ()), (16, (10,)), (80, (10, 50))):
        cores = [n for n in MANY if n <= most]
        cells = grid(cores, 1, ["DWAL"], ["tmpfs", "ext4"])
        (page,) = arrange(summarise(cells), ["tmpfs", "ext4"], {"DWAL": descriptor("DWAL")})
        assert [panel.turns for panel in with_turns(page).panels] == [turns]


def test_what_the_paper_did_not_measure_is_left_out() -> None:
    cells = grid((1, 2), 1, ["DRBL"], ["lanefs"])
    cells += [
        c.model_copy(update={"key": c.key.model_copy(update=changes)})
        for changes in ({"side": "A"}, {"options": {"size": 1}})
        for c in grid((1, 2), 1, ["DRBL"], ["ext4"])
    ]
    for page in arrange(summarise(cells), ["ext4"], {"DRBL": descriptor("DRBL")}):
        assert compare_with_paper(page) == []


def test_an_operation_that_is_not_the_papers_is_named_and_not_judged(tmp_path: Path) -> None:
    cells = grid((1, 2), 1, ["DRBL"], ["ext4"])
    cells += [cell(key(cores=n, workload="MWCL", options={"keep": 10}), 1000 * n) for n in (1, 2)]
    described = {name: descriptor(name) for name in ("DRBL", "MWCL")}
    (page,) = arrange(summarise(cells), ["ext4"], described)
    assert [row.panel.name for row in compare_with_paper(page)] == ["DRBL"]
    assert other_operations(page) == ["MWCL keep=10"]
    run = write_run(tmp_path / "run", cells, workloads=["DRBL", "MWCL"])
    assert "Not compared with the paper: MWCL keep=10." in build(run, paper=True).read_text()


@pytest.mark.parametrize(("options", "others"), [({"fsync": "off"}, []), ({}, ["exim"])])
def test_the_papers_exim_does_no_fsync(options: dict[str, int | str], others: list[str]) -> None:
    cells = [cell(key(cores=n, workload="exim", options=options), 1000 * n) for n in (1, 2)]
    (page,) = arrange(summarise(cells), ["ext4"], {"exim": exim.DESCRIPTOR})
    assert len(compare_with_paper(page)) == 1 - len(others)
    assert other_operations(page) == others


def test_the_report_has_the_paper_when_asked(tmp_path: Path) -> None:
    cells = grid((1, 2), 3, ["DRBL", "DRBH"], ["tmpfs", "ext4"], rate=lambda k: linear(k.cores))
    run = write_run(tmp_path / "run", cells, workloads=["DRBL", "DRBH"])
    assert "FxMark's paper" not in build(run).read_text().replace("&#39;", "'")
    text = build(run, tmp_path / "out", paper=True).read_text()
    words = " ".join(re.sub(r"<[^>]+>", " ", text).split())
    assert ": agrees so far 2, too few cores 2." in words
    assert "all test file systems scale nearly linearly" in words


@pytest.mark.parametrize(("line", "on"), [("quiet lsm=none", False), ("quiet", True)])
def test_a_simulated_kernel_with_a_security_module_is_not_the_papers(
    tmp_path: Path, line: str, on: bool
) -> None:
    simulated = machine(2).model_copy(
        update={"guest": {"accelerator": "simulated"}, "kernel_cmdline": line}
    )
    assert simulated.labels is on
    run = write_run(tmp_path / "run", grid((1, 2), 1, ["DRBL"], ["ext4"]), machine=simulated)
    text = build(run, paper=True).read_text()
    assert ("<code>--append lsm=none</code>" in text) is on


def test_a_run_that_the_paper_does_not_know_says_so(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", grid((1, 2), 1, ["DRBL"], ["lanefs"]), workloads=["DRBL"])
    assert "The paper makes no statement" in build(run, paper=True).read_text()
