# SPDX-License-Identifier: GPL-2.0-only
"""Claims are answered from made-up cells: they hold, do not hold, or cannot be asked."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from fscale.analysis.paper.judge import Answer, Verdict, answers
from fscale.analysis.reader import load
from fscale.analysis.report.reproduced import page
from fscale.model.paper import Paper
from fscale.model.results import Cell, CellKey
from tests.support import simulated_cells
from tests.support.synthetic import cell, grid, key, write_run

ABOUT = {"name": "a", "section": "4.2", "place": "figure 7", "says": "it is <fast>"}
RATIO = {"workloads": ["DRBL"], "new": "xfs", "base": "ext4", "ratio": 2.0, "cores": 4}
SHAPE = {"workloads": ["DRBL"], "filesystems": ["ext4"]}


def paper(**claim: Any) -> Paper:
    told = {"title": "t", "source": "A. Author", "setting": "80 cores", "cores": 80}
    return Paper.model_validate(
        told | {"claim": [ABOUT | claim], "stand_ins": {"xfs": "NewFS, which is not to be had"}}
    )


def answered(directory: Path, cells: Iterable[Cell], **claim: Any) -> Answer:
    asked = paper(**claim)
    (one,) = answers(asked, asked.claim, load(write_run(directory / "run", cells, cpus=80)))
    return one


def rates(xfs: float, noise: float = 0.0) -> list[Cell]:
    """At one and four cores: ext4 does 1000 per core, xfs so many times that."""

    def rate(of: CellKey) -> float:
        factor = xfs * (1 + noise * (of.repetition - 2)) if of.filesystem == "xfs" else 1
        return 1000.0 * of.cores * factor

    return grid((1, 4), 3, ["DRBL"], ["ext4", "xfs"], rate=rate)


@pytest.mark.parametrize(
    ("xfs", "noise", "verdict", "why"),
    [
        (2.0, 0, "holds", "holds from 1.60\u00d7 to 2.50\u00d7"),
        (1.5, 0, "does not hold", "the direction is the same"),
        (3.0, 0, "does not hold", "the direction is the same"),
        (0.5, 0, "does not hold", "holds from"),
        (2.0, 0.5, "undecided", "holds from"),
    ],
)
def test_a_ratio(tmp_path: Path, xfs: float, noise: float, verdict: Verdict, why: str) -> None:
    one = answered(tmp_path, rates(xfs, noise), **RATIO)
    assert (one.verdict, one.cores) == (verdict, 4)
    assert (one.theirs, one.asked_of) == (
        "NewFS / ext4 = 2 at 4 cores",
        "DRBL on xfs for NewFS / ext4",
    )
    assert why in one.why
    assert ("the direction is the same" in one.why) is (verdict == "does not hold" and xfs > 1)


def test_a_ratio_that_needs_more_cores_shows_ours_and_cannot_be_asked(tmp_path: Path) -> None:
    one = answered(tmp_path, rates(2), **RATIO | {"cores": 32})
    assert (one.verdict, one.cores) == ("cannot be asked here", 4)
    assert (one.ours, one.why[:14]) == ("2.00\u00d7", "needs 32 cores")


def test_what_was_disturbed_or_simulated_says_so(tmp_path: Path) -> None:
    cells = rates(2)
    cells[-1].disturbed = "a build"
    assert answered(tmp_path, cells, **RATIO).ours.endswith(
        "(other load disturbed 1 of 6 repetitions)"
    )
    curve = grid((1, 2), 1, ["DRBL"], ["ext4"], rate=lambda _: 1.0)
    made = {"simulation": simulated_cells.cell(1, 100, 1).simulation}
    simulated = [one.model_copy(update=made) for one in curve]
    one = answered(tmp_path / "simulated", simulated, **SHAPE | {"shape": "does not"})
    assert (one.verdict, one.ours[-12:]) == ("holds", " (simulated)")


def test_a_ratio_over_fewer_cores_of_the_same(tmp_path: Path) -> None:
    speedup = {"new": "ext4", "base": "ext4", "base_cores": 1, "ratio": 4}
    assert answered(tmp_path, rates(1), **RATIO | speedup).verdict == "holds"


def linear(cores: int) -> float:
    return 1000.0 * cores


def collapse(cores: int) -> float:
    return 1000.0 * (cores if cores <= 8 else 64 / cores)


def flat(_: int) -> float:
    return 1000.0


@pytest.mark.parametrize(
    ("rate", "cores", "claim", "verdict", "why"),
    [
        (linear, (1, 40), {"shape": "scales"}, "holds", ""),
        (linear, (1, 2), {"shape": "scales"}, "cannot be asked here", "needs 20 cores; so far it"),
        (flat, (1, 2), {"shape": "scales"}, "does not hold", "scaling differs"),
        (flat, (1, 2), {"shape": "does not"}, "holds", ""),
        (linear, (1, 2), {"shape": "does not", "turns": 30}, "cannot be asked here", "needs 60"),
        (flat, (1, 2), {"shape": "does not", "turns": 10}, "does not hold", "turn differs"),
        (lambda n: 1000 * n**0.8, (1, 40), {"shape": "scales"}, "undecided", "neither scales"),
    ],
)
def test_a_shape(
    tmp_path: Path,
    rate: Callable[[int], float],
    cores: tuple[int, ...],
    claim: dict[str, Any],
    verdict: Verdict,
    why: str,
) -> None:
    cells = grid(cores, 3, ["DRBL"], ["ext4"], rate=lambda of: rate(of.cores))
    one = answered(tmp_path, cells, **SHAPE | claim)
    assert (one.verdict, one.cores) == (verdict, cores[-1])
    assert why in one.why


@pytest.mark.parametrize(("then", "verdict"), [("falls", "holds"), ("flat", "does not hold")])
def test_a_slope_behind_the_peak(tmp_path: Path, then: str, verdict: Verdict) -> None:
    cells = grid((1, 8, 16, 40), 3, ["DRBL"], ["ext4"], rate=lambda of: collapse(of.cores))
    claim = SHAPE | {"shape": "does not", "turns": 8, "then": then}
    assert answered(tmp_path, cells, **claim).verdict == verdict


def test_what_was_not_measured_says_why(tmp_path: Path) -> None:
    cells = rates(1)[:6]  # ext4 alone
    assert answered(tmp_path, cells, **RATIO).why.startswith("it was not measured")
    gone = key(filesystem="xfs", cores=4)
    skipped = cell(gone, 1, status="skipped", reason="the kernel has no xfs")
    one = answered(tmp_path, [*cells, skipped], **RATIO)
    assert (one.verdict, one.ours) == ("cannot be asked here", "")
    assert (one.why, one.asked_of) == ("the kernel has no xfs", "DRBL on xfs for NewFS / ext4")
    asked = paper(cannot="it is a picture")
    (never,) = answers(asked, asked.claim, None)
    assert (never.verdict, never.why) == ("cannot be asked here", "it is a picture")


def test_the_page_has_theirs_and_ours(tmp_path: Path) -> None:
    asked = paper(**RATIO)
    results = load(write_run(tmp_path, rates(2), suite={"duration": 1, "repetitions": 3}))
    text = page(asked, answers(asked, asked.claim, results), results)
    assert "<strong>holds: 1</strong>" in text
    assert "xfs stands for NewFS, which is not to be had." in text
    assert "= 2 at 4 cores: it is &lt;fast&gt;" in text
    assert "0.0.0-synthetic" in text
    assert "Cannot be asked here" not in text
    nothing = page(asked, answers(asked, asked.claim, None, "no"), None)
    assert "Nothing was measured" in nothing and "<h3>Cannot be asked here</h3>" in nothing
