# SPDX-License-Identifier: GPL-2.0-only
"""Sample sets with the verdict that each must get, and the figures that they gave when recorded.

`PYTHONPATH=. python tests/unit/analysis/compare/test_golden.py` records the figures anew.
"""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from fscale.analysis.compare.judge import judge
from fscale.analysis.compare.model import Judgement
from fscale.analysis.compare.pairs import match_cells, pair
from fscale.analysis.compare.settings import Settings
from fscale.analysis.metrics import THROUGHPUT
from fscale.model import paths
from fscale.model.errors import FscaleError
from fscale.model.results import Cell
from tests.support import synthetic
from tests.support.golden import format_golden
from tests.support.synthetic import cell

GOLDEN = paths.ROOT / "tests" / "golden" / "compare"


def cells(values: list[float | None]) -> list[Cell]:
    found = []
    for repetition, value in enumerate(values, 1):
        key = synthetic.key(repetition, workload="MWCL")
        # Without CPU time there is one metric, so that the family is one test.
        made = cell(key, value or 1.0, own_cpu_seconds=None)
        made.ops_per_second = math.nan if value is None else value
        found.append(made)
    return found


def throughputs(case: dict[str, Any]) -> list[Any]:
    base, new = cells(case["base"]), cells(case["new"])
    pairing = pair(match_cells(base, new), interleaved=case.get("interleaved", False))
    return [t for t in pairing.tests if t.metric == THROUGHPUT]


def figures(judgement: Judgement) -> dict[str, Any]:
    """What it rests on, to five digits."""
    found = judgement.model_dump(
        include={
            *("ratio", "low", "high", "level", "p", "q", "margin", "reason"),
            *("more_repetitions", "smallest_change"),
        }
    )
    found |= {f"base_{name}": getattr(judgement.base, name) for name in ("median", "cv")}
    found |= {f"new_{name}": getattr(judgement.new, name) for name in ("median", "cv")}
    return {k: float(f"{v:.5g}") if isinstance(v, float) else v for k, v in found.items()}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda p: p.stem)
def test_golden(path: Path) -> None:
    case = json.loads(path.read_text())
    tests = throughputs(case)
    if case["expected"] == "refused":
        with pytest.raises(FscaleError, match=case["message"]):
            judge(tests, Settings())
        return
    (judgement,) = judge(tests, Settings())
    assert judgement.verdict == case["expected"], judgement
    found, recorded = figures(judgement), case["figures"]
    # A reason is a sentence; its words are not recorded.
    assert bool(found.pop("reason")) == bool(recorded.pop("reason"))
    for name in found | recorded:
        if isinstance(found[name], float):
            recorded[name] = pytest.approx(recorded[name], rel=1e-4)
    assert found == recorded
    for side in ("base", "new"):
        measured = getattr(judgement, side)
        assert measured.outliers == case.get(f"{side}_outliers", measured.outliers)
        assert measured.unusable == case.get(f"{side}_unusable", 0)
        # Whatever is unusual about a value, it stays in the data.
        assert list(measured.values.values()) == [v for v in case[side] if v is not None]


if __name__ == "__main__":
    for path in GOLDEN.glob("*.json"):
        case = json.loads(path.read_text())
        if case["expected"] != "refused":
            (judgement,) = judge(throughputs(case), Settings())
            path.write_text(format_golden(case | {"figures": figures(judgement)}))
