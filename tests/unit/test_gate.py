# SPDX-License-Identifier: GPL-2.0-only
"""The gate: what an operation takes on two sides, judged by counts."""

import random
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from analysis import gate, gate_outputs
from fscale.commands import gate as command
from fscale.model.errors import Exit, FscaleError
from fscale.model.results import Cell, CellKey
from fscale.model.simulation import FunctionWork, HotLine, LineUser, SimulatedWindow, Simulation
from sim import side
from sim.sweep import Sweep

OPS = 512


def line(thing: str, moves: float, function: str) -> HotLine:
    return HotLine(
        object=thing,
        physical="0x0",
        virtual="0x0",
        transfers={"dirty": round(moves * OPS * 5)},
        stall=1,
        queue=0,
        users=[LineUser(function=function, reads=0, writes=round(moves * OPS * 5), stall=1)],
    )


def cell(
    seed: int,
    instructions: float,
    moves: float,
    lines: tuple[HotLine, ...] = (),
    status: str = "ok",
    fs: str = "ext4",
) -> Cell:
    key = CellKey(
        workload="MWCL",
        filesystem=fs,
        medium="brd",
        mode="buffered",
        cores=4,
        repetition=seed,
        duration=1,
    )
    windows = [
        SimulatedWindow(
            ops=OPS,
            seconds=1e-3,
            # A tick in one of the windows moves no median.
            instructions=round(instructions * OPS) + (50000 if number == 2 else 0),
            cycles=10**6,
            stall=0,
            queue=0,
            spin=0,
            idle=0,
            transfers={"dirty": round(moves * OPS) + (900 if number == 2 else 0), "memory": 99},
        )
        for number in range(5)
    ]
    return Cell.model_validate(
        {
            "id": key.id,
            "key": key,
            "status": status,
            "reason": None if status == "ok" else "mount failed: no",
            "started": "2026-01-01T00:00:00+00:00",
            "wall_seconds": 1,
            "simulation": Simulation(seed=seed, windows=windows, lines=[*lines], host_seconds=1),
        }
    )


def boots(
    instructions: float, moves: float, *lines: HotLine, noise: float = 0.002, seed: int = 1
) -> list[Cell]:
    rng = random.Random(seed)
    return [
        cell(
            n,
            instructions * (1 + noise * rng.gauss(0, 1)),
            moves * (1 + noise * rng.gauss(0, 1)),
            lines,
        )
        for n in (1, 2, 3)
    ]


def verdicts(base: list[Cell], new: list[Cell]) -> dict[str, str]:
    return {j.metric: j.verdict for j in gate.judge(base, new)}


def test_what_is_the_same_is_the_same() -> None:
    same = {"instructions": "same", "shared lines": "same"}
    assert verdicts(boots(9000, 0.02), boots(9000, 0.03, seed=2)) == same
    assert verdicts(boots(9000, 40), boots(9000, 40, seed=2)) == same


@pytest.mark.parametrize("noise", [0.002, 0.02, 0.2])
def test_no_false_alarm_in_a_thousand(noise: float) -> None:
    alarms = 0
    for seed in range(1000):
        sides = (boots(9000, 20, noise=noise, seed=2 * seed + n) for n in (0, 1))
        alarms += any(judgement.bad for judgement in gate.judge(*sides))
    assert alarms <= 2


def test_two_percent_more_work_is_found_and_a_little_less_is_no_failure() -> None:
    assert verdicts(boots(9000, 0.02), boots(9200, 0.02, seed=2))["instructions"] == "more"
    less = gate.judge(boots(9200, 0.02), boots(9000, 0.02, seed=2))[0]
    assert (less.verdict, less.bad) == ("less", False)


def test_the_functions_that_do_more_are_named() -> None:
    def with_code(cells: list[Cell], **work: float) -> list[Cell]:
        for one in cells:
            assert one.simulation is not None
            one.simulation.code = [
                FunctionWork(function=name, instructions=round(n * OPS * 5))
                for name, n in work.items()
            ]
        return cells

    base = with_code(boots(9000, 0.02), vfs_read=100, find_block=800, kept=50)
    new = with_code(boots(9200, 0.02, seed=2), vfs_read=120.6, find_block_common=1000, kept=50.2)
    found = gate.judge(base, new)[0]
    assert found.lines == ("find_block_common +1000, find_block -800, vfs_read +21",)
    assert str(found).endswith("more; find_block_common +1000, find_block -800, vfs_read +21")
    assert gate.judge(new, base)[0].lines == (
        "find_block_common -1000, find_block +800, vfs_read -21",
    )


def test_noise_of_one_side_hides_no_more_than_itself() -> None:
    noisy = boots(9000, 0.02, noise=0.05)
    assert verdicts(noisy, boots(9200, 0.02, seed=2))["instructions"] == "same"
    assert verdicts(noisy, boots(20000, 0.02, seed=2))["instructions"] == "more"


def test_an_operation_that_begins_to_share_a_line_fails_and_the_line_is_named() -> None:
    planted = line("memory at 0x123440", 0.75, "lanefs_begin")
    old = line("jiffies", 0.01, "tick_sched_do_timer")
    shared = gate.judge(boots(9000, 0.02, old), boots(9005, 0.77, old, planted, seed=2))[1]
    assert (shared.verdict, shared.bad) == ("newly shared", True)
    assert "lanefs_begin (writes)" in shared.lines[0]
    assert "0.75 more an operation" in shared.lines[0]
    assert len(shared.lines) == 1


