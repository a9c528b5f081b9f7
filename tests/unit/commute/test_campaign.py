# SPDX-License-Identifier: GPL-2.0-only
"""Boots are kept, resumed, and refused where they are not those of the command."""

import json
import os
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fscale.commute import boot
from fscale.commute.boot import Boot, Ended, estimate_boot, estimate_seconds, execute_here
from fscale.commute.campaign import Campaign
from fscale.commute.conflicts import Conflict
from fscale.commute.generate import generate
from fscale.commute.matrix import Matrix
from fscale.commute.store import Store
from fscale.model.errors import FscaleError, Interrupted
from fscale.sim.boot import BootError

TESTS = list(generate("link", "unlink"))[:8]
SIZES = {("link", "unlink"): 130}
RWSEM = Conflict("i_rwsem", False, ("down_write",), ("up_write",))
FIRST = "boots/tmpfs-6.1-1.jsonl"


@dataclass
class Guests:
    """Stands in for the guests: the boots that were executed, and what interrupts one."""

    boots: list[tuple[str, int]] = field(default_factory=list)
    tests: list[list[str]] = field(default_factory=list)
    cpus: list[int] = field(default_factory=list)
    running: int = 0
    most: int = 0
    """guests that ran at the same time"""
    stop: Callable[[], None] = lambda: None

    def execute(
        self, _guest: Any, tests: Any, order: str, seed: int, cpu: int, _logs: Any
    ) -> Generator[int, None, list[list[Conflict]]]:
        self.boots.append((order, seed))
        self.tests.append([test.id for test in tests])
        self.cpus.append(cpu)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            yield len(tests)
            if len(self.boots) > 1:
                self.stop()
        finally:
            self.running -= 1
        conflicting = TESTS[: 2 if order == "ab" else 1]
        return [[RWSEM] if test in conflicting else [] for test in tests]


@pytest.fixture
def guests(monkeypatch: pytest.MonkeyPatch) -> Guests:
    made = Guests()
    monkeypatch.setattr(boot, "execute", made.execute)
    monkeypatch.setattr(boot, "POLL_SECONDS", 0)
    return made


def guest(identity: str = "one", release: str = "6.1") -> Any:
    return SimpleNamespace(name="tmpfs", identity=identity, kernel=SimpleNamespace(release=release))


def measure(
    output: Path, identity: str = "one", boots: int = 2, seed: int = 1, cpus: Sequence[int] = (0,)
) -> Matrix:
    store = Store(output)
    store.check(TESTS)
    begun = Campaign(store, [guest(identity)], TESTS, boots, seed)
    store.save_tests(TESTS)
    (found,) = begun.measure(SIZES, here(cpus))
    return found


def here(cpus: Sequence[int]) -> Callable[[Sequence[Boot]], Ended]:
    return lambda boots: execute_here(boots, TESTS, cpus, Path("logs"))


