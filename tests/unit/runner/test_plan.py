# SPDX-License-Identifier: GPL-2.0-only
import itertools
from collections import Counter
from pathlib import Path

import pytest

from fscale.apps.adapter import loads
from fscale.model import catalogue, paths
from fscale.model.bench import Descriptor, Mode, OptionHelp
from fscale.model.config import FileSystem, Medium, Suite
from fscale.model.errors import FscaleError
from fscale.model.results import CellKey
from fscale.runner import options, plan
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
        options=[
            OptionHelp(name="open", default="open", help="", choices=["open", "stat"]),
            OptionHelp(name="block", default=512, help="", least=512, most=4096, multiple_of=512),
            OptionHelp(name="keep", default=0, help="", least=0),
        ],
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


def described(asked: Suite) -> dict[str, FileSystem | None]:
    """The file systems of a suite, as they are shipped."""
    return {name: catalogue.load_filesystem(name) for name in asked.filesystems}


def make(s: Suite, seed: int = 1, counts: list[int] | None = None) -> list[CellKey]:
    return plan.make_keys(s, KNOWN, MEDIA, described(s), counts or [1, 2], seed)


def test_every_combination_that_makes_sense_once_a_repetition() -> None:
    cells = make(suite())
    # DRBL 2 modes x 2 counts, MWCL 1 x 2, DRBL_bg only on 2 cores; each on 2 file systems, 3 times.
    assert len(cells) == (4 + 2 + 1) * 2 * 3
    assert len({cell.id for cell in cells}) == len(cells)
    assert set(Counter(cell.point for cell in cells).values()) == {3}
    assert {c.medium for c in cells if c.filesystem == "tmpfs"} == {"none"}
    assert {c.medium for c in cells if c.filesystem == "ext4"} == {"ram"}


def test_what_stands_apart_is_measured_where_it_is_named() -> None:
    apart = {**KNOWN, "DWRL": descriptor("DWRL", ["buffered"]).model_copy(update={"apart": True})}
    for workloads, found in (("all", False), (["DRBL", "DWRL"], True)):
        asked = suite(workloads=workloads)
        cells = plan.make_keys(asked, apart, MEDIA, described(asked), [1], 1)
        assert ("DWRL" in {cell.workload for cell in cells}) == found


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


def test_options_of_a_workload_are_those_for_all_that_it_has_and_its_own() -> None:
    asked = suite(options={"all": {"open": "stat", "size": 7}, "MWCL": {"open": "open", "x": 1}})
    assert options.combine(asked, KNOWN["DRBL"]) == [{"open": "stat"}]
    assert options.combine(asked, KNOWN["MWCL"]) == [{"open": "open", "x": 1}]
    assert options.combine(suite(), KNOWN["MWCL"]) == [{}]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"workloads": ["DRLB"]}, "unknown workload DRLB; did you mean DRBL or DRBL_bg?"),
        ({"workloads": ["MWCL", "x"]}, "unknown workload x; known names: DRBL, MWCL, DRBL_bg"),
        ({"options": {"DRBX": {"open": "stat"}}},
         "options for unknown workload DRBX; did you mean DRBL or DRBL_bg?"),
        ({"options": {"DRBL": {"opne": "stat"}}}, "DRBL has no option opne; did you mean open?"),
        ({"options": {"all": {"opne": "stat"}}}, "all has no option opne; did you mean open?"),
        ({"options": {"DRBL": {"open": "x"}}}, "DRBL: option open cannot be x; give open or stat"),
        ({"options": {"all": {"open": "x"}}}, "all: option open cannot be x; give open or stat"),
        ({"options": {"all": {"block": 1000}}},
         "all: option block cannot be 1000; give a multiple of 512 from 512 to 4096"),
        ({"options": {"DRBL": {"keep": -1}}},
         "DRBL: option keep cannot be -1; give a whole number, 0 or more"),
        ({"options": {"DRBL": {"keep": ""}}},
         "DRBL: option keep cannot be empty; give a whole number, 0 or more"),
    ],
)  # fmt: skip
def test_unknown_names(changes: dict[str, object], says: str) -> None:
    with pytest.raises(FscaleError) as caught:
        options.resolve(suite(**changes), KNOWN)
    assert str(caught.value) == says


