# SPDX-License-Identifier: GPL-2.0-only
"""Recorded profiles (Linux 6.18, 2 cores) give the names and figures that they gave when recorded.

`PYTHONPATH=. python tests/unit/analysis/diagnosis/test_golden.py` writes expected.json anew.
"""

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fscale.analysis.diagnosis import cpuprofile, lockprofile, offcpu
from fscale.analysis.diagnosis.profile import load_profile
from fscale.model import paths
from tests.support.golden import format_golden

GOLDEN = paths.ROOT / "tests" / "golden" / "profiles"
EXPECTED = GOLDEN / "expected.json"
FILES = sorted(GOLDEN.glob("*.json.gz"))
THEORY = {
    "MWCM-ext4": "inode->i_rwsem of the shared directory",
    "MWCM-xfs": "inode->i_rwsem of the shared directory",
    "MWCM-btrfs": "inode->i_rwsem of the shared directory",
    "MWCM-tmpfs": "inode->i_rwsem of the shared directory",
    "DWOM-ext4": "inode->i_rwsem of the shared file",
    "DWOM-xfs": "inode->i_rwsem of the shared file",
    "MWRL-tmpfs": "rename_lock",
    "MWRM-ext4": "sb->s_vfs_rename_mutex",
    "MWCL-btrfs": "tree locks (extent_buffer->lock)",
    "DWSL-ext4": "journal commit (jbd2_log_wait_commit)",
}


def summary(path: Path) -> dict[str, Any]:
    """The first five objects with their shares of the cores' time."""
    content = load_profile(path)
    rows: list[tuple[str, str, float]]
    if content["profiler"] == "locks":
        locks = lockprofile.read(content)
        rows = [(x.name.object, x.name.by.value, x.wait_ns / locks.active_ns) for x in locks.locks]
    elif content["profiler"] == "offcpu":
        off = offcpu.read(content)
        rows = [(w.name.object, w.name.by.value, w.wait_ns / off.active_ns) for w in off.waits]
    else:
        cpu = cpuprofile.read(content)
        spots = Counter({n: s.periods for n, s in (cpu.spinning | cpu.atomics).items()})
        rows = [(name, "stack", cpu.share(n)) for name, n in spots.most_common()]
    return {"objects": [[name, by, round(share, 4)] for name, by, share in rows[:5]]}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_a_recorded_profile_says_what_it_said(path: Path) -> None:
    assert summary(path) == json.loads(EXPECTED.read_text())[path.name]


@pytest.mark.parametrize("pair", THEORY)
def test_theory_is_named_first(pair: str) -> None:
    tool = "offcpu" if pair.startswith("DWSL") else "locks"
    assert summary(GOLDEN / f"{pair}-{tool}.json.gz")["objects"][0][0] == THEORY[pair]


def test_private_reads_contend_for_nothing() -> None:
    objects = summary(GOLDEN / "DRBL-tmpfs-locks.json.gz")["objects"]
    assert sum(share for _, _, share in objects) < 0.001


@pytest.mark.slow
def test_a_hundred_thousand_stacks_are_read() -> None:
    value = '{"count": 1, "total": 9}'
    waits = ", ".join(
        f'"1,{-(1 << 46) - n},\\n _raw_spin_lock+5\\n dput+{m}\\n path_put+1\\n": {value}'
        for n in range(1000)
        for m in range(100)
    )
    found = lockprofile.read({"output": f'{{"type": "stats", "data": {{"@wait": {{{waits}}}}}}}'})
    assert sum(lock.count for lock in found.locks) == 100_000
    assert found.full


def test_a_profile_is_summarised_within_five_seconds() -> None:
    started = time.process_time()
    for path in FILES:
        summary(path)
    assert time.process_time() - started < 5


if __name__ == "__main__":
    EXPECTED.write_text(format_golden({p.name: summary(p) for p in FILES}))