def test_one_more_line_among_many_is_found_by_its_name() -> None:
    many = line("inode_hash_lock", 18, "_raw_spin_lock")
    base = boots(9000, 18.9, many, noise=0.02)
    plant = line("lanefs_planted, lanefs_inode_cache", 1, "lanefs_begin")
    shared = gate.judge(base, boots(9000, 19.9, many, plant, noise=0.02, seed=2))[1]
    assert shared.verdict == "newly shared"
    assert shared.lines[0].startswith("lanefs_planted, lanefs_inode_cache, 1.00 more")
    assert "lanefs_begin (writes)" in shared.lines[0]
    # On the heap it is the function that is new.
    heap = line("memory at 0x1240", 1, "lanefs_begin")
    shared = gate.judge(base, boots(9000, 19.9, heap, many, noise=0.02, seed=2))[1]
    assert shared.verdict == "newly shared"
    assert "by lanefs_begin (writes)" in shared.lines[0]


def test_of_the_heap_no_name_is_new() -> None:
    # One side's kernel has no types, or what is touched often enough to be named differs.
    plain = line("memory at 0x40: ext4_inode_cache+0x80", 0.8, "seek")
    named = line("memory at 0x40: ext4_inode_info.i_flags, ext4_inode_info.i_state", 0.8, "seek")
    assert verdicts(boots(100, 21, plain), boots(100, 21, named, seed=11))["shared lines"] == "same"
    # Where it takes more the line is named by what lies there.
    more = line("memory at 0x80: ext4_inode_info.i_flags", 20.8, "seek")
    found = gate.judge(boots(100, 21, plain), boots(100, 41, more, seed=11))[1]
    assert found.lines == (
        "memory at 0x80: ext4_inode_info.i_flags, 20.80 more an operation, by seek (writes)",
    )


def test_another_name_for_what_was_shared_is_not_new() -> None:
    old = line("memory at 0x1240", 2, "find_get_page")
    renamed = line("memory at 0x1240", 2, "filemap_get_folio")
    for seed in range(50):
        base = boots(9000, 19, old, noise=0.01, seed=2 * seed)
        assert (
            gate.judge(base, boots(9000, 19, renamed, noise=0.01, seed=2 * seed + 1))[1].verdict
            == "same"
        )


def test_a_line_that_comes_and_goes_with_the_boot_is_not_new() -> None:
    def side(*moves: float) -> list[Cell]:
        return [
            cell(n, 9000, 10 + m, (line("memory at 0x1240", m, "evict"),))
            for n, m in enumerate(moves, 1)
        ]

    assert gate.judge(side(0.16, 0.1, 0.2), side(0.9, 0.58, 0.65))[1].verdict == "same"


def test_a_point_that_breaks_fails_and_one_that_was_broken_does_not() -> None:
    broken = [cell(n, 0, 0, status="error") for n in (1, 2, 3)]
    (judgement,) = gate.judge(boots(9000, 1), broken)
    assert (judgement.verdict, judgement.reason) == ("broken", "mount failed: no")
    for new in (broken, boots(9000, 1)):
        (judgement,) = gate.judge(broken, new)
        assert (judgement.verdict, judgement.bad) == ("not judged", False)
        assert judgement.reason == "it is broken on BASE: mount failed: no"


def test_two_file_systems_are_a_pair() -> None:
    other = [cell(n, 9000, 1, fs="lanefs") for n in (1, 2, 3)]
    assert len(gate.judge(boots(9000, 1), other)) == 2


def test_too_few_boots_are_refused() -> None:
    with pytest.raises(FscaleError, match="give --seeds 3"):
        gate.judge(boots(9000, 1)[:2], boots(9000, 1))


def test_outputs_say_what_failed() -> None:
    judgements = gate.judge(boots(9000, 0.02), boots(9500, 2, seed=2))
    text = gate_outputs.junit(judgements, "old|x", "new")
    root = ET.fromstring(text)
    assert [len(case.findall("failure")) for case in root.iter("testcase")] == [1, 1]
    table = gate_outputs.markdown(judgements, "old", "new")
    assert "**newly shared**" in table
    assert "simulated" in table
    assert gate_outputs.headline(judgements) == "1 newly shared, 1 more"


def test_a_side_is_what_its_text_says(tmp_path: Path) -> None:
    module = tmp_path / "a.ko"
    module.touch()
    sweep = Sweep(filesystems=[], workloads=[], cores=[4], output=tmp_path)
    text = f"ext4:mount=data=journal,nobarrier:mkfs=-O ^has_journal:kernel=6.12:module={module}"
    made = side.apply(side.parse(text), sweep)
    assert list(made.filesystems) == ["ext4"]
    assert made.mount == ("data=journal", "nobarrier")
    assert made.mkfs == ("-O", "^has_journal")
    assert (made.kernel, made.modules) == ("6.12", (module,))
    assert side.apply(side.parse("xfs"), sweep).kernel == "bookworm"
    for wrong in ("", ":mount=x", "ext4:mount=", "ext4:mount=a:mount=b", "ext4:mkfs='"):
        with pytest.raises(FscaleError):
            side.parse(wrong)
    with pytest.raises(FscaleError, match="does not exist"):
        side.apply(side.parse("ext4:module=/no/such.ko"), sweep)


@pytest.mark.parametrize("new_breaks", [True, False])
def test_a_gate_that_judged_nothing_fails(
    new_breaks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [cell(n, 0, 0, status="error") for n in (1, 2, 3)]
    sides = iter([broken, broken if new_breaks else boots(9000, 1)])
    monkeypatch.setattr(command.sweep, "prepare", lambda *_: None)
    monkeypatch.setattr(command.campaign, "run", lambda *_: next(sides))
    with pytest.raises(FscaleError, match="no point could be judged") as raised:
        command._gate("ext4", "ext4", tmp_path)
    assert raised.value.code == Exit.USAGE
