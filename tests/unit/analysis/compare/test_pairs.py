# SPDX-License-Identifier: GPL-2.0-only
"""Which cells are repetitions of one thing, what value each gives, and what is left unpaired."""

import math
from typing import Any

import pytest

from fscale.analysis.compare.pairs import Pairing, match_cells, pair, subject_of
from fscale.analysis.metrics import COUNT, CPU_EFFICIENCY, THROUGHPUT
from fscale.model.results import Cell, Slice
from tests.support.synthetic import cell, key


def side(*rates: float, **changes: Any) -> list[Cell]:
    return [cell(key(n, **changes), r, own_cpu_seconds=0.5) for n, r in enumerate(rates, 1)]


def metrics_of(pairing: Pairing) -> list[str]:
    return [test.metric for test in pairing.tests]


def test_a_subject_is_a_cell_without_its_repetition() -> None:
    found = subject_of(key(7, cores=4, options={"b": 1, "a": "x"}, side="A"))
    assert found.name == "DRBL ext4 ram buffered 4c 1s a=x b=1"
    assert (
        subject_of(key(), {"filesystem": "xfs", "medium": "disk"}).name
        == "DRBL xfs disk buffered 1c 1s"
    )


def test_each_metric_has_a_test_with_its_values() -> None:
    new = side(200, 300, 500)
    new[1].disturbed = new[2].disturbed = "load"
    pairing = pair(match_cells(side(100, 110), new), interleaved=True, looks=(4, 8))
    assert metrics_of(pairing) == [CPU_EFFICIENCY, THROUGHPUT]
    efficiency, rate = pairing.tests
    assert (rate.base.values, rate.new.values) == ({1: 100, 2: 110}, {1: 200, 2: 300, 3: 500})
    assert efficiency.new.values == {1: 400, 2: 600, 3: 1000}
    assert (rate.interleaved, rate.looks, rate.ratios) == (True, (4, 8), {})
    assert (rate.base.disturbed, rate.new.disturbed, efficiency.new.disturbed) == (0, 2, 0)
    assert (pairing.missing_in_base, pairing.missing_in_new) == ([], [])
    assert metrics_of(pair(match_cells(side(1), side(1)), metrics=("throughput",))) == [THROUGHPUT]
    assert not pair(match_cells(side(1), side(1))).tests[0].interleaved


@pytest.mark.parametrize("rate", [0.0, -1.0, math.inf, math.nan])
def test_what_is_no_positive_number_is_unusable(rate: float) -> None:
    odd = side(100, 100, 100)
    odd[0].ops_per_second = rate
    odd[1].status, odd[1].disturbed = "error", "load"
    efficiency, test = pair(match_cells(odd, side(1))).tests
    assert (test.base.values, test.base.unusable, test.base.disturbed) == ({3: 100}, 2, 0)
    assert (efficiency.base.values, efficiency.base.unusable) == ({1: 200, 3: 200}, 1)


def test_a_slow_rate_is_one() -> None:
    (_, test) = pair(match_cells(side(0.5), side(0.5))).tests
    assert test.base.values == {1: 0.5}


def test_without_cpu_time_there_is_throughput_alone() -> None:
    bare = side(100, 100)
    for one in bare:
        one.own_cpu_seconds = None
    assert metrics_of(pair(match_cells(bare, bare))) == [THROUGHPUT]


def test_a_point_without_any_value_is_still_a_test_of_throughput() -> None:
    failed = side(100)
    failed[0].status = "error"
    (test,) = pair(match_cells(failed, side(100))).tests
    assert (test.metric, test.base.values, test.base.unusable) == (THROUGHPUT, {}, 1)