@pytest.mark.parametrize("value", ["abc", "5k", "1e3", "512.0", " 512", "+512", "٥١٢", 0, 8192])
def test_a_number_is_refused_before_anything_is_measured(value: int | str) -> None:
    with pytest.raises(FscaleError, match="option block cannot be"):
        options.resolve(suite(options={"DRBL": {"block": value}}), KNOWN)


def test_a_value_for_all_need_not_suit_what_is_not_measured() -> None:
    narrow = KNOWN["MWCL"].model_copy(deep=True)
    narrow.options[1].most = 1024
    known = KNOWN | {"MWCL": narrow}
    options.resolve(suite(workloads=["DRBL"], options={"all": {"block": 4096}}), known)
    with pytest.raises(FscaleError, match="all: option block cannot be 4096"):
        options.resolve(suite(workloads=["MWCL"], options={"all": {"block": 4096}}), known)


def test_known_names() -> None:
    options.resolve(suite(), KNOWN)
    options.resolve(suite(workloads=["DRBL"], options={"all": {"open": "stat"}}), KNOWN)
    free = {"DRBL": KNOWN["DRBL"].model_copy(deep=True)}
    free["DRBL"].options[0].choices = []
    options.resolve(suite(options={"DRBL": {"open": "anything"}}), free)
    # An option for all need not be one of all.
    bare = KNOWN | {"MWCL": KNOWN["MWCL"].model_copy(update={"options": []})}
    options.resolve(suite(options={"all": {"open": "stat"}}), bare)
    with pytest.raises(FscaleError, match="MWCL has no option open"):
        options.resolve(suite(options={"MWCL": {"open": "stat"}}), bare)


def test_the_order_of_a_seed_is_kept() -> None:
    """A run that goes on with another version measures what is left in the same order."""
    points = [f"{c.workload} {c.filesystem} {c.mode} {c.cores}" for c in make(suite())[:3]]
    assert points == ["DRBL_bg ext4 buffered 2", "MWCL ext4 buffered 1", "DRBL tmpfs buffered 1"]
    points = [f"{c.workload} {c.cores}" for c in make(suite(order="cores"))[:8]]
    assert points == [
        "DRBL_bg 2",
        "DRBL_bg 2",
        "DRBL 2",
        "DRBL 2",
        "DRBL 2",
        "MWCL 2",
        "DRBL 2",
        "MWCL 2",
    ]


def test_each_file_system_in_memory_is_measured_once() -> None:
    media = {"ram": MEDIA["ram"], "disk": Medium(title="d", kind="device")}

    def places(
        media: dict[str, Medium], filesystems: dict[str, FileSystem | None]
    ) -> set[tuple[str, str]]:
        asked = suite(media=list(media), repetitions=1, workloads=["MWCL", "MWCL"])
        cells = plan.make_keys(asked, KNOWN, media, filesystems, [1], 1)
        assert len({c.id for c in cells}) == len(cells)
        return {(c.filesystem, c.medium) for c in cells}

    assert places(media, described(suite())) == {
        ("tmpfs", "none"),
        ("ext4", "ram"),
        ("ext4", "disk"),
    }
    # What is in a directory is on the medium that the directory is on.
    here = {"here": Medium(title="h", kind="dir")}
    found = places(here, {"tmpfs": None, "ext4": None})
    assert found == {("tmpfs", "here"), ("ext4", "here")}


def test_profiling_may_have_more_repetitions_than_scoring() -> None:
    asked = suite(
        workloads=["MWCL"], filesystems=["ext4"], modes=["buffered"], repetitions=1,
        profiles=["locks", "cpu"], profile_repetitions=2,
    )  # fmt: skip
    cells = make(asked, counts=[1])
    assert sorted((c.repetition, c.profile or "") for c in cells) == [
        (1, ""), (1, "cpu"), (1, "locks"), (2, "cpu"), (2, "locks"),
    ]  # fmt: skip
    assert {c.duration for c in cells} == {1}
    more = make(asked.model_copy(update={"repetitions": 2, "profile_repetitions": 1}), counts=[1])
    assert sorted((c.repetition, c.profile or "") for c in more) == [
        (1, ""), (1, "cpu"), (1, "locks"), (2, ""),
    ]  # fmt: skip


