# SPDX-License-Identifier: GPL-2.0-only
"""The answer of a comparison in a sentence."""

import re
from pathlib import Path

import pytest

from fscale.analysis.compare import wording
from fscale.analysis.compare.answer import sentence
from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.model import Comparison, Health, Tally
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from tests.unit.analysis.compare.test_kept import unpacked


def judged(name: str, directory: Path) -> Comparison:
    return compare(open_sides(unpacked(name, directory), None), Settings())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ab-slices", "DWAL on ext4 is 62% slower with 1 core"),
        (
            "gate",
            "DWAL on ext4 with 4 cores newly shares memory at 0x4cb6300: transaction_s.t_journal, "
            "transaction_s.t_reserved_list, transaction_s.t_state, 3.97 more per operation, by "
            "__ext4_handle_dirty_metadata (reads), jbd2_journal_get_write_access (reads), "
            "__jbd2_journal_file_buffer (writes)",
        ),
        (
            "ab-slices-same",
            "could not judge: 3 of 3 tests undecided, most too noisy; about 145 more pairs would "
            "decide them",
        ),
    ],
)
def test_kept_comparisons_are_answered(name: str, said: str, tmp_path: Path) -> None:
    assert sentence(judged(name, tmp_path)) == said


def test_counts_of_pairs_have_no_blocks(tmp_path: Path) -> None:
    timed = judged("ab-slices", tmp_path).judgements[0]
    assert f"{timed.pairs} pairs of {timed.blocks} blocks of " in wording.remark(timed)
    counted = timed.model_copy(update={"blocks": None, "slice_seconds": None})
    assert re.search(
        rf"{timed.pairs} pairs, deviation [0-9.]+% between them", wording.remark(counted)
    )


def test_few_undecided_come_last_and_are_no_absence_of_regressions(tmp_path: Path) -> None:
    found = judged("ab-slices-same", tmp_path)
    for one in found.judgements[1:]:
        one.verdict = "same"
    assert sentence(found) == (
        "no regression: 2 tests are the same; 1 of 3 tests undecided, because rare pauses are not "
        "excluded; about 71 more pairs would decide it"
    )
    found.judgements[1].verdict = "faster"
    assert "is faster by settled (+0.0%)" in sentence(found)


def test_all_the_same_is_no_regression(tmp_path: Path) -> None:
    found = judged("ab-slices-same", tmp_path)
    for one in found.judgements:
        one.verdict = "same"
    assert sentence(found) == "no regression: 3 tests are the same"


def test_other_points_are_counted_and_the_largest_change_is_named(tmp_path: Path) -> None:
    found = judged("ab-slices", tmp_path)
    (first,) = (one for one in found.judgements if one.metric == "throughput")
    more = first.model_copy(
        update={"subject": first.subject.model_copy(update={"workload": "MWCM"}), "ratio": 0.2}
    )
    found.judgements.append(more)
    assert sentence(found) == "MWCM on ext4 is 80% slower with 1 core (1 more point also worse)"


def test_what_breaks_comes_before_what_is_undecided(tmp_path: Path) -> None:
    found = judged("ab-slices-same", tmp_path)
    subject = found.judgements[0].subject
    base, new = Tally(good=2, broken=0, unusable=0), Tally(good=0, broken=2, unusable=0)
    found.health.append(Health(subject=subject, kind="broken", base=base, new=new, reason="x"))
    assert sentence(found) == "DWSL on ext4 with 1 core fails in NEW"
    other = subject.model_copy(update={"workload": "MWCM"})
    found.health[0].subject = other
    assert sentence(found).startswith("MWCM on ext4 with 1 core fails in NEW; 3 of 3 tests und")
