# SPDX-License-Identifier: GPL-2.0-only
"""A boot is followed by what the guest and the plugin write; here a shell plays both."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fscale.model.results import CellKey
from sim import boot as boots
from sim.boot import Boot, BootError, Measured
from sim.plan import Point
from sim.symbols import Symbols

PARAMETERS = '{"type":"parameters","format":1,"vcpus":2}'
SIGN = {"type": "progress", "mode": "detailed", "cycles": 1, "vcpu": 1, "host_seconds": 5.0}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def points(*cores: int) -> list[Point]:
    return [
        Point(
            number,
            CellKey(
                workload="DRBL",
                filesystem="tmpfs",
                medium="none",
                mode="buffered",
                cores=count,
                repetition=1,
                duration=1,
            ),
            1,
        )
        for number, count in enumerate(cores)
    ]


@pytest.fixture
def two() -> Iterator[Boot]:
    with Boot(points(2, 1), "point 0\npoint 1\n") as boot:
        yield boot


def play(boot: Boot, script: str) -> None:
    boot.start(["sh", "-c", f"cd {boot.place.base}\n{script}"], {"PATH": "/usr/bin:/bin"})


def until_over(boot: Boot) -> list[Measured]:
    found: list[Measured] = []
    for _ in range(100):
        found += boot.poll()
        if boot.ended:
            return found
        time.sleep(0.05)
    raise AssertionError("it never ended")


def test_the_boot_is_no_part_of_the_first_point(two: Boot) -> None:
    play(
        two,
        f"echo '{PARAMETERS}' >windows.jsonl\n"
        "sleep 2; touch shared/kallsyms; sleep 0.3\n"
        "for n in 0 1; do echo 0 >shared/points/$n.status; touch shared/points/$n.stderr\n"
        "echo '{}' >shared/points/$n.json; sleep 0.3; done\n"
        "sleep 60",
    )
    first, _ = until_over(two)
    assert two.up is not None
    assert two.up >= 2
    assert 0.2 < first.host_seconds < 2


def test_points_come_as_they_end(two: Boot) -> None:
    play(
        two,
        f"echo '{PARAMETERS}' >windows.jsonl\n"
        "echo '{}' >shared/points/0.json; echo 0 >shared/points/0.status\n"
        "echo words >shared/points/0.stderr\n"
        "echo 'mkfs failed: full' >shared/points/1.failed; sleep 5",
    )
    first, second = until_over(two)
    assert (first.point.number, first.bench, first.status, first.said) == (0, "{}\n", 0, "words")
    assert (second.point.number, second.failed) == (1, "mkfs failed: full")
    assert two.unfinished == []


def test_a_guest_that_dies_is_said_with_its_last_words(two: Boot) -> None:
    play(
        two,
        "echo '{}' >shared/points/0.json; echo 0 >shared/points/0.status\n"
        ": >shared/points/0.stderr\n"
        "echo 'fscale-sim: cannot unmount after point 0' >console.log",
    )
    kept: list[Measured] = []
    with pytest.raises(BootError, match="cannot unmount after point 0") as raised:
        for _ in range(100):
            kept += two.poll()
            time.sleep(0.05)
    assert [measured.point.number for measured in kept] == [0]
    assert raised.value.point == 1
    assert [point.number for point in two.unfinished] == [1]


def test_a_plugin_that_gives_up_is_said(two: Boot) -> None:
    play(two, """echo '{"type":"error","text":"no room"}' >windows.jsonl; sleep 5""")
    with pytest.raises(BootError, match="the simulator gave up: no room"):
        until_over(two)


def test_a_cpu_that_stands_still_is_a_hang_and_work_is_none(
    two: Boot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boots, "STUCK_SECONDS", 0.5)
    moving = "".join(
        f"echo '{json.dumps(SIGN | {'instructions': n})}' >>windows.jsonl; sleep 0.2\n"
        for n in range(5)
    )
    stuck = f"while sleep 0.1; do echo '{json.dumps(SIGN | {'instructions': 9})}'; done"
    play(two, f"{moving}{stuck} >>windows.jsonl")
    started = time.monotonic()
    with pytest.raises(BootError, match=r"no instruction .* turn of CPU 1"):
        until_over(two)
    assert time.monotonic() - started > 1.4


def test_nothing_is_left_behind(two: Boot) -> None:
    play(two, "sleep 100")
    base = two.place.base
    assert base.exists()
    two.close()
    assert not base.exists()


def test_stacks_are_those_of_cpus_that_are_not_halted() -> None:
    registers = (
        "CPU#0\nRAX=0 RIP=ffffffff81000104 RFL=00000246 II=0 A20=1 SMM=0 HLT=0\n"
        "CPU#1\nRAX=0 RIP=ffffffff81000104 RFL=00000246 II=0 A20=1 SMM=0 HLT=0\n"
        "CPU#2\nRAX=0 RIP=ffffffff81000200 RFL=00000246 II=0 A20=1 SMM=0 HLT=1\n"
    )
    symbols = Symbols(["ffffffff81000100 T osq_lock", "ffffffff81000200 T idle"])
    assert boots._where(registers, symbols) == "CPUs that are not idle: osq_lock (CPU 0, 1)"
