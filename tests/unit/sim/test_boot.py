# SPDX-License-Identifier: GPL-2.0-only
"""A boot is followed by what the guest and the plugin write; here a shell plays both."""

import json
import sys
import time
from collections.abc import Iterator
from tempfile import TemporaryDirectory

import pytest

from fscale.sim import boot as boots
from fscale.sim.boot import Boot, BootError, PointResult
from fscale.sim.plan import GuestPoint
from fscale.sim.symbols import Symbols
from tests.support import synthetic

PARAMETERS = '{"type":"parameters","format":1,"vcpus":2}'
SIGN = {"type": "progress", "mode": "detailed", "cycles": 1, "vcpu": 1, "host_seconds": 5.0}


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # The path of a socket has at most 107 bytes, which pytest's own directories use up.
    with TemporaryDirectory() as directory:
        monkeypatch.setenv("XDG_CACHE_HOME", directory)
        yield


def points(*cores: int) -> list[GuestPoint]:
    return [
        GuestPoint(
            number,
            synthetic.key(filesystem="tmpfs", medium="none", cores=count),
            1,
        )
        for number, count in enumerate(cores)
    ]


@pytest.fixture
def two() -> Iterator[Boot]:
    with Boot(points(2, 1), "point 0\npoint 1\n", ()) as boot:
        yield boot


def play(boot: Boot, script: str) -> None:
    boot.start(["sh", "-c", f"cd {boot.place.base}\n{script}"], {"PATH": "/usr/bin:/bin"})


def until_over(boot: Boot) -> list[PointResult]:
    found: list[PointResult] = []
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


def test_each_point_gets_the_cpu_time_of_its_modes(two: Boot) -> None:
    def ends(mode: str, point: int, seconds: float) -> str:
        return json.dumps({"type": "mode", "mode": mode, "point": point, "cpu_seconds": seconds})

    # The number of the point is known from its windows on. The second one's set-up fails.
    lines = [
        *(PARAMETERS, ends("fast", 0, 5.0), ends("ordered", 0, 0.25), ends("detailed", 0, 2.0)),
        *(ends("ordered", 0, 0.5), ends("fast", 0, 1.0), ends("ordered", 0, 4.0)),
    ]
    text = "\n".join(lines)
    play(
        two,
        f"echo '{text}' >windows.jsonl\n"
        "for n in 0 1; do echo 0 >shared/points/$n.status; touch shared/points/$n.stderr\n"
        "echo '{}' >shared/points/$n.json; done\n"
        "sleep 60",
    )
    first, second = until_over(two)
    assert first.cpu_seconds == {"fast": 5.0, "ordered": 0.75, "detailed": 2.0}
    assert second.cpu_seconds == {}


def test_the_plugin_is_told_where_a_module_is_before_the_guest_goes_on() -> None:
    with Boot(points(1), "", ("1:va:ext4:counter:0x0-0x4", "2:pc:0x10-0x11")) as boot:
        play(
            boot,
            "printf 'ffffffffc0125000 b counter\\t[ext4]\\n' >made; mv made shared/kallsyms\n"
            "until [ -f shared/go ]; do sleep 0.05; done\n"
            "cp rules told; echo words >shared/points/0.stderr\n"
            "echo 0 >shared/points/0.status; echo '{}' >made; mv made shared/points/0.json",
        )
        until_over(boot)
        assert (boot.place.base / "told").read_text() == (
            "1:va:0xffffffffc0125000-0xffffffffc0125040\n2:pc:0x10-0x11\n"
        )


def test_what_is_to_be_free_and_is_not_there_is_said() -> None:
    with Boot(points(1), "", ("1:va:ext4:nothing:0x0-0x4",)) as boot:
        play(boot, ": >made; mv made shared/kallsyms; sleep 5")
        with pytest.raises(BootError, match=r"the guest has no 'nothing \[ext4\]'"):
            until_over(boot)


def test_points_come_as_they_end(two: Boot) -> None:
    play(
        two,
        f"echo '{PARAMETERS}' >windows.jsonl\n"
        """echo '{"type":"code","point":0,"code":[["0x10",5]]}' >>windows.jsonl\n"""
        # The guest moves the JSON there when all else is.
        "echo words >shared/points/0.stderr; echo 0 >shared/points/0.status\n"
        "echo '{}' >made; mv made shared/points/0.json\n"
        "echo 'mkfs failed: full' >made; mv made shared/points/1.failed; sleep 5",
    )
    first, second = until_over(two)
    assert (first.point.number, first.bench, first.status, first.stderr) == (0, "{}\n", 0, "words")
    assert (second.point.number, second.failed) == (1, "mkfs failed: full")
    assert (first.code, second.code) == ([("0x10", 5)], [])
    assert two.unfinished == []


def test_a_guest_that_dies_is_said_with_its_last_words(two: Boot) -> None:
    play(
        two,
        ": >shared/points/0.stderr; echo 0 >shared/points/0.status\n"
        "echo '{}' >made; mv made shared/points/0.json\n"
        "echo 'fscale-sim: cannot unmount after point 0' >console.log",
    )
    kept: list[PointResult] = []
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
    with pytest.raises(BootError, match=r"no instruction .*CPU 1 is to run next"):
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


MONITOR = """\
import socket
line = socket.socket(socket.AF_UNIX)
line.bind("monitor")
line.listen()
while True:
    peer, _ = line.accept()
    peer.sendall(b"QEMU 10.0\\r\\n(qemu) ")
    assert peer.recv(100) == b"x/2gx 0xffffffff82000000\\n"
    peer.sendall(b"x\\x1b[K\\r\\nffffffff82000000: 0xffff888100000000 ")
    peer.sendall(b"0xffff888100080000\\r\\n(qemu) ")
"""
KALLSYMS = "40 A runqueues\n1000 A __per_cpu_end\nffffffff82000000 D __per_cpu_offset\n"


def test_the_monitor_tells_where_each_cpu_has_its_own(two: Boot) -> None:
    (two.place.shared / "kallsyms").write_text(KALLSYMS)
    own = 0xFFFF888100080040
    assert two.symbols().object(own) == "memory at 0x100080040"  # without a monitor
    (two.place.base / "play.py").write_text(MONITOR)
    play(two, f"exec {sys.executable} play.py")
    for _ in range(100):
        if two.place.monitor.exists():
            break
        time.sleep(0.1)
    started = time.monotonic()
    assert two.symbols().object(own) == "per-CPU runqueues (of CPU 1)"
    assert time.monotonic() - started < 3


def test_a_guest_without_points_tells_its_symbols_too() -> None:
    with Boot([], "", ()) as boot:
        (boot.place.shared / "kallsyms").write_text(KALLSYMS)
        found = boot.symbols().extent("__per_cpu_offset")
        assert found is not None
        assert found[0].start == 0xFFFFFFFF82000000


@pytest.mark.parametrize("dump", ["", "Cannot access memory", "ffffffff82000000: 0x00"])
def test_what_the_monitor_does_not_know_is_no_word(dump: str) -> None:
    assert boots._words(dump) == []
