# SPDX-License-Identifier: GPL-2.0-only
"""What the plugin wrote of DRBH on tmpfs with 16 CPUs (two windows, cut short) becomes a cell."""

import pytest

from fscale.model import paths
from fscale.model.results import Cell
from fscale.model.simulation import Simulation
from fscale.sim import cells, whatif
from fscale.sim.boot import PointResult
from fscale.sim.output import Ended, Parameters, PluginWindow, Stream
from fscale.sim.plan import GuestPoint
from fscale.sim.symbols import Symbols
from tests.support import synthetic

GOLDEN = paths.ROOT / "tests" / "golden" / "simulated" / "windows.jsonl"
# Where the functions begin and what they are called is made up, but for the table.
KALLSYMS = """\
ffffffff812808f0 T one
ffffffff81282400 T two
ffffffff81284400 t three
ffffffff812a9700 t four
ffffffff81a5a200 T slowpath
ffffffff82a07b80 d folio_wait_table
"""


@pytest.fixture(scope="module")
def simulated() -> Simulation:
    first, *records = Stream(GOLDEN).read()
    assert isinstance(first, Parameters)
    assert isinstance(records.pop(), Ended)
    windows = [record for record in records if isinstance(record, PluginWindow)]
    assert len(windows) == 2
    key = synthetic.key(workload="DRBH", filesystem="tmpfs", medium="none", cores=16)
    measured = PointResult(GuestPoint(1, key, 1), windows)
    return cells.simulation(measured, Symbols(KALLSYMS.splitlines()), None, [])


def test_counts_are_the_sums_of_the_windows_an_operation(simulated: Simulation) -> None:
    assert cells.counts(simulated) == {
        "instructions": pytest.approx((1369801 + 1249063) / 1280),
        "memory transfers": pytest.approx(30 / 1280),
        "unwritten transfers": 0,
        "clean transfers": pytest.approx(1146 / 1280),
        "dirty transfers": pytest.approx(16478 / 1280),
        "upgrade transfers": pytest.approx(10104 / 1280),
        "remote transfers": pytest.approx(14204 / 1280),
    }
    assert cells.rate(simulated.windows) == pytest.approx(
        (640 / 740017.5e-9 + 640 / 658926.0e-9) / 2
    )


def test_cycles_go_where_the_plugin_says(simulated: Simulation) -> None:
    cycles = 23680560 + 21085632
    shares = simulated.shares()
    assert shares["queueing"] == pytest.approx((2430998 + 2518290) / cycles)
    assert shares["spinning"] == pytest.approx((16557889 + 14249826) / cycles)
    # What is left is a little more than one cycle an instruction: LOCK and PAUSE cost more.
    assert 1 < shares["work"] * cycles / (1369801 + 1249063) < 1.3


def test_the_two_bottlenecks_are_named(simulated: Simulation) -> None:
    page, waiters = simulated.lines[:2]
    assert page.object == "struct page (of the page at 0x102ba9000)"
    assert page.stall == 1889966 + 2016540
    assert {user.function for user in page.users} >= {"one", "two", "three", "four"}
    assert waiters.object == "folio_wait_table+0xb80"
    assert waiters.users[0].function == "slowpath"


def test_a_what_if_frees_each_by_what_is_its_own(simulated: Simulation) -> None:
    page, waiters = simulated.lines[:2]
    # Instructions that take this line nearly alone; the static line has its address.
    assert "pc:0xffffffff8128454d-0xffffffff8128454e" in page.rules
    assert waiters.rules == ["va:0xffffffff82a08700-0xffffffff82a08740"]
    # What takes the third takes its like on other CPUs as well: nothing tells it apart.
    assert simulated.lines[2].object.startswith("memory at")
    assert simulated.lines[2].rules == []
    first, second = whatif.objects(simulated.lines, 2)
    assert first.rules == tuple(page.rules)
    assert second.rules == tuple(waiters.rules)


def test_a_cell_is_whole(simulated: Simulation) -> None:
    assert Cell.model_fields["simulation"].annotation == Simulation | None
    assert Simulation.model_validate_json(simulated.model_dump_json()) == simulated
