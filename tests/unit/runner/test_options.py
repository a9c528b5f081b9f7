# SPDX-License-Identifier: GPL-2.0-only
"""Several values of an option, or of the workers per CPU: what is taken, and the cells of each."""

from pathlib import Path

import pytest

from fscale.model import catalogue, variant
from fscale.model.bench import OptionHelp
from fscale.model.errors import FscaleError
from fscale.model.results import CellKey
from fscale.runner import plan
from fscale.runner.options import combine, refuse_idle, resolve
from fscale.runner.request import Request, parse_options, read_suite
from tests.support.runner import suite as suite_file
from tests.unit.runner.test_plan import KNOWN, MEDIA, described, suite

FREE = KNOWN["MWCL"].model_copy(
    update={
        "id": "own",
        "options": [
            OptionHelp(name="bs", default="4k", help=""),
            OptionHelp(name="depth", default=1, help=""),
        ],
    }
)


def resolved(**chosen: object) -> dict[str, object]:
    found = resolve(suite(options=chosen), {**KNOWN, "own": FREE}).options
    return {name: dict(values) for name, values in found.items()}


def cells(counts: list[int], **changes: object) -> list[CellKey]:
    chosen = resolve(suite(workloads=["DRBL"], modes=["buffered"], **changes), KNOWN)
    return plan.make_keys(chosen, KNOWN, MEDIA, described(chosen), counts, 1)


@pytest.mark.parametrize("given", ["512,1k,2K", [512, "1k", "2048"]])
def test_several_values_are_a_list_in_the_options_own_type(given: object) -> None:
    assert resolved(DRBL={"block": given}) == {"DRBL": {"block": [512, 1024, 2048]}}


def test_a_single_value_is_none_of_a_list() -> None:
    assert resolved(DRBL={"block": "4k"}, all={"open": ["stat"]}) == {
        "DRBL": {"block": 4096},
        "all": {"open": "stat"},
    }
    assert resolved(DRBL={"open": "open,stat"}) == {"DRBL": {"open": ["open", "stat"]}}


def test_a_text_keeps_its_commas() -> None:
    assert resolved(own={"bs": "4k,8k"}) == {"own": {"bs": "4k,8k"}}
    assert resolved(own={"bs": ["4k,8k", "64k"]}) == {"own": {"bs": ["4k,8k", "64k"]}}
    assert resolved(own={"depth": "1,16,auto"}) == {"own": {"depth": [1, 16, "auto"]}}


def test_an_option_for_all_is_one_of_those_that_are_measured() -> None:
    known = {**KNOWN, "own": FREE.model_copy(update={"options": KNOWN["DRBL"].options})}
    found = resolve(suite(workloads=["own", "DRBL"], options={"all": {"block": "1k,2k"}}), known)
    assert found.options == {"all": {"block": [1024, 2048]}}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("1k,1k", "DRBL: option block has the value 1024 twice; give each value once"),
        ([1024, "1k"], "DRBL: option block has the value 1024 twice; give each value once"),
        ("1k,5000", "DRBL: option block cannot be 5000; give a multiple of 512 from 512 to 4096"),
        ("1k,", "DRBL: option block cannot be empty; give a multiple of 512 from 512 to 4096"),
        ("1k,8k", "DRBL: option block cannot be 8k; give a multiple of 512 from 512 to 4096"),
        ("1k;2k", "DRBL: option block cannot be 1k;2k; give a multiple of 512 from 512 to 4096"),
    ],
)
def test_what_is_no_value_or_comes_twice_is_refused(given: object, says: str) -> None:
    with pytest.raises(FscaleError) as refused:
        resolved(DRBL={"block": given})
    assert str(refused.value) == says


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"MWCL": {"keep": 1}}, "--option MWCL.keep: MWCL is not measured"),
        ({"all": {"keep": 1}}, "--option keep: no workload that is measured has it"),
    ],
)
def test_options_that_change_nothing_are_refused(
    given: dict[str, dict[str, int]], says: str
) -> None:
    known = {**KNOWN, "DRBL": FREE.model_copy(update={"id": "DRBL"})}
    with pytest.raises(FscaleError, match=says):
        refuse_idle(given, suite(workloads=["DRBL"]), known)
    refuse_idle({"all": {"bs": 1}, "DRBL": {"depth": 2}}, suite(workloads=["DRBL"]), known)


