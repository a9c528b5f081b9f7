# SPDX-License-Identifier: GPL-2.0-only
"""How the writes of a recovery are cut."""

from fscale.vm.logwrites import FLUSH, FUA, LogEntry
from tests.lanefs.recovery_cuts import flush_groups


def _entries(*flags: int) -> list[LogEntry]:
    return [LogEntry(n, flag, 0, 4096, 0, None) for n, flag in enumerate(flags)]


def test_each_group_ends_with_what_makes_it_durable():
    groups = flush_groups(_entries(FLUSH, 0, 0, FUA, 0, FLUSH | FUA))
    assert [[entry.index for entry in group] for group in groups] == [[0], [1, 2, 3], [4, 5]]


def test_what_was_never_flushed_is_a_group_of_its_own():
    groups = flush_groups(_entries(FLUSH, 0, 0))
    assert [[entry.index for entry in group] for group in groups] == [[0], [1, 2]]
