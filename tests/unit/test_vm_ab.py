# SPDX-License-Identifier: GPL-2.0-only
"""Comparing kernels: what a side is, the order of boots, and how boots become one run."""

from collections import Counter
from pathlib import Path

import pytest

from analysis.compare.compare import compare
from analysis.compare.settings import Settings
from analysis.compare.sides import open_sides
from fscale.ab import guests as ab
from fscale.model.errors import FscaleError
from fscale.model.results import Cell, CellKey, KernelBuild, Machine, Run
from fscale.model.store import Store


@pytest.mark.parametrize("repetitions", [2, 3, 6])
def test_boots_are_interleaved_and_each_is_made_once(repetitions):
    boots = list(ab.order(repetitions, 5))
    assert Counter(boots) == {(s, r): 1 for s in "AB" for r in range(1, repetitions + 1)}
    sides = "".join(side for side, _ in boots)
    assert all(sides[i : i + 4] in ("ABBA", "BAAB") for i in range(0, len(sides) - 3, 4))
    assert boots == list(ab.order(repetitions, 5))


def test_the_coin_does_not_always_fall_on_the_same_side():
    assert {next(ab.order(2, seed))[0] for seed in range(20)} == {"A", "B"}


def boot(
    output: Path,
    side: str,
    repetition: int,
    speed: float,
    revision: str | None = None,
    stood_still: int = 0,
    build: str = "#1 SMP",
) -> None:
    store = Store(ab.boot_directory(output, side, repetition))
    machine = Machine(
        hostname="fscale-guest",
        kernel={"A": "6.1", "B": "6.12"}[side[0]],
        build=KernelBuild(version=build, id=None, taint=0, debug=[], debug_from="signs"),
        kernel_cmdline="",
        architecture="x86_64",
        cpu_model="QEMU",
        memory_bytes=1 << 32,
        topology=[],
        cpu_order=[0],
        governor=None,
        mitigations={},
        virtualization=None,
        boots=[f"{side}{repetition}"],
        guest={
            "label": "emulated: ratios only",
            "release": side,
            "stood_still": stood_still,
        },
    )
    store.save_run(
        Run(
            id="results",
            started="2026-01-01T00:00:00+00:00",
            state="complete",
            fscale_version="0",
            revision=revision,
            command=[],
            seed=1,
            suite={"filesystems": ["ext4"]},
            filesystems={},
            media={},
            machine=machine,
            versions={"kernel": machine.kernel},
            workloads=[],
            planned_cells=1,
        )
    )
    key = CellKey(
        workload="MWCL",
        filesystem="ext4",
        medium="ram",
        mode="buffered",
        cores=1,
        repetition=1,
        duration=1,
    )
    cell = Cell(
        id=key.id,
        key=key,
        status="ok",
        started="2026-01-01T00:00:00+00:00",
        wall_seconds=1,
        ops=speed,
        seconds=1,
        ops_per_second=speed,
    )
    store.save_cell(cell)


def test_boots_become_one_paired_run_that_compare_reads(tmp_path):
    boots = list(ab.order(3, 1))
    for side, repetition in boots:
        boot(tmp_path, side, repetition, {"A": 100.0, "B": 200.0}[side] + repetition)
    ab.merge(tmp_path, {"A": "kernel:6.1", "B": "kernel:6.12"}, boots)
    sides = open_sides(tmp_path, None)
    assert sides.interleaved
    assert sides.base_results.run.machine.boots == [f"{side}{number}" for side, number in boots]
    assert (sides.base.label, sides.new.label) == ("kernel:6.1", "kernel:6.12")
    assert sorted(cell.ops for cell in sides.base_cells) == [101, 102, 103]
    assert sorted(cell.ops for cell in sides.new_cells) == [201, 202, 203]
    assert {cell.key.repetition for cell in sides.new_cells} == {1, 2, 3}
    run = Store(tmp_path).load_run()
    assert run is not None
    assert run.versions == {"kernel": "6.1", "kernel of B": "6.12"}
    assert run.machine.guest is not None
    assert run.machine.guest["B"]["release"] == "B"
    assert run.warnings == []


def test_a_comparison_says_how_figures_of_guests_are_to_be_read(tmp_path):
    boots = list(ab.order(8, 1))
    for side, repetition in boots:
        boot(tmp_path, side, repetition, 100.0 + repetition)
    ab.merge(tmp_path, {"A": "kernel:6.1", "B": "kernel:6.12"}, boots)
    comparison = compare(open_sides(tmp_path, None), Settings())
    assert comparison.warnings == ["measured in a guest (emulated: ratios only)"]


def test_boots_of_several_revisions_are_told(tmp_path):
    boots = [("A", 1), ("B", 1)]
    for (side, repetition), revision in zip(boots, ("old", "new"), strict=True):
        boot(tmp_path, side, repetition, 1.0, revision)
    ab.merge(tmp_path, {"A": "kernel:6.1", "B": "kernel:6.12"}, boots)
    run = Store(tmp_path).load_run()
    assert run is not None
    assert run.warnings == ["boots are of several revisions of fscale: old, new"]


def test_boots_that_stood_still_are_told(tmp_path):
    boots = list(ab.order(2, 1))
    for side, repetition in boots:
        boot(tmp_path, side, repetition, 1.0, stood_still=repetition - 1)
    ab.merge(tmp_path, {"A": "kernel:6.1", "B": "kernel:6.12"}, boots)
    run = Store(tmp_path).load_run()
    assert run is not None and run.machine.guest is not None
    assert run.machine.guest["stood_still"] == 2
    assert run.warnings == ["2 boots stood still and were made again"]


def test_a_kernel_that_was_built_anew_does_not_go_on_with_a_comparison(tmp_path):
    boots = [("A", 1), ("B", 1), ("B", 2), ("A", 2)]
    for (side, repetition), build in zip(boots, ("#1", "#7", "#8", "#1"), strict=True):
        boot(tmp_path, side, repetition, 1.0, build=build)
    ab.refuse_other_builds(tmp_path, boots[:2])
    with pytest.raises(FscaleError, match=r"side B .* #7 \(None\) and #8 .*new --output"):
        ab.refuse_other_builds(tmp_path, boots)
