# SPDX-License-Identifier: GPL-2.0-only
"""Which objects a what-if makes free, and how it ranks them."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from fscale.analysis.whatif import answers
from fscale.model.results import Cell
from fscale.model.simulation import HotLine, LineUser, Simulation
from fscale.sim import whatif
from tests.support import synthetic
from tests.support.simulated_cells import hot_line


def line(thing: str, stall: int, *rules: str) -> HotLine:
    user = LineUser(function="toucher", reads=1, writes=1, stall=stall)
    return hot_line(thing, stall, user, rules=list(rules))


def cell(rate: float, repetition: int = 1, **changed: Any) -> Cell:
    free = changed.pop("free", [])
    fields = {"workload": "DRBH", "medium": "brd", "cores": 8} | changed
    key = synthetic.key(repetition, **fields)
    simulation = Simulation(seed=1, free=free, windows=[], lines=[], host_seconds=1)
    return synthetic.bare_cell(key, rate, simulation=simulation)


def test_lines_of_one_thing_are_one_object() -> None:
    found = whatif.objects(
        [
            line("struct page (of the page at 0x1000)", 90, "pc:0x10-0x11", "pc:0x20-0x21"),
            line("jiffies", 80),  # nothing names it alone
            line("struct page (of the page at 0x2000)", 70, "pc:0x20-0x21", "pc:0x30-0x31"),
            line("rename_lock", 60, "va:0x40-0x80"),
            line("rename_lock+0x40", 50, "va:0x80-0xc0"),
            line("memory at 0x5000", 40, "pc:0x50-0x51"),
            line("memory at 0x6000: inode.i_rwsem, inode.i_lock", 30, "pc:0x60-0x61"),
        ],
        4,
    )
    assert [(one.words, one.rules) for one in found] == [
        ("struct page (toucher)", ("pc:0x10-0x11", "pc:0x20-0x21", "pc:0x30-0x31")),
        ("rename_lock (toucher)", ("va:0x40-0x80", "va:0x80-0xc0")),
        ("heap memory (toucher)", ("pc:0x50-0x51",)),
        ("inode.i_rwsem, inode.i_lock (toucher)", ("pc:0x60-0x61",)),
    ]


def test_the_largest_gain_comes_first() -> None:
    cells = [
        *(cell(rate, n) for n, rate in enumerate((9.0, 10.0, 11.0), 1)),
        cell(12.0, side="free-1", free=["the hottest"]),
        *(cell(rate, n, side="free-2", free=["another"]) for n, rate in enumerate((30, 20), 1)),
    ]
    assert [(a.object, a.gain) for a in answers(cells)] == [("another", 2.5), ("the hottest", 1.2)]


def test_each_value_of_a_sweep_has_objects_of_its_own() -> None:
    """The most cores of each curve are simulated again, not those of one value alone."""
    cells = [
        cell(10.0, options={"block": block}, cores=cores)
        for block in (512, 1024)
        for cores in (4, 8)
    ]
    for one in cells:
        assert one.simulation is not None
        one.simulation.lines = [line("rename_lock", 60, "va:0x40-0x80")]
    run = synthetic.run()
    prepared = SimpleNamespace(run=run, cells=[c.key for c in cells])
    with patch.object(whatif, "replace", lambda _, **changes: SimpleNamespace(**changes)):
        planned = whatif.plan_whatif(prepared, cells, 1)  # type: ignore[arg-type]
    assert {(k.options["block"], k.cores) for k in planned.cells} == {(512, 8), (1024, 8)}