def test_a_workload_without_an_option_is_refused() -> None:
    with pytest.raises(FscaleError, match=r"DRBL is a workload and no option; give DRBL\.OPTION="):
        resolved(all={"DRBL": "4k"})


def test_an_empty_list_is_refused(tmp_path: Path) -> None:
    request = Request(suite_file(tmp_path), tmp_path, {"options": {"DRBL": {"block": []}}})
    with pytest.raises(FscaleError) as refused:
        read_suite(request)
    message = "options.DRBL.block: List should have at least 1 item after validation, not 0"
    assert str(refused.value).partition(": ")[2] == message


def test_the_command_line_replaces_the_values_of_a_suite(tmp_path: Path) -> None:
    path = suite_file(tmp_path, options={"DRBL": {"block": [512, 1024], "open": "stat"}})
    request = Request(path, tmp_path, options=["DRBL.block=1k,4k"])
    found = resolve(read_suite(request), KNOWN).options
    assert found == {"DRBL": {"block": [1024, 4096], "open": "stat"}}
    assert parse_options(["DRBL.block=1k,4k"]) == {"DRBL": {"block": "1k,4k"}}


def test_values_are_combined_and_a_workloads_own_come_first() -> None:
    chosen = suite(options={"all": {"open": ["open", "stat"], "keep": 3}, "MWCL": {"keep": [1, 2]}})
    assert combine(chosen, KNOWN["DRBL"]) == [
        {"open": "open", "keep": 3},
        {"open": "stat", "keep": 3},
    ]
    assert combine(chosen, KNOWN["MWCL"]) == [
        {"open": "open", "keep": 1},
        {"open": "open", "keep": 2},
        {"open": "stat", "keep": 1},
        {"open": "stat", "keep": 2},
    ]


def test_each_value_has_cells_of_its_own_at_each_core_count() -> None:
    found = cells([1, 2], options={"DRBL": {"block": "512,1k,2k"}})
    assert len(found) == len({cell.id for cell in found}) == 3 * 2 * 2 * 3
    alone = cells([1, 2], options={"DRBL": {"block": 1024}})
    # A value is the same cell in a sweep and alone, so that both have one history.
    swept = {cell.id for cell in found if cell.options == {"block": 1024}}
    assert swept == {cell.id for cell in alone}
    assert found[0].load in {"DRBL block=512", "DRBL block=1024", "DRBL block=2048"}


def test_a_repetition_has_all_values_before_the_next_one() -> None:
    repetitions = [c.repetition for c in cells([1, 2], options={"DRBL": {"block": "512,1k,2k"}})]
    assert repetitions == sorted(repetitions)


def test_workers_are_swept_and_controls_have_the_fewest() -> None:
    controlled = {**KNOWN, "spin": KNOWN["DRBL"].model_copy(update={"id": "spin", "control": True})}
    chosen = suite(workloads=["DRBL"], workers_per_cpu=[4, 2], control=0.1)
    found = plan.make_keys(chosen, controlled, MEDIA, described(chosen), [1, 2], 1)
    assert {c.workers_per_cpu for c in found if not c.control} == {2, 4}
    assert {c.workers_per_cpu for c in found if c.control} == {2}
    assert {c.load for c in found if not c.control} == {
        "DRBL workers_per_cpu=2", "DRBL workers_per_cpu=4",
    }  # fmt: skip


def test_the_same_number_of_workers_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="2 is given twice; give each number once"):
        suite(workers_per_cpu=[1, 2, 2])
    with pytest.raises(ValueError, match="at least 1 item"):
        suite(workers_per_cpu=[])


