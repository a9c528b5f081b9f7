# SPDX-License-Identifier: GPL-2.0-only
import itertools
from collections import Counter
from pathlib import Path

import pytest

from apps.adapter import loads
from fscale.model import paths
from fscale.model.bench import Descriptor, Mode, OptionHelp
from fscale.model.config import Medium, Suite
from fscale.model.errors import FscaleError
from fscale.model.results import CellKey
from fscale.runner import plan
from fscale.runner.request import Request, read_suite

MEDIA = {"ram": Medium(title="r", kind="loop", size=1 << 30)}


def descriptor(name: str, modes: list[Mode], min_cores: int = 1) -> Descriptor:
    return Descriptor(
        id=name,
        title=name,
        operation="",
        paper="",
        type="data",
        action="read",
        sharing="low",
        contention="",
        setup="",
        consumes=False,
        background=min_cores > 1,
        min_cores=min_cores,
        modes=modes,
        options=[OptionHelp(name="open", default="open", help="", choices=["open", "stat"])],
    )


KNOWN = {
    "DRBL": descriptor("DRBL", ["buffered", "direct"]),
    "MWCL": descriptor("MWCL", ["buffered"]),
    "DRBL_bg": descriptor("DRBL_bg", ["buffered"], 2),
}


def suite(**changes: object) -> Suite:
    keys: dict[str, object] = {
        "title": "t",
        "workloads": "all",
        "filesystems": ["tmpfs", "ext4"],
        "media": ["ram"],
        "modes": ["buffered", "direct"],
        "cores": [1, 2],
        "duration": 1,
        "repetitions": 3,
    }
    return Suite.model_validate(keys | changes)


def make(s: Suite, seed: int = 1, counts: list[int] | None = None) -> list[CellKey]:
    return plan.make(s, KNOWN, MEDIA, {"tmpfs"}, counts or [1, 2], seed)


def test_every_combination_that_makes_sense_once_a_repetition() -> None:
    cells = make(suite())
    # DRBL 2 modes x 2 counts, MWCL 1 x 2, DRBL_bg only on 2 cores; each on 2 file systems, 3 times.
    assert len(cells) == (4 + 2 + 1) * 2 * 3
    assert len({cell.id for cell in cells}) == len(cells)
    assert set(Counter(cell.point for cell in cells).values()) == {3}
    assert {c.medium for c in cells if c.filesystem == "tmpfs"} == {"none"}
    assert {c.medium for c in cells if c.filesystem == "ext4"} == {"ram"}


def test_an_interrupted_run_is_balanced() -> None:
    repetitions = [cell.repetition for cell in make(suite())]
    assert repetitions == sorted(repetitions)


def test_order_is_random_and_reproducible() -> None:
    assert make(suite(), 1) == make(suite(), 1)
    assert make(suite(), 1) != make(suite(), 2)
    cells = make(suite())
    half = len(cells) // 3
    orders = [[c.point for c in cells[i * half : (i + 1) * half]] for i in range(3)]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])


def test_grouped_order_changes_the_core_count_once_a_group() -> None:
    cells = make(suite(order="cores", repetitions=1))
    counts = [cell.cores for cell in cells]
    assert sum(a != b for a, b in itertools.pairwise(counts)) == 1


def test_ids_depend_on_every_parameter() -> None:
    cell = make(suite())[0]
    assert cell.id.startswith(f"{cell.workload}-{cell.filesystem}-")
    for change in ({"duration": 2.0}, {"options": {"open": "stat"}}, {"cores": 7}):
        assert cell.model_copy(update=change).id != cell.id


def test_options_reach_only_the_workloads_that_have_them() -> None:
    cells = make(suite(options={"all": {"open": "stat"}, "MWCL": {"open": "open"}}))
    assert {c.options["open"] for c in cells if c.workload == "MWCL"} == {"open"}
    assert {c.options["open"] for c in cells if c.workload == "DRBL"} == {"stat"}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"workloads": ["DRLB"]}, "unknown workload DRLB; did you mean DRBL"),
        ({"options": {"DRBX": {"open": "stat"}}}, "options for unknown workload DRBX"),
        ({"options": {"DRBL": {"opne": "stat"}}}, "DRBL has no option opne; did you mean open"),
        ({"options": {"DRBL": {"open": "x"}}}, "option open is one of open, stat"),
    ],
)
def test_unknown_names(changes: dict[str, object], says: str) -> None:
    with pytest.raises(FscaleError, match=says):
        plan.check_names(suite(**changes), KNOWN)


def test_nothing_to_measure() -> None:
    with pytest.raises(
        FscaleError, match="nothing to measure: no workload of MWCL has mode direct"
    ):
        make(suite(workloads=["MWCL"], modes=["direct"]))


def test_what_is_left_out_is_said() -> None:
    said = plan.left_out(suite(filesystems=["ext4", "ext4:4"]), KNOWN, [1, 2])
    assert "DRBL_bg is not measured at 1 cores: it needs 2" in said
    assert "MWCL is not measured in mode direct: it has no such mode" in said
    assert "DRBL is not measured on ext4:4: it cannot spread its files" in said
    assert not any("DRBL is not measured in mode" in sentence for sentence in said)


def test_partitions_are_measured_beside_the_whole_medium() -> None:
    request = Request(
        suite=paths.SUITES / "apps.toml", output=Path("x"), partitions=8, applications=loads
    )
    request.overrides = {"filesystems": ["tmpfs", "ext4", "xfs"], "workloads": ["exim"]}
    asked = read_suite(request)
    assert asked.filesystems == ["tmpfs", "ext4", "xfs", "ext4:8", "xfs:8"]