def test_a_workload_gets_the_seconds_that_it_needs() -> None:
    slow = KNOWN | {"MWCL": KNOWN["MWCL"].model_copy(update={"least_seconds": 5.0})}
    for duration, found, said in (
        (0.5, 5.0, ["MWCL is measured for 5 s instead of 0.5 s: it needs them"]),
        (5.0, 5.0, []),
        (7.0, 7.0, []),
    ):
        asked = suite(duration=duration)
        cells = plan.make_keys(asked, slow, MEDIA, described(asked), [1, 2], 1)
        assert {c.duration for c in cells if c.workload == "MWCL"} == {found}
        assert {c.duration for c in cells if c.workload != "MWCL"} == {duration}
        assert plan.lengthened(asked, slow) == said


def left_out(asked: Suite, descriptors: dict[str, Descriptor], counts: list[int]) -> list[str]:
    """The sentences of `plan.left_out` without their reasons, which every one has."""
    parts = [
        text.rpartition(": ")
        for text in plan.left_out(asked, descriptors, described(asked), counts)
    ]
    assert all(reason for _, _, reason in parts)
    return [what for what, _, _ in parts]


def test_partitions_are_for_workloads_that_can_spread() -> None:
    spread = KNOWN | {"MWCL": KNOWN["MWCL"].model_copy(update={"partitions": True})}
    asked = suite(filesystems=["ext4", "ext4:4"], repetitions=1, workloads=["DRBL", "MWCL"])
    cells = plan.make_keys(asked, spread, MEDIA, described(asked), [1], 1)
    assert {(c.workload, c.filesystem) for c in cells} == {
        ("DRBL", "ext4"), ("MWCL", "ext4"), ("MWCL", "ext4:4"),
    }  # fmt: skip
    assert left_out(asked, spread, [1]) == [
        "DRBL is not measured on ext4:4",
        "MWCL is not measured in mode direct",
    ]


def test_nothing_to_measure() -> None:
    with pytest.raises(FscaleError) as caught:
        make(suite(workloads=["DRBL_bg", "MWCL"], modes=["direct"]))
    assert str(caught.value) == (
        "nothing to measure: DRBL_bg is not measured at 1 core: it needs at least 2; DRBL_bg is "
        "not measured in mode direct: it does not support it; MWCL is not measured in mode direct: "
        "it does not support it; give another --workload, --fs, --mode or --cores"
    )
    many = KNOWN | {f"W{n}": KNOWN["MWCL"].model_copy(update={"id": f"W{n}"}) for n in range(5)}
    asked = suite(workloads=[f"W{n}" for n in range(5)], modes=["direct"])
    with pytest.raises(FscaleError, match=r"W2 is not .*; and 2 more; give another --workload"):
        plan.make_keys(asked, many, MEDIA, described(asked), [1], 1)


def test_what_is_left_out_is_said() -> None:
    everything = ["DRBL", "MWCL", "DRBL_bg"]
    for workloads in ("all", everything, everything * 2):
        asked = suite(filesystems=["ext4", "ext4:4", "xfs:2"], workloads=workloads)
        assert left_out(asked, KNOWN, [1, 2]) == [
            "DRBL is not measured on ext4:4, xfs:2",
            "MWCL is not measured in mode direct",
            "MWCL is not measured on ext4:4, xfs:2",
            "DRBL_bg is not measured at 1 core",
            "DRBL_bg is not measured in mode direct",
            "DRBL_bg is not measured on ext4:4, xfs:2",
        ]
    assert plan.left_out(suite(modes=["buffered"]), KNOWN, described(suite()), [2]) == []
    many = {"x": KNOWN["DRBL"].model_copy(update={"min_cores": 3, "modes": []})}
    assert left_out(suite(), many, [1, 2, 3, 4]) == [
        "x is not measured at 1, 2 cores",
        "x is not measured in mode buffered, direct",
    ]
    assert plan.left_out(suite(), many, described(suite()), [1])[0].endswith(" 3")


