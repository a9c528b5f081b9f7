# SPDX-License-Identifier: GPL-2.0-only
"""From the plugin's lines and the bench's output to cells."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fscale.model.errors import FscaleError
from fscale.model.results import Cell
from fscale.model.simulation import HotLine
from fscale.sim import cells, output
from fscale.sim.boot import PointResult
from fscale.sim.output import PluginWindow, Stream
from fscale.sim.plan import GuestPoint
from fscale.sim.symbols import Symbols
from tests.support import synthetic

KEY = synthetic.key(workload="DRBH", filesystem="tmpfs", medium="none", cores=2)
SYMBOLS = Symbols(["ffffffff81000100 T reader", "ffffffff81000200 T writer"])
MOVED = {
    "memory": 1,
    "unwritten": 5,
    "clean": 20,
    "dirty": 40,
    "upgrade": 30,
    "remote": 10,
    "free": 0,
}


def line(pa: str, stall: int, **users: tuple[int, int, int]) -> dict[str, Any]:
    pcs = {"reader": "0xffffffff81000104", "writer": "0xffffffff81000208"}
    return {
        **MOVED,
        "pa": pa,
        "va": "0xffffea0000000000",
        "stall": stall,
        "queue": stall // 2,
        "pcs": [
            {"pc": pcs[name], "reads": reads, "writes": writes, "stall": waited}
            for name, (reads, writes, waited) in users.items()
        ],
    }


def window(number: int, lines: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "type": "window",
        "point": 3,
        "seed": 9,
        "group": 0,
        "window": number,
        "ns": 1000.0,
        "ops": 10,
        "instructions": 5000,
        "cycles": 4000,
        "transfers": MOVED,
        "stall": 1000,
        "queue": 400,
        "spin": 800,
        "idle": 200,
        "active": 2,
        "host_seconds": 0.1,
        "cpu_seconds": 0.05,
        "vcpus": [],
        "lines": lines,
        "pcs": [],
        "unknown_to_us": 1,
    }


def bench(**changed: Any) -> str:
    zero = dict.fromkeys(("user", "system", "idle", "iowait", "irq", "softirq", "steal"), 0.0)
    good = {
        "schema": 1,
        "workload": "DRBH",
        "mode": "buffered",
        "options": {},
        "seed": 1,
        "status": "ok",
        "reason": None,
        "end": "time",
        "ops": 20,
        "executed_ops": 30,
        "seconds": 2e-6,
        "ops_per_second": 1e7,
        "setup_seconds": 0.1,
        "warmup_seconds": 0,
        "clock": "CLOCK_MONOTONIC",
        "cpus": [0, 1],
        "windows": [],
        "workers": [],
        "background": None,
        "intervals": {"seconds": [], "ops": []},
        "cpu": zero,
        "cgroup_cpu_seconds": None,
        "busy_cpu_seconds": 0,
        "stock": None,
        "latency": None,
        "error": None,
    }
    return json.dumps(good | changed)


def measured(**given: Any) -> PointResult:
    hot = line("0x40", 500, reader=(5, 0, 200), writer=(0, 7, 300))
    cold = line("0x80", 10, reader=(1, 0, 10))
    windows = [
        PluginWindow.model_validate(window(0, [cold, hot])),
        PluginWindow.model_validate(window(1, [hot])),
    ]
    return PointResult(GuestPoint(3, KEY, 9), **({"windows": windows, "bench": bench()} | given))


def made(given: PointResult, precision: float | None = None) -> Cell:
    return cells.cell(given, SYMBOLS, None, "2026-01-01T00:00:00+00:00", [], precision)


def test_the_instructions_of_a_function_are_those_of_its_blocks() -> None:
    blocks = [
        ("0xffffffff81000100", 30),
        ("0xffffffff81000204", 50),
        ("0xffffffff81000120", 40),
        ("0x401000", 9),
    ]
    simulated = made(measured(code=blocks)).simulation
    assert simulated is not None
    assert [(one.function, one.instructions) for one in simulated.code] == [
        ("reader", 70),
        ("writer", 50),
        ("(the program)", 9),
    ]


def test_a_cell_adds_up_its_windows() -> None:
    cell = made(measured())
    assert (cell.status, cell.ops, cell.seconds) == ("ok", 20, pytest.approx(2e-6))
    assert cell.ops_per_second == pytest.approx(1e7)
    assert cell.counts == {
        "instructions": 500,
        "memory transfers": 0.1,
        "unwritten transfers": 0.5,
        "clean transfers": 2,
        "dirty transfers": 4,
        "upgrade transfers": 3,
        "remote transfers": 1,
    }


def test_words_are_those_of_windows_lines_and_functions() -> None:
    hot = line("0x40", 500, reader=(5, 0, 200), writer=(0, 7, 300))
    hot["pcs"][0]["words"] = 8
    # It takes a word of another core, but never has to take the line.
    hot["pcs"].append(hot["pcs"][1] | {"pc": "0x10", "writes": 0, "stall": 0, "words": 1})
    windows = [PluginWindow.model_validate(window(n, [hot]) | {"words": 30}) for n in (0, 1)]
    simulated = made(measured(windows=windows)).simulation
    assert simulated is not None
    assert [one.words for one in simulated.windows] == [30, 30]
    (found,) = simulated.lines
    assert found.words == {"struct page (of the page at 0x0)": 18}
    assert [(user.function, user.words) for user in found.users] == [
        ("writer", 0),
        ("reader", 16),
        ("0x10", 2),
    ]
    # Of two objects in a line each has its own.
    start = 0xFFFFFFFF82000000
    pcs = [
        {"pc": hex(n), "va": hex(start + at), "reads": 1, "writes": 0, "stall": 1, "words": n}
        for n, at in enumerate((0x48, 0x50, 0x54))
    ]
    beside = line("0x40", 1) | {"va": hex(start + 0x40), "pcs": pcs}
    kallsyms = [f"{start + at:x} b {name}" for at, name in BESIDE.items()]
    windows = [PluginWindow.model_validate(window(0, [beside]))]
    (both,) = cells.lines(windows, Symbols(kallsyms), None)
    assert both.words == {"near": 3}
    uncounted = made(measured()).simulation
    assert uncounted is not None
    assert [one.words for one in uncounted.windows] == [None, None]


def test_the_speed_of_simulation_is_that_of_the_windows() -> None:
    simulated = made(measured()).simulation
    assert simulated is not None
    assert simulated.mips == pytest.approx(5000 / 0.05 / 1e6)
    unknown = [one.model_copy(update={"cpu_seconds": 0}) for one in simulated.windows]
    assert simulated.model_copy(update={"windows": unknown}).mips is None


def test_shares_are_of_all_cycles_and_sum_to_one() -> None:
    simulated = made(measured()).simulation
    assert simulated is not None
    shares = simulated.shares()
    assert sum(shares.values()) == pytest.approx(1)
    assert shares == {
        "work": pytest.approx(0.5),
        "transfers": pytest.approx(0.15),
        "queueing": pytest.approx(0.1),
        "spinning": pytest.approx(0.2),
        "idle": pytest.approx(0.05),
    }


def test_lines_are_those_of_all_windows_the_most_waited_for_first() -> None:
    simulated = made(measured()).simulation
    assert simulated is not None
    first, second = simulated.lines
    assert (first.physical, first.stall, first.queue) == ("0x40", 1000, 500)
    assert first.object == "struct page (of the page at 0x0)"
    assert [(u.function, u.reads, u.writes, u.stall) for u in first.users] == [
        ("writer", 0, 14, 600),
        ("reader", 10, 0, 400),
    ]
    assert second.physical == "0x80"


@pytest.mark.parametrize(
    ("given", "status", "reason"),
    [
        ({"failed": "mkfs failed: no room"}, "error", "mkfs failed: no room"),
        ({"bench": "", "stderr": "no such workload", "status": 2}, "error", "no such workload"),
        ({"windows": []}, "error", "the simulator reported no timed window"),
        ({"bench": bench(status="invalid", reason="stock")}, "invalid", "stock"),
    ],
)
def test_what_went_wrong_never_scores(given: dict[str, Any], status: str, reason: str) -> None:
    cell = made(measured(**given))
    assert cell.status == status
    assert reason in (cell.reason or "")


def test_a_growing_file_is_read_by_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "out"
    stream = Stream(path)
    assert list(stream.read()) == []
    text = json.dumps(window(0, [])) + "\n"
    path.write_text('{"type":"parameters","format":1,"vcpus":2}\n' + text[:40])
    (first,) = stream.read()
    assert isinstance(first, output.Parameters)
    with path.open("a") as file:
        file.write(text[40:])
    (second,) = stream.read()
    assert isinstance(second, PluginWindow)
    assert (second.point, second.ops) == (3, 10)


@pytest.mark.parametrize(
    "text", [b"", b"{", b'{"type":"window"}', b'{"type":"parameters","format":2}']
)
def test_what_is_no_record_is_refused(text: bytes) -> None:
    with pytest.raises(FscaleError, match=r"not a valid record|format 2"):
        output.parse(text)


def test_a_tick_in_one_window_moves_no_rate() -> None:
    windows = [
        PluginWindow.model_validate(window(n, []) | {"ns": ns})
        for n, ns in enumerate((1e3, 1e3, 9e3))
    ]
    assert made(measured(windows=windows)).ops_per_second == pytest.approx(1e7)


def test_windows_that_end_by_precision_tell_the_throughput_of_all_of_them() -> None:
    windows = [
        PluginWindow.model_validate(window(n, []) | {"ns": ns})
        for n, ns in enumerate((1e3, 1e3, 9e3))
    ]
    cell = made(measured(windows=windows), precision=0.05)
    assert cell.ops_per_second == pytest.approx(30 / 11e-6)
    assert cell.simulation is not None
    assert cell.simulation.precision == 0.05
    # Three batches of 1, 1 and 9 us: Student's t with two degrees of freedom.
    error = math.sqrt(64 / 3) / math.sqrt(3)
    assert cell.simulation.half_width == pytest.approx(4.303 * error / (11 / 3), rel=1e-3)


def test_the_band_of_many_windows_is_that_of_eight_to_fifteen_batches() -> None:
    def band(times: Sequence[float]) -> float | None:
        windows = [
            PluginWindow.model_validate(window(n, []) | {"ns": ns}) for n, ns in enumerate(times)
        ]
        simulated = made(measured(windows=windows)).simulation
        assert simulated is not None
        return simulated.half_width

    # Neighbours that alternate make equal batches of two.
    assert band((1e3, 3e3) * 4) == pytest.approx(2.365 * 1069.0 / math.sqrt(8) / 2e3, rel=1e-3)
    assert band((1e3, 3e3) * 8) == pytest.approx(0)
    assert band((1e3,)) is None


def test_a_line_with_a_lock_that_cores_spin_for_is_hot() -> None:
    calm, lock = line("0x40", 100), line("0x80", 1)
    found = [PluginWindow.model_validate(window(n, [calm, {**lock, "spin": 70}])) for n in range(2)]
    other, lock_line = cells.lines(found, SYMBOLS, None)
    assert (other.physical, other.wait) == ("0x40", 200)
    assert (lock_line.stall, lock_line.spin, lock_line.wait) == (2, 140, 142)
    found = [PluginWindow.model_validate(window(0, [calm, {**lock, "spin": 170}]))]
    assert cells.lines(found, SYMBOLS, None)[0].physical == "0x80"


BESIDE = {0: "big", 0x48: "planted", 0x50: "near"}


def test_of_several_objects_in_a_line_those_are_named_by_which_it_is_taken() -> None:
    # The kernel's own objects, and a module's behind it.
    places = (0xFFFFFFFF82000000, 0xFFFFFFFFC02FC600)

    def named(*taken: tuple[int, int]) -> str:
        (name,) = {named_at(start, *taken) for start in places}
        return name

    def named_at(start: int, *taken: tuple[int, int]) -> str:
        kallsyms = [f"{start + at:x} b {name}" for at, name in BESIDE.items()]
        pcs = [
            {"pc": hex(0x10 + n), "va": hex(start + at), "reads": 0, "writes": writes, "stall": 1}
            for n, (at, writes) in enumerate(taken)
        ]
        raw = {**MOVED, "pa": "0x40", "va": hex(start + 0x40), "stall": 1, "queue": 0}
        found = PluginWindow.model_validate(window(0, [{**raw, "pcs": pcs}]))
        (only,) = cells.lines([found], Symbols(kallsyms), None)
        assert only.names == only.object.split(", ")
        return only.object

    assert named((0x48, 90), (0x50, 10)) == "planted, near"
    assert named((0x48, 99), (0x50, 1)) == "planted"
    # A long object by the line's place in it, a short one by its name, wherever it is touched.
    assert named((0x44, 9), (0x4C, 8)) == "big+0x40, planted"


def test_functions_wait_whichever_line_it_is_for() -> None:
    """Sums over instructions and windows, the longest first; the program is one function."""
    symbols = Symbols(["ffffffff81000000 T copy", "ffffffff81000100 T find"])
    kernel = 0xFFFFFFFF81000000
    waited = {kernel + 0x104: 5, kernel + 8: 3, kernel + 0x10: 4, 0x4000: 1}
    pcs = [{"pc": hex(pc), "transfers": 1, "stall": stall} for pc, stall in waited.items()]
    windows = [PluginWindow.model_validate({**window(n, []), "pcs": pcs}) for n in (0, 1)]
    found = [(one.function, one.stall) for one in cells.waits(windows, symbols)]
    assert found == [("copy", 14), ("find", 10), (cells.PROGRAM, 2)]


def rules_of(pc: int, va: int, kallsyms: str) -> list[str]:
    pcs = [{"pc": hex(pc), "va": hex(va), "reads": 0, "writes": 9, "stall": 1}]
    raw = {**MOVED, "pa": "0x40", "va": hex(va & ~63), "stall": 1, "queue": 0, "pcs": pcs}
    whole = {**window(0, [raw]), "pcs": [{"pc": hex(pc), "transfers": 9, "stall": 1}]}
    (only,) = cells.lines(
        [PluginWindow.model_validate(whole)], Symbols(kallsyms.splitlines()), None
    )
    return only.rules


def test_an_object_is_told_by_what_stays_in_each_boot() -> None:
    kernel = "ffffffff81000000 T add\nffffffff82000000 D total"
    heap = 0xFFFF888000000048
    assert rules_of(0xFFFFFFFF81000100, heap, kernel) == [
        "pc:0xffffffff81000100-0xffffffff81000101"
    ]
    assert rules_of(0xFFFFFFFF81000100, 0xFFFFFFFF82000044, kernel) == [
        "va:0xffffffff82000040-0xffffffff82000080"
    ]
    # A module lies elsewhere in each boot, and its symbols with it.
    module = "ffffffffc0123000 t grow\t[ext4]\nffffffffc0125020 b counter\t[ext4]"
    assert rules_of(0xFFFFFFFFC0123010, heap, module) == ["pc:ext4:grow:0x10-0x11"]
    assert rules_of(0xFFFFFFFFC0123010, 0xFFFFFFFFC0125024, module) == ["va:ext4:counter:0x4-0x5"]
    # What has no name has no rule, and neither has what lies in the heap and many take.
    assert rules_of(0xFFFFFFFFC0123010, 0xFFFFFFFFC0125024, "") == []


def test_what_each_cpu_has_of_its_own_has_no_name_that_stays() -> None:
    pcs = [{"pc": "0x10", "va": "0xffff888100000048", "reads": 0, "writes": 1, "stall": 1}]
    raw = {**MOVED, "pa": "0x40", "va": "0xffff888100000040", "stall": 1, "queue": 0, "pcs": pcs}
    found = PluginWindow.model_validate(window(0, [raw]))
    kallsyms = ["40 A runqueues", "1000 A __per_cpu_end"]
    (only,) = cells.lines([found], Symbols(kallsyms, [0xFFFF888100000000]), None)
    assert only.object == "per-CPU runqueues+0x8 (of CPU 0)"
    assert only.names == []


class Types:
    """Of a made-up kernel."""

    def member(self, cache: str, offset: int) -> str:
        return f"{cache}.{'lock' if offset < 8 else 'list'}"


def test_of_memory_in_a_slab_the_members_are_named() -> None:
    start = 0xFFFF888000001020
    places = {0x20: 90, 0x28: 9, 0x60: 100, 0x0: 50}  # the last two are in other objects
    pcs = [
        {"pc": hex(n), "va": hex(start - 0x20 + at), "reads": 0, "writes": writes, "stall": 1}
        for n, (at, writes) in enumerate(places.items())
    ]
    raw = {**MOVED, "pa": "0x1000", "va": hex(start - 0x20), "stall": 1, "queue": 0, "pcs": pcs}
    slab = {"cache": "thing", "object": hex(start), "size": 0x40}

    def named(line: dict[str, Any], types: Any = Types()) -> HotLine:
        found = PluginWindow.model_validate(window(0, [line]))
        (only,) = cells.lines([found], SYMBOLS, types)
        return only

    assert named(raw | slab).object == "memory at 0x1000: thing.lock, thing.list, another thing"
    assert named(raw | slab).thing == "thing.lock"
    alone = raw | slab | {"pcs": pcs[:2]}
    assert named(alone).object == "memory at 0x1000: thing.lock, thing.list"
    assert named(raw | slab).names == []  # no name that stays: there are many of them
    assert named(raw).object == "memory at 0x1000"
    assert named(raw | slab, None).object == "memory at 0x1000"
    away = {**slab, "object": hex(start + 0x1000)}
    assert named(raw | away).object == "memory at 0x1000: thing"


def test_lines_that_many_operations_move_are_all_kept() -> None:
    lines = [line(hex(n << 6), 1000 - n, reader=(1, 0, 10)) for n in range(20)]
    for n, one in enumerate(lines):
        one["va"] = hex(0xFFFFEA0000000000 + 64 * n)
    for cold in lines[15:]:
        cold.update(clean=0, dirty=1, upgrade=0)  # of ten operations
    found = PluginWindow.model_validate(window(0, lines))
    assert len(cells.lines([found], SYMBOLS, None)) == 15


def test_all_lines_of_what_is_waited_for_most_are_kept() -> None:
    """A lock of each of twenty inodes is one thing, each waited for less than other lines are."""
    alone = [line(hex(n << 6), 100, reader=(1, 0, 10)) for n in range(14)]
    for n, one in enumerate(alone):
        one["va"] = hex(0xFFFFEA0000000000 + 64 * n)
    start = 0xFFFF888100000000
    locks = []
    for n in range(20):
        at = start + 1024 * n
        inode = {"cache": "thing", "object": hex(at), "size": 1024, "va": hex(at + 64)}
        locks.append({**line(hex((100 + n) << 6), 10, reader=(1, 0, 10)), **inode})
    for one in (*alone, *locks):
        one.update(clean=0, dirty=1, upgrade=0)
    found = cells.lines([PluginWindow.model_validate(window(0, alone + locks))], SYMBOLS, Types())
    kept = Counter(line.thing for line in found)
    assert kept.pop("thing.list") == 20
    assert len(kept) == cells.LINES - 1
    assert set(kept.values()) == {1}
