# SPDX-License-Identifier: GPL-2.0-only
"""The triage and the verdict of simulated points."""

from pathlib import Path
from typing import Any

import pytest

from fscale.analysis.diagnosis.naming import By
from fscale.analysis.diagnosis.run import diagnose
from fscale.analysis.diagnosis.simulated import LINE, LOCK_PART, triage
from fscale.analysis.diagnosis.triage import LOCK, WAIT
from fscale.analysis.diagnosis.verdict import Shape
from fscale.analysis.hot import COUNTED, REMOTE
from fscale.analysis.reader import load
from fscale.analysis.report import build
from fscale.model.results import Cell
from fscale.model.simulation import HotLine, LineUser, Simulation
from tests.support import simulated_cells, synthetic
from tests.support.synthetic import machine, write_run

RWSEM = "shmem_inode_info.vfs_inode.i_rwsem"


def line(thing: str, stall: int, spin: int = 0) -> HotLine:
    taker = LineUser(function="taker", reads=1, writes=1, stall=stall)
    return simulated_cells.hot_line(thing, stall, taker, dirty=stall // 10, spin=spin)


def cell(cores: int, rate: float, lines: list[HotLine], idle: int = 0, **key: Any) -> Cell:
    own = synthetic.key(workload="MWCM", filesystem="tmpfs", medium="none", cores=cores, **key)
    stall, spin = sum(one.stall for one in lines), sum(one.spin for one in lines)
    shares = {"stall": stall, "spin": spin, "idle": idle, "transfers": {"dirty": 20}}
    window = simulated_cells.window(100, 100 / rate, instructions=1000, cycles=10000, **shares)
    return synthetic.bare_cell(
        own, rate, ops=100, seconds=100 / rate,
        counts=dict.fromkeys((*COUNTED, REMOTE), 10.0),
        simulation=Simulation(seed=1, windows=[window], lines=lines, host_seconds=1),
    )  # fmt: skip


def test_lines_of_one_thing_are_added_up_and_locks_told_apart() -> None:
    found = triage(
        [
            cell(
                8,
                1e6,
                [
                    line(f"memory at 0x1000: {RWSEM}", 300, 4000),
                    line(f"memory at 0x2000: {RWSEM}", 100, 600),
                    line("rename_lock", 500),
                    line("memory at 0x3000", 10),
                ],
                idle=200,
            )
        ]
    )
    assert [(s.name.object, s.sort, s.blocked, s.spinning) for s in found.suspects] == [
        (RWSEM, LOCK, 0.04, 0.46),
        ("rename_lock", LINE, 0.05, 0.0),
        ("halted (sleeping or idle)", WAIT, 0.02, 0.0),
        ("memory at 0x3000", LINE, 0.001, 0.0),
    ]
    lock = found.suspects[0]
    assert (lock.count, lock.addresses, lock.callers) == (40, 2, [(("taker",), 1.0)])
    assert [s.name.by for s in found.suspects] == [
        By.ADDRESS, By.ADDRESS, By.NOTHING, By.NOTHING,
    ]  # fmt: skip
    assert found.counts["instructions"] == 10.0


@pytest.mark.parametrize(
    ("stall", "spin", "sort", "kind"),
    [
        (900, 100, LOCK, "spun for"),  # a tenth of the waiting
        (901, 99, LINE, LINE),
        (0, 1, LOCK, "spun for"),
        (0, 0, LINE, LINE),
    ],
)
def test_a_line_that_is_spun_for_is_a_locks(stall: int, spin: int, sort: str, kind: str) -> None:
    assert LOCK_PART == 0.1
    found = triage([cell(8, 1e6, [line("rename_lock", stall, spin)], idle=1)]).suspects
    kinds = {one.name.object: (one.sort, one.kind) for one in found}
    assert kinds == {
        "rename_lock": (sort, kind),
        "halted (sleeping or idle)": (WAIT, WAIT),
    }


def test_what_a_function_waits_in_several_lines_is_added_up() -> None:
    one, other = line("a_lock", 300), line("a_lock", 100)
    other.users.append(LineUser(function="other", reads=1, writes=1, stall=400))
    (lock,) = triage([cell(8, 1e6, [one, other])]).suspects
    assert sorted(lock.callers) == [(("other",), 0.5), (("taker",), 0.5)]


def test_a_lock_of_each_object_is_one_suspect() -> None:
    """Whatever else is taken in its lines; the one that is waited for most says it."""
    lines = [
        line(f"memory at {n * 64:#x}: inode.sem{', inode.root' if n == 1 else ''}", 10 * n)
        for n in (3, 2, 1)
    ]
    (found,) = triage([cell(8, 1e6, lines)]).suspects
    assert (found.name.object, found.addresses, found.blocked) == ("inode.sem", 3, 0.006)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """MWCM that stays where it is on one core; a what-if beside it."""
    lock = [line(f"memory at 0x1000: {RWSEM}", 300, 8000)]
    cells = [cell(1, 1e6, []), cell(8, 1.1e6, lock), cell(8, 8e6, lock, side="free-1")]
    simulated = machine(8).model_copy(update={"guest": {"accelerator": "simulated"}})
    return write_run(tmp_path / "run", cells, machine=simulated)


def test_the_verdict_names_what_is_spun_for(run: Path) -> None:
    one, eight = diagnose(load(run)).points
    assert (one.key.cores, eight.key.cores) == (1, 8)
    assert eight.judgement.shape is Shape.SATURATES
    assert eight.judgement.cause is not None
    assert eight.judgement.cause.name.object == RWSEM
    assert f"because of {RWSEM}: 83.0% of the cores' time (certain)" in eight.judgement.sentence
    assert one.judgement.cause is None


@pytest.mark.slow
def test_the_report_says_why_it_stops_scaling(run: Path, tmp_path: Path) -> None:
    html = build(run, tmp_path / "out").read_text()
    assert "Why it stops scaling" in html
    assert "The simulator recorded" in html
    assert "profiles come from" not in html
    assert f"because of {RWSEM}" in html