def test_counted_work_comes_from_profiling_cells() -> None:
    counting = side(100, 100, 100, 100, 100, profile="counts")
    for one, count in zip(counting, (2.0, 0.0, -1.0, math.inf, 5.0), strict=True):
        one.counts = {"alloc": count}
    counting[4].status = "error"
    (test,) = pair(match_cells(counting, counting)).tests
    assert (test.metric, test.base.values) == (COUNT + "alloc", {1: 2.0, 2: 0.0})
    assert test.base.unusable == 2
    assert pair(match_cells(counting, counting), metrics=("throughput",)).tests == []
    assert metrics_of(pair(match_cells(counting, counting), metrics=("count",))) == [
        COUNT + "alloc"
    ]
    ratios = pair(match_cells(side(1) + counting, side(1) + counting)).tests
    assert [test.ratios for test in ratios] == [{}, {}, {}]


def test_what_one_side_has_not_is_missing() -> None:
    pairing = pair(
        match_cells(
            side(1, workload="MWCL")
            + side(1, workload="MRPL")
            + side(1)
            + side(1, filesystem="xfs"),
            side(1, cores=2) + side(1, workload="DWAL") + side(1) + side(1, filesystem="xfs"),
        )
    )
    assert [t.subject.filesystem for t in pairing.tests] == ["ext4", "ext4", "xfs", "xfs"]
    assert pairing.missing_in_new == [
        "MRPL ext4 ram buffered 1c 1s", "MWCL ext4 ram buffered 1c 1s",
    ]  # fmt: skip
    assert pairing.missing_in_base == [
        "DRBL ext4 ram buffered 2c 1s", "DWAL ext4 ram buffered 1c 1s",
    ]  # fmt: skip


def test_a_single_place_on_each_side_is_a_pair_under_the_name_of_base() -> None:
    (_, test) = pair(match_cells(side(1), side(2, filesystem="xfs", medium="disk"))).tests
    assert (test.subject.filesystem, test.subject.medium) == ("ext4", "ram")
    assert (test.base.filesystem, test.new.filesystem) == ("ext4", "xfs")
    two = side(1) + side(1, filesystem="btrfs")
    (_, test) = pair(match_cells(two, side(2))).tests
    assert (test.base.filesystem, test.new.filesystem) == ("ext4", "ext4")
    assert pair(match_cells(two, side(2, filesystem="xfs"))).tests == []
    assert pair(match_cells([], [])).tests == []


def test_tests_come_in_the_order_of_what_they_are_about() -> None:
    cells = [
        one
        for changes in (
            {"workload": "B"}, {"cores": 10}, {"cores": 2}, {"mode": "direct"},
            {"medium": "a"}, {"filesystem": "a"}, {},
        )
        for one in side(1, **{"workload": "A"} | changes)
    ]  # fmt: skip
    found = [t.subject.name for t in pair(match_cells(cells, cells), metrics=("throughput",)).tests]
    assert found == [
        "A a ram buffered 1c 1s", "A ext4 a buffered 1c 1s", "A ext4 ram buffered 1c 1s",
        "A ext4 ram buffered 2c 1s", "A ext4 ram buffered 10c 1s", "A ext4 ram direct 1c 1s",
        "B ext4 ram buffered 1c 1s",
    ]  # fmt: skip


def test_sliced_cells_have_ratios_where_both_went_well() -> None:
    def sliced(ops: int, cpu_seconds: float, repetition: int, **changes: Any) -> Cell:
        turns = [
            Slice(block=b, ops=ops, seconds=1, cpu_seconds=cpu_seconds)
            for b in range(6)
            for _ in range(2)
        ]
        return cell(key(repetition, **changes), 100.0, slices=turns)

    base = [sliced(100, 0.5, n) for n in (1, 2, 3)]
    for filesystem in ("ext4", "xfs"):
        new = [sliced(200, 0.25, n, filesystem=filesystem) for n in (1, 2, 3)]
        new[1].status = "error"
        new[2].slices = None
        efficiency, rate = (
            {r: ratio.log for r, ratio in test.ratios.items()}
            for test in pair(match_cells(base, new)).tests
        )
        assert efficiency == {1: pytest.approx(math.log(4))}
        assert rate == {1: pytest.approx(math.log(2))}