def test_partitions_are_measured_beside_the_whole_medium() -> None:
    request = Request(
        suite=paths.SUITES / "apps.toml", output=Path("x"), partitions=8, applications=loads
    )
    request.overrides = {"filesystems": ["tmpfs", "ext4", "xfs"], "workloads": ["exim"]}
    asked = read_suite(request)
    assert asked.filesystems == ["tmpfs", "ext4", "xfs", "ext4:8", "xfs:8"]


CONTROLS = {
    name: descriptor(name, ["buffered"]).model_copy(update={"apart": True, "control": True})
    for name in ("control_syscall", "control_user")
}


def with_controls(s: Suite, seed: int = 1, counts: list[int] | None = None) -> list[CellKey]:
    return plan.make_keys(s, KNOWN | CONTROLS, MEDIA, described(s), counts or [1, 2], seed)


@pytest.mark.parametrize("repetitions", [1, 2, 3, 11])
@pytest.mark.parametrize("workloads", ["all", ["MWCL"]])
def test_controls_are_measured_at_each_core_count(
    repetitions: int, workloads: list[str] | str
) -> None:
    made = with_controls(suite(repetitions=repetitions, workloads=workloads), counts=[1, 2, 4])
    controls = [c for c in made if c.control]
    found = Counter((c.workload, c.cores) for c in controls)
    assert found == {(name, n): 3 for name in CONTROLS for n in (1, 2, 4)}
    assert len({c.id for c in made}) == len(made)
    assert {(c.filesystem, c.medium, c.duration) for c in controls} == {("none", "none", 0.3)}
    assert not any(c.control for c in made if c.workload not in CONTROLS)


def test_controls_are_spread_over_the_run_and_leave_the_order_of_the_others() -> None:
    for order in ("random", "cores"):
        asked = suite(repetitions=5, order=order)
        made = with_controls(asked)
        assert [c for c in made if not c.control] == make(asked)
        places = {r: [] for r in (1, 2, 3)}  # type: dict[int, list[int]]
        around = 0
        for cell in made:
            around = around if cell.control else cell.repetition
            if cell.control:
                places[cell.repetition].append(around)
        assert [round(sum(own) / len(own)) for own in places.values()] == [1, 3, 5]
    grouped = [c.cores for c in with_controls(suite(order="cores", repetitions=1))]
    assert sum(a != b for a, b in itertools.pairwise(grouped)) == 1


def test_no_control_where_there_is_no_curve_or_none_is_wanted() -> None:
    assert not any(c.control for c in with_controls(suite(), counts=[2]))
    assert not any(c.control for c in with_controls(suite(control=0)))
    # Named by hand, on a file system, they are workloads like others.
    named = with_controls(suite(workloads=["control_user"], control=0, filesystems=["ext4"]))
    assert {(c.filesystem, c.control) for c in named} == {("ext4", False)}
    with pytest.raises(
        FscaleError, match="nothing to measure: MWCL is not measured in mode direct"
    ):
        with_controls(suite(workloads=["MWCL"], modes=["direct"]))
    with pytest.raises(FscaleError, match="not measured on ext4:2: it cannot spread its files"):
        with_controls(suite(workloads=["MWCL"], filesystems=["ext4:2"], modes=["buffered"]))


def test_no_file_system_is_named_as_the_cells_without_one(tmp_path: Path) -> None:
    config = tmp_path / "none.toml"
    config.write_text((paths.FILESYSTEMS / "tmpfs.toml").read_text())
    with pytest.raises(FscaleError, match="name none is reserved"):
        catalogue.load_filesystem(str(config))
    assert catalogue.load_filesystem(str(config.rename(tmp_path / "some.toml"))).nodev