def refused(function: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    with pytest.raises(FscaleError) as caught:
        function(*arguments, **options)
    return str(caught.value)


def test_boots_alternate_and_are_kept(tmp_path: Path, guests: Guests) -> None:
    found = measure(tmp_path)
    assert guests.boots == [("ab", 1), ("ba", 2)]
    assert (found.total.tests, found.total.free) == (8, 7)
    assert measure(tmp_path) == found
    assert len(guests.boots) == 2
    measure(tmp_path, boots=3)
    assert guests.boots[2:] == [("ab", 3)]
    # Each executes the same tests in an order of its own.
    assert len(set(map(tuple, guests.tests))) == 3
    assert len(set(map(frozenset, guests.tests))) == 1


def test_an_interrupted_command_resumes(tmp_path: Path, guests: Guests) -> None:
    def interrupt() -> None:
        raise Interrupted

    guests.stop = interrupt
    with pytest.raises(Interrupted):
        measure(tmp_path)
    guests.stop = lambda: None
    measure(tmp_path)
    assert guests.boots == [("ab", 1), ("ba", 2), ("ba", 2)]


def test_each_cpu_has_a_guest(tmp_path: Path, guests: Guests) -> None:
    named = [guest(), guest(release="6.12")]
    begun = Campaign(Store(tmp_path), named, TESTS, 3, 1)
    found = list(begun.measure(SIZES, here([4, 7])))
    assert [one.kernel for one in found] == ["6.1", "6.12"]
    assert (len(guests.boots), guests.most, guests.running) == (6, 2, 0)
    assert sorted(guests.cpus) == [4, 4, 4, 7, 7, 7]
    alone = measure(tmp_path / "alone", boots=3)
    assert found[0] == alone


def test_an_interrupt_ends_every_guest(tmp_path: Path, guests: Guests) -> None:
    def interrupt() -> None:
        raise Interrupted

    guests.stop = interrupt
    with pytest.raises(Interrupted):
        measure(tmp_path, cpus=[0, 1])
    assert (guests.most, guests.running) == (2, 0)


def test_a_guest_that_ends_early_is_booted_once_more(
    tmp_path: Path, guests: Guests, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(times: int) -> Callable[[], None]:
        left = [times]

        def stop() -> None:
            left[0] -= 1
            if left[0] >= 0:
                raise BootError("QEMU ended", None)

        return stop

    guests.stop = fails(2)
    with pytest.raises(BootError):
        measure(tmp_path / "a")
    assert guests.boots == [("ab", 1), ("ba", 2), ("ba", 2)]
    assert "warning: boot 2 of 2: tmpfs on 6.1: QEMU ended; it is booted" in capsys.readouterr().err
    guests.boots.clear()
    guests.stop = fails(1)
    measure(tmp_path / "b")
    assert guests.boots == [("ab", 1), ("ba", 2), ("ba", 2)]


def test_what_was_asked_for_otherwise_is_refused(tmp_path: Path, guests: Guests) -> None:
    measure(tmp_path)
    assert "is of another kernel, module, program or --seed" in refused(measure, tmp_path, "other")
    assert "or --seed; use another --output" in refused(measure, tmp_path, seed=2)
    assert "contains other tests; give their --calls" in refused(Store(tmp_path).check, TESTS[:2])
    assert len(guests.boots) == 2
    clashing = [guest(), guest("other")]
    assert "two kernels with tmpfs have the release 6.1" in refused(
        Campaign, Store(tmp_path), clashing, TESTS, 2, 1
    )


def test_a_guest_named_twice_is_one(tmp_path: Path, guests: Guests) -> None:
    named = [guest(), guest(), guest(release="6.12")]
    begun = Campaign(Store(tmp_path), named, TESTS, 2, 1)
    assert [one.kernel.release for one in begun.guests] == ["6.1", "6.12"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-30]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"\xff\x00"),
        lambda path: path.write_text(path.read_text().replace("down_write", "\x1b[2J", 1)[:-9]),
        lambda path: path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1])),
        lambda path: path.write_text(path.read_text().replace('"layout": false', '"layout": []')),
        lambda path: (path.unlink(), os.mkfifo(path)),
        lambda path: (path.unlink(), path.mkdir()),
        lambda path: (path.rename(path.with_suffix(".old")), path.symlink_to("a")),
    ],
)
def test_a_damaged_boot_is_refused(
    spoil: Callable[[Path], None], tmp_path: Path, guests: Guests
) -> None:
    measure(tmp_path)
    spoil(tmp_path / FIRST)
    assert str(tmp_path / FIRST) in refused(measure, tmp_path)
    assert len(guests.boots) == 2


def test_tests_of_a_stranger_are_refused(tmp_path: Path) -> None:
    (tmp_path / "tests.jsonl").write_bytes(b"\xff\n")
    assert "contains other tests" in refused(Store(tmp_path).check, TESTS)
    (tmp_path / "tests.jsonl").unlink()
    os.mkfifo(tmp_path / "tests.jsonl")
    assert "it is not a regular file" in refused(Store(tmp_path).check, TESTS)
    (tmp_path / "tests.jsonl").unlink()
    (tmp_path / "run.json").touch()
    assert "has no tests.jsonl" in refused(Store(tmp_path).check, TESTS)


def test_each_test_is_a_line_to_search(tmp_path: Path, guests: Guests) -> None:
    measure(tmp_path)
    lines = [json.loads(line) for line in (tmp_path / FIRST).read_text().splitlines()]
    assert [line.get("id") for line in lines] == [None, *guests.tests[0]]


def test_time_left(tmp_path: Path, guests: Guests, capsys: pytest.CaptureFixture[str]) -> None:
    measure(tmp_path)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "boot 1 of 2: tmpfs on 6.1; about 0:22 left"
    assert second == "boot 2 of 2: tmpfs on 6.1; about 0:00 left"
    each = estimate_boot(3152)
    assert 100 < estimate_seconds(2, each, 1) < 150
    assert estimate_seconds(3, each, 2) == estimate_seconds(2, each, 1)
