# SPDX-License-Identifier: GPL-2.0-only
"""The judge of a directory with many names: what it takes for slow, and for a wrong listing."""

import os

import pytest

from tests.lanefs import many
from tests.lanefs.device import Fault
from tests.lanefs.many import Cost


@pytest.fixture
def costs(monkeypatch):
    """What a full directory costs in each round; an empty one costs 10."""
    rounds: list[float] = []
    taken = iter(rounds)

    def cost(directory, _batch):
        return Cost(10, 10) if directory.name == "empty" else Cost(next(taken), 10)

    monkeypatch.setattr(many, "_cost", cost)
    monkeypatch.setattr(many, "drop_caches", lambda: None)
    return rounds


def test_one_disturbed_round_does_not_count(costs, tmp_path):
    costs += [20, 900, 20, 20, 20]
    assert "a create costs 10 us in an empty directory and 20" in many.run(tmp_path / "d", 30)


def test_a_directory_that_gets_slow_is_found(costs, tmp_path):
    costs += [31, 31, 10, 31, 10]
    with pytest.raises(Fault, match="it gets slow: 30 names"):
        many.run(tmp_path / "d", 30)


def test_a_name_that_is_not_listed_is_found(costs, tmp_path, monkeypatch):
    costs += [10] * many.ROUNDS
    listed = os.listdir
    monkeypatch.setattr("os.listdir", lambda path: listed(path)[1:])
    with pytest.raises(Fault, match="29 names are listed"):
        many.run(tmp_path / "d", 30)
