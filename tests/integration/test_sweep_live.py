# SPDX-License-Identifier: GPL-2.0-only
"""A sweep as it is measured: each cell works with the value of its key, and a run is resumed."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.runner import fscale

pytestmark = [pytest.mark.live, pytest.mark.root, pytest.mark.usefixtures("machine", "unchanged")]

BLOCKS = (4096, 16384, 65536)


def measured(output: Path) -> dict[Path, dict[str, Any]]:
    return {path: json.loads(path.read_text()) for path in (output / "cells").glob("*.json")}


def test_each_cell_works_with_its_value_and_a_lost_one_is_measured_again(tmp_path: Path) -> None:
    output = tmp_path / "out"
    command = (
        *("run", "quick", "--workload", "DWAL", "--option", "DWAL.block=4k,16k,64k"),
        *("--fs", "tmpfs,ext4", "--cores", "1,2", "--duration", "0.1", "--repetitions", "1"),
        *("--set", "control=0", "--set", "remeasure=0", "--wait", "240", "--output", output),
    )
    done = fscale(*command)
    assert done.returncode == 0, done.stderr
    cells = measured(output)
    assert {
        (c["key"]["filesystem"], c["key"]["cores"], c["bench"]["options"]["block"])
        for c in cells.values()
    } == {(fs, cores, block) for fs in ("tmpfs", "ext4") for cores in (1, 2) for block in BLOCKS}
    for cell in cells.values():
        assert cell["key"]["options"] == {"block": cell["bench"]["options"]["block"]}
    (lost, *kept) = cells
    lost.unlink()
    assert fscale(*command).returncode == 0
    again = measured(output)
    assert again.keys() == cells.keys()
    assert all(again[path] == cells[path] for path in kept)
    assert fscale("report", output).returncode == 0
    assert (output / "plots" / "sweep-DWAL-on-ext4-by-block-heat.pdf").exists()
