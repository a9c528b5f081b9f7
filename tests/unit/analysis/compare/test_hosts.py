# SPDX-License-Identifier: GPL-2.0-only
"""A comparison does not take a difference between machines for one between its sides."""

import json
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.hosts import KEY, mixed_hosts
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.analysis.curves import arrange
from fscale.analysis.reader import load
from fscale.analysis.summary import summarise
from fscale.farm.results import FOLDER
from fscale.model.errors import FscaleError
from fscale.model.facts import Difference
from tests.support.synthetic import grid, machine, write_run


def record(directory: Path, cell: str, host: str) -> None:
    text = json.dumps({"cell": cell, "host": host, "task": "0" * 16, "files": {}})
    (directory / FOLDER / f"{cell}.json").write_text(text)


def run(directory: Path, *hosts: str | None, filesystem: str = "tmpfs", **changes: Any) -> Path:
    """A run of one point whose cells the given machines measured in turn; None: its own machine."""
    cells = grid((1,), 8, workloads=["DRBL"], filesystems=[filesystem])
    write_run(directory, cells, machine=machine(1, **changes))
    (directory / FOLDER).mkdir()
    for one, host in zip(cells, cycle(hosts or [None]), strict=False):
        if host is not None:
            record(directory, one.id, host)
    return directory


@pytest.mark.parametrize(
    ("base", "new", "difference"),
    [
        (["n1"], ["n1"], None),
        (["n1"], ["n2"], None),
        (["n2", "n1"], ["n1"], (["n1", "n2"], ["n1"])),
        (["n1"], ["n1", "n2"], (["n1"], ["n1", "n2"])),
        (["n1", "n2"], ["n1", "n2"], (["n1", "n2"], ["n1", "n2"])),
        ([], [], None),
        ([], ["n1", "n2"], (["a"], ["n1", "n2"])),
        (["n1", None], ["n1"], (["a", "n1"], ["n1"])),
        (["n1"], ["n1", None], (["n1"], ["b", "n1"])),
    ],
)
def test_a_side_of_several_machines_is_refused(
    tmp_path: Path,
    base: Sequence[str | None],
    new: Sequence[str | None],
    difference: tuple[list[str], list[str]] | None,
) -> None:
    sides = open_sides(
        run(tmp_path / "a", *base, hostname="a"), run(tmp_path / "b", *new, hostname="b")
    )
    assert mixed_hosts(sides) == ([Difference(KEY, *difference)] if difference else [])
    if difference is None:
        compare(sides, Settings())
        return
    with pytest.raises(FscaleError) as caught:
        compare(sides, Settings())
    assert KEY in str(caught.value)
    allowed = compare(sides, Settings(allow_different=(KEY,)))
    assert any(KEY in warning for warning in allowed.warnings)


def test_points_that_each_have_one_machine_are_compared(tmp_path: Path) -> None:
    directories = [tmp_path / "a", tmp_path / "b"]
    for directory in directories:
        cells = grid((1,), 8, workloads=["DRBL", "MWCL"], filesystems=["tmpfs"])
        write_run(directory, cells)
        (directory / FOLDER).mkdir()
        for one in cells:
            record(directory, one.id, {"DRBL": "n1", "MWCL": "n2"}[one.key.workload])
    assert not mixed_hosts(open_sides(*directories))


def test_two_machines_are_reported_whichever_planned_the_runs(tmp_path: Path) -> None:
    planned = {"hostname": "n1", "boots": ["b1"]}
    sides = open_sides(run(tmp_path / "a", "n1", **planned), run(tmp_path / "b", "n2", **planned))
    compared = compare(sides, Settings())
    assert "the sides differ in machine.hostname: n1 and n2" in compared.warnings
    assert (compared.base.machine, compared.new.machine) == ("n1", "n2")
    assert compared.between_boots
    swapped = [run(tmp_path / f"{host}0", "n3", hostname=host) for host in ("n1", "n2")]
    assert not any("hostname" in w for w in compare(open_sides(*swapped), Settings()).warnings)


def test_guests_on_two_machines_are_reported(tmp_path: Path) -> None:
    directories = [
        run(tmp_path / host, guest={"accelerator": "kvm", "label": "KVM", "host": host})
        for host in ("n1", "n2")
    ]
    compared = compare(open_sides(*directories), Settings())
    assert "the sides differ in machine.hostname: n1 and n2" in compared.warnings


def test_another_file_system_of_several_machines_is_refused(tmp_path: Path) -> None:
    base = run(tmp_path / "a", "n1")
    new = run(tmp_path / "b", "n1", "n2", filesystem="ext4")
    assert mixed_hosts(open_sides(base, new)) == [Difference(KEY, ["n1"], ["n1", "n2"])]


def test_a_curve_of_several_machines_is_marked(tmp_path: Path) -> None:
    cells = grid((1, 2), 2, workloads=["DRBL", "MWCL"], filesystems=["tmpfs"])
    write_run(tmp_path, cells)
    (tmp_path / FOLDER).mkdir()
    for one in cells:
        record(tmp_path, one.id, f"n{one.key.cores}" if one.key.workload == "DRBL" else "n1")
    results = load(tmp_path)
    (page,) = arrange(summarise(results.scored, hosts=results.hosts), ["tmpfs"], {})
    names = {panel.workload: panel.curves[0].name for panel in page.panels}
    assert names == {"DRBL": "tmpfs (2 machines)", "MWCL": "tmpfs"}


def test_simulated_cells_depend_on_no_machine(tmp_path: Path) -> None:
    guest = {"accelerator": "simulated"}
    assert not mixed_hosts(
        open_sides(*(run(tmp_path / name, "n1", "n2", guest=guest) for name in "ab"))
    )


def test_a_record_of_a_stranger_is_an_error(tmp_path: Path) -> None:
    directories = [run(tmp_path / name, "n1") for name in "ab"]
    (directories[1] / FOLDER / "x.json").write_text('{"host": 1}')
    with pytest.raises(FscaleError) as caught:
        open_sides(*directories)
    assert str(caught.value) == (
        f"{directories[1]}/hosts says which machine measured a cell, and cannot be read: "
        "4 validation errors for Record"
    )
