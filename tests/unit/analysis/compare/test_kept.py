# SPDX-License-Identifier: GPL-2.0-only
"""Real comparisons of each way, kept without what no judge reads: the verdicts that they had.

tests/golden/comparisons/verdicts.json is of 26 November 2026 and of revision ea99008, in which each
way had a judge of its own: point and metric -> verdict and ratio. That judge asked for no amount of
work; today's default does (`Settings.pause`), and calls nothing the same after a second of it.
"""

import json
from pathlib import Path

import pytest

from docs.scripts.unpack import unpack
from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.model import paths

KEPT = paths.ROOT / "tests" / "golden" / "comparisons"
VERDICTS = json.loads((KEPT / "verdicts.json").read_text())


def unpacked(name: str, directory: Path) -> Path:
    """The results directory of a kept comparison."""
    return unpack(KEPT / f"{name}.json.gz", directory / name)


def test_each_way_has_one() -> None:
    assert {path.name.removesuffix(".json.gz") for path in KEPT.glob("*.gz")} == set(VERDICTS)


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts_are_what_they_were(name: str, tmp_path: Path) -> None:
    sides = open_sides(unpacked(name, tmp_path), None)
    found = compare(sides, Settings(pause=0), refuse_few=False)
    assert {
        f"{one.subject.name} {one.metric}": [one.verdict, pytest.approx(one.ratio, rel=1e-9)]
        for one in found.judgements
    } == VERDICTS[name]
    assert found.policy == ("counted" if name == "gate" else "noisy")
    assert found.regressed is any(
        verdict in ("slower", "more", "newly shared") for verdict, _ in VERDICTS[name].values()
    )


def test_same_in_little_work_is_undecided_by_default(tmp_path: Path) -> None:
    found = compare(open_sides(unpacked("ab-slices-same", tmp_path), None), Settings())
    assert not found.count("same")
    assert any(one.rare_operations for one in found.judgements)
