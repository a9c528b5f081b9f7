# SPDX-License-Identifier: GPL-2.0-only
"""Runs know their boots, and a comparison knows whether it is one of two boots."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.analysis.compare.warnings import BETWEEN_BOOTS
from fscale.cli import app
from fscale.model.results import Machine, all_boots
from fscale.runner.machine import host
from tests.support.synthetic import cell, key, machine, write_run
from tests.validation.boots import components

RATES = [100.0, 101, 99, 100.5, 99.5, 100.2]


def booted(boots: list[str] | None) -> Machine:
    return machine(1).model_copy(update={"boots": boots})


def written(directory: Path, boots: list[str] | None, sides: tuple[Any, ...] = (None,)) -> Path:
    cells = [cell(key(n, side=side), rate) for n, rate in enumerate(RATES, 1) for side in sides]
    return write_run(directory, cells, filesystems=["ext4"], machine=booted(boots))


def test_a_machine_says_in_which_boot_it_is() -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert host.read_machine().boots == [boot]


def test_a_result_that_is_older_has_no_boot() -> None:
    older = machine(1).model_dump(mode="json")
    del older["boots"]
    assert Machine.model_validate(older).boots is None


@pytest.mark.parametrize(
    ("machines", "boots"),
    [
        ([["a"], ["a"]], ["a"]),
        ([["b"], ["a"]], ["b", "a"]),
        ([["b", "a"], ["a", "c"]], ["b", "a", "c"]),
        ([None, ["a"]], None),
        ([["a"], None], None),
    ],
)
def test_what_was_measured_in_several_boots_has_them_all(
    machines: list[list[str] | None], boots: list[str] | None
) -> None:
    assert all_boots(map(booted, machines)) == boots


@pytest.mark.parametrize(
    ("base", "new", "between"),
    [
        (["a"], ["a"], False),
        (["a"], ["b"], True),
        (["a", "b"], ["a", "b"], True),
        (["a", "b"], ["b"], True),
        (None, ["b"], None),
        (["a"], None, None),
        (None, None, None),
    ],
)
def test_a_comparison_says_whether_it_is_one_of_two_boots(
    base: list[str] | None, new: list[str] | None, between: bool | None, tmp_path: Path
) -> None:
    sides = written(tmp_path / "base", base), written(tmp_path / "new", new)
    found = compare(open_sides(*sides), Settings())
    assert found.between_boots is between
    assert (BETWEEN_BOOTS in found.warnings) is bool(between)
    done = CliRunner().invoke(app, ["compare", *map(str, sides), "--json"])
    assert (done.exit_code, json.loads(done.stdout)["between_boots"]) == (0, between)


@pytest.mark.parametrize("boots", [["a"], ["a", "b"], None])
def test_interleaved_sides_share_their_boots(boots: list[str] | None, tmp_path: Path) -> None:
    run = written(tmp_path / "ab", boots, sides=("A", "B"))
    record = {"schema": 1, "base": "ext4", "new": "ext4", "looks": [6]}
    (run / "ab.json").write_text(json.dumps(record))
    found = compare(open_sides(run, None), Settings())
    assert found.between_boots is False and BETWEEN_BOOTS not in found.warnings


def test_the_campaign_tells_the_spread_between_boots_from_that_within() -> None:
    draw = random.Random(1)

    def groups(between: float) -> list[list[float]]:
        levels = [draw.gauss(0, between) for _ in range(400)]
        return [[level + draw.gauss(0, 0.01) for _ in range(7)] for level in levels]

    within, between = components(groups(0.03))
    assert within == pytest.approx(0.01, rel=0.1)
    assert between == pytest.approx(0.03, rel=0.15)
    within, between = components(groups(0))
    assert within == pytest.approx(0.01, rel=0.1)
    assert between < 0.002