def test_braces_are_file_systems_of_a_suite() -> None:
    swept = suite(filesystems=["tmpfs", "ext4:mount=commit={1,5}"])
    assert swept.filesystems == ["tmpfs", "ext4:mount=commit=1", "ext4:mount=commit=5"]
    cells = plan.make_keys(swept, KNOWN, MEDIA, described(swept), [1], 1)
    assert {c.filesystem for c in cells} == set(swept.filesystems)
    with pytest.raises(ValueError, match="1 is given twice"):
        suite(filesystems=["ext4:mount=commit={1,1}"])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("xfs,ext4:mount=commit={1,5},tmpfs", 4),
        ("ext4:{2,4},xfs", 3),
        ("{ext4,xfs}:mount={ro,rw}", 4),
        ("ext4:mkfs=-O {a,b},c", 2),
        ("ext4:set=/sys/block/{name}/queue/scheduler={none,bfq}", 2),
    ],
)
def test_braces_are_file_systems_on_the_command_line(text: str, found: int) -> None:
    names = catalogue.split_filesystems(text)
    assert len(names) == len(set(names)) == found
    assert not any("," in name.partition("mkfs=")[0] for name in names)
    assert all(name.count("{") == name.count("{name}") for name in names)


@pytest.mark.parametrize(
    "text",
    ["mount=commit={1}", "mount=commit={}", "mount=commit={1,5", "mount=x=1}", "mkfs=-b {4096}",
     "set=/sys/block/{nme}/queue/scheduler=bfq", "mount={size", "mount=size}"],
)  # fmt: skip
def test_braces_without_alternatives_are_refused(text: str) -> None:
    (only,) = catalogue.split_filesystems(f"ext4:{text}")
    with pytest.raises(FscaleError, match=r"braces in .* hold alternatives"):
        variant.parse(only)


def test_placeholders_are_no_alternatives() -> None:
    variant.parse("tmpfs:mount=size={size},huge=always")
    variant.parse("ext4:set=/sys/block/{name}/queue/scheduler=bfq")


def test_alternatives_that_come_twice_or_name_a_side_are_refused() -> None:
    with pytest.raises(FscaleError, match="1 is given twice; give each alternative once"):
        catalogue.split_filesystems("ext4:mount=commit={1,1}")
    with pytest.raises(FscaleError, match="stands for several file systems; name one"):
        catalogue.load_filesystem("ext4:mount=commit={1,5}")


PACED = KNOWN["DRBL"].model_copy(
    update={
        "options": [
            OptionHelp(name="rate", default=0, help="", least=0, most=1000000),
            OptionHelp(name="arrival", default="poisson", help="", choices=["poisson", "fixed"]),
        ]
    }
)


def test_arrivals_are_those_of_a_rate() -> None:
    def of(**options: object) -> list[object]:
        asked = suite(workloads=["DRBL"], options={"DRBL": options})
        return list(combine(resolve(asked, {"DRBL": PACED}), PACED))

    assert of(rate="0,10,1000000") == [{"rate": 0}, {"rate": 10}, {"rate": 1000000}]
    assert of(rate=10, arrival="fixed") == [{"rate": 10, "arrival": "fixed"}]
    for wrong in ({"arrival": "fixed"}, {"arrival": "fixed", "rate": "0,10"}):
        with pytest.raises(FscaleError, match=r"DRBL: option arrival .* give option rate, too"):
            of(**wrong)
    for rate in (-1, 1000001, "fast"):
        with pytest.raises(FscaleError, match="option rate cannot be"):
            of(rate=rate)
    own = PACED.model_copy(update={"definition": {"own.toml": ""}})
    asked = suite(workloads=["DRBL"], options={"DRBL": {"arrival": "fixed"}})
    assert resolve(asked, {"DRBL": own}).options == {"DRBL": {"arrival": "fixed"}}
