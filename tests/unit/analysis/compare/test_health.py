# SPDX-License-Identifier: GPL-2.0-only
"""Which points broke, were lost or mended, by what each side's repetitions were."""

import pytest

from fscale.analysis.compare.health import health, is_broken
from fscale.analysis.compare.model import Tally
from fscale.analysis.compare.pairs import match_cells
from fscale.analysis.formats.outcome import outcome
from fscale.model.results import Cell
from tests.support.synthetic import cell, key

KINDS = {
    "g": {},
    "b": {"status": "error", "reason": "EIO"},
    "u": {"status": "skipped", "reason": "no mkfs"},
    "i": {"status": "interrupted"},
    "v": {"status": "invalid"},
}


def side(letters: str, **changes: object) -> list[Cell]:
    """A repetition for each letter: good, broken, unusable, interrupted, invalid."""
    return [cell(key(n, **changes), 100.0, **KINDS[k]) for n, k in enumerate(letters, 1)]


@pytest.mark.parametrize(
    ("base", "new", "expected"),
    [
        ("gg", "gg", None),
        ("gg", "gb", ("broken", "EIO")),
        ("gg", "ub", ("broken", "EIO")),
        ("gg", "gu", None),
        ("gg", "gv", None),
        ("gg", "uu", ("lost", "skipped: no mkfs")),
        ("gg", "i", ("lost", "interrupted: interrupted")),
        ("gb", "gb", None),
        ("gb", "ub", ("lost", "skipped: no mkfs")),
        ("gb", "bb", ("lost", "EIO")),
        ("gb", "gg", ("mended", "EIO")),
        ("bb", "gu", ("mended", "EIO")),
        ("bb", "gb", None),
        ("bb", "uu", None),
        ("uu", "gg", None),
        ("uu", "bb", None),
        ("", "bb", None),
    ],
)
def test_what_a_points_repetitions_make_of_it(
    base: str, new: str, expected: tuple[str, str] | None
) -> None:
    found = health(match_cells(side(base), side(new)), lost_in_new=True)
    assert [(h.kind, h.reason) for h in found] == ([expected] if expected else [])
    for point in found:
        assert (point.base, point.new) == (tally(base), tally(new))


def tally(letters: str) -> Tally:
    return Tally(
        good=letters.count("g"),
        broken=letters.count("b"),
        unusable=letters.count("u") + letters.count("i"),
    )


def test_a_point_of_base_alone_is_lost_only_where_new_lost_cells() -> None:
    (point,) = health(match_cells(side("gu"), []), lost_in_new=True)
    assert (point.kind, point.reason) == ("lost", "it was not measured")
    assert (point.base, point.new) == (tally("gu"), tally(""))
    assert health(match_cells(side("gg"), []), lost_in_new=False) == []
    assert health(match_cells(side("uu"), []), lost_in_new=True) == []


def test_points_are_told_apart_and_come_by_name() -> None:
    base = side("g", workload="MWCL") + side("g", workload="DRBL")
    new = side("b", workload="MWCL") + side("b", workload="DRBL")
    found = health(match_cells(base, new), lost_in_new=False)
    assert [h.subject.workload for h in found] == ["DRBL", "MWCL"]


def test_two_file_systems_are_one_point_at_a_place() -> None:
    base, new = side("g"), side("b", filesystem="xfs")
    two = [*new, *side("b", filesystem="btrfs")]
    assert health(match_cells(base, two), lost_in_new=False) == []
    (point,) = health(match_cells(base, new), lost_in_new=False)
    assert (point.kind, point.subject.name) == ("broken", "DRBL ext4 ram buffered 1c 1s")


def test_a_profiler_that_failed_breaks_nothing_and_hides_nothing() -> None:
    profiled = cell(key(1, profile="locks"), 100.0, status="error", reason="bpftrace")
    assert health(match_cells(side("gg"), [profiled, *side("gg")]), lost_in_new=False) == []
    (point,) = health(
        match_cells([profiled, *side("g")], [profiled, *side("b")]), lost_in_new=False
    )
    assert (point.kind, point.new) == ("broken", tally("b"))


def test_a_full_medium_is_no_broken_file_system() -> None:
    full = cell(key(), 100.0, status="error")
    assert is_broken(full)
    assert full.bench is not None
    full.bench.end = "no_space"
    assert not is_broken(full)
    full.status = "ok"
    assert not is_broken(full)
    assert not is_broken(cell(key(), 100.0))
    assert is_broken(cell(key(), 100.0, status="error", bench=None))


@pytest.mark.parametrize(
    ("fault", "kind", "outcome_of_new"),
    [
        ("filesystem", "broken", "broken"),
        ("load", "broken", "broken"),
        ("machine", None, "unusable"),
        ("user", None, "unusable"),
        (None, "broken", "broken"),
    ],
)
def test_only_the_file_system_and_the_load_can_be_broken(
    fault: str | None, kind: str | None, outcome_of_new: str
) -> None:
    failed = cell(key(2), 0.0, status="error", reason="EIO", fault=fault)
    changes = health(match_cells(side("gg"), [*side("g"), failed]), lost_in_new=False)
    assert [change.kind for change in changes] == ([kind] if kind else [])
    assert outcome(failed) == outcome_of_new
