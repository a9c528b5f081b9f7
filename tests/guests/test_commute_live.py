# SPDX-License-Identifier: GPL-2.0-only
"""Conflicts whose answers are known from the kernel's source."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from fscale.commute import guest
from fscale.commute.conflicts import Conflict, lasting
from fscale.commute.generate import PairTest, generate
from fscale.commute.states import Key, Value
from fscale.vm.steps import Steps
from tests.guests.test_simulate_live import MISSING

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
    pytest.mark.timeout(900),
]


def first(a: str, b: str, known: dict[Key, Value], *arguments: Value) -> PairTest:
    """A test of two processes in whose initial state these parts, among others, are known.

    `arguments`: those of call b; none: any.
    """
    return next(
        test
        for test in generate(a, b)
        if test.b.process == 1
        and known.items() <= test.known.items()
        and arguments in ((), test.b.arguments)
    )


def executed(
    prepared: guest.Guest, tests: Sequence[PairTest], order: str, logs: Path
) -> list[list[Conflict]]:
    execution = guest.execute(prepared, tests, order, 1, min(os.sched_getaffinity(0)), logs)
    while True:
        try:
            next(execution)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        time.sleep(0.5)


def test_known_conflicts_of_tmpfs(tmp_path: Path) -> None:
    opened: dict[Key, Value] = {("file", 0, 0): ("inode", 0), ("file", 1, 0): ("inode", 1)}
    ends: dict[Key, Value] = {("file", 0, 0): ("pipe", 0, "r"), ("file", 1, 0): ("pipe", 0, "w")}
    stats = first("stat", "stat", {("name", 0, 0): 0, ("name", 0, 1): 1})
    free: dict[Key, Value] = {("name", 0, 0): 0, ("name", 0, 1): None, ("name", 0, 2): None}
    links = first("link", "link", free, (0, 0), (0, 2))
    reads = first("pread", "pread", opened)
    pipes = first("read", "write", ends)
    prepared = guest.prepare("tmpfs", "6.1", [], Steps(Console(stderr=True)))
    tests = [stats, links, reads, pipes]
    boots = [executed(prepared, tests, order, tmp_path / "logs") for order in ("ab", "ba")]
    of_stats, of_links, of_reads, of_pipes = map(lasting, zip(*boots, strict=True))
    assert of_stats == []
    assert of_reads == []
    assert any(one.object.endswith("i_rwsem") and "down_write" in one.a for one in of_links)
    assert any("mutex_lock" in one.a and "mutex_lock" in one.b for one in of_pipes)
