# SPDX-License-Identifier: GPL-2.0-only
"""Sample sets with the verdict that each must get."""

import json
import math
from pathlib import Path

import pytest

from analysis.compare.judge import judge
from analysis.compare.pairs import pair
from analysis.compare.settings import THROUGHPUT, Settings
from fscale.model.errors import FscaleError
from fscale.model.results import Cell, CellKey
from tests.synthetic import cell

GOLDEN = Path(__file__).parents[1] / "golden" / "compare"


def cells(values: list[float | None]) -> list[Cell]:
    found = []
    for repetition, value in enumerate(values, 1):
        key = CellKey(
            workload="MWCL",
            filesystem="ext4",
            medium="ram",
            mode="buffered",
            cores=1,
            repetition=repetition,
            duration=1,
        )
        # Without CPU time there is one metric, so that the family is one test.
        made = cell(key, value or 1.0, own_cpu_seconds=None)
        made.ops_per_second = math.nan if value is None else value
        found.append(made)
    return found


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda p: p.stem)
def test_golden(path: Path) -> None:
    case = json.loads(path.read_text())
    pairing = pair(
        cells(case["base"]), cells(case["new"]), interleaved=case.get("interleaved", False)
    )
    tests = [t for t in pairing.tests if t.metric == THROUGHPUT]
    if case["expected"] == "refused":
        with pytest.raises(FscaleError, match=case["message"]):
            judge(tests, Settings())
        return
    (judgement,) = judge(tests, Settings())
    assert judgement.verdict == case["expected"], judgement
    assert case.get("reason", "") in judgement.reason
    for side in ("base", "new"):
        measured = getattr(judgement, side)
        assert measured.outliers == case.get(f"{side}_outliers", measured.outliers)
        assert measured.unusable == case.get(f"{side}_unusable", 0)
        # Whatever is unusual about a value, it stays in the data.
        assert list(measured.values.values()) == [v for v in case[side] if v is not None]
