# SPDX-License-Identifier: GPL-2.0-only
"""Workers per CPU, placement and CPUs kept free: from a suite to names, records and reports."""

import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from typer.testing import CliRunner

from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.analysis.curves import arrange
from fscale.analysis.formats.run import FORMATS
from fscale.analysis.history import index
from fscale.analysis.labels import USUAL_CREW, labels
from fscale.analysis.members import Member
from fscale.analysis.reader import load
from fscale.analysis.report.headline import limits
from fscale.analysis.report.section import Report
from fscale.analysis.summary import summarise
from fscale.apps.adapter import loads
from fscale.apps.base import Site
from fscale.apps.registry import custom_load
from fscale.cli import app
from fscale.commands.options.formats import Format
from fscale.commands.options.measure import PairedOptions
from fscale.model import corecounts, crew
from fscale.model.config import Suite
from fscale.model.errors import Exit, FscaleError
from fscale.model.facts import list_changes
from fscale.model.load import Load
from fscale.model.results import Cell, CellKey
from fscale.model.topology import cpu_order
from fscale.runner import resources
from fscale.runner.machine import host
from fscale.runner.plan import make_keys
from fscale.runner.prepare import Prepared, prepare
from fscale.runner.request import Request, parse_cores
from fscale.runner.run import preview
from tests.support.exports import exported
from tests.support.runner import fake_bench
from tests.support.runner import suite as suite_file
from tests.support.synthetic import cell, cpus_of, descriptor, grid, key, machine, write_run
from tests.unit.runner.test_plan import KNOWN, MEDIA, described, suite

KEPT = machine(4, cpus_of(1, 4)).model_copy(update={"cpu_order": [0, 1, 2], "kept_free": [3]})


def crowd(**changes: Any) -> list[Cell]:
    """Cells of a run, all with some other fields in their keys."""
    found = grid([1, 2], 9, ["DRBL"], ["ext4"])
    keys = [one.key.model_copy(update=changes) for one in found]
    return [cell(one, 1000.0 * one.cores + one.repetition) for one in keys]


def written(directory: Path, suite: dict[str, object] | None = None, **changes: Any) -> Path:
    chosen = suite or {}
    in_key = {name: value for name, value in chosen.items() if name != crew.KEEP_FREE}
    return write_run(
        directory,
        crowd(**in_key),
        workloads=["DRBL"],
        filesystems=["ext4"],
        suite={"title": "t", **chosen},
        id=directory.name,
        **changes,
    )


def report(*runs: Path) -> Report:
    opened = [load(run) for run in runs]
    if len(opened) == 1:
        return Report((Member(opened[0]),), runs[0])
    names = labels(opened, [None] * len(opened))
    members = [Member(one, name) for one, name in zip(opened, names, strict=True)]
    return Report(tuple(members), runs[0].parent / "report")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1,2,4", [1, 2, 4]),
        ("1-8", ["1-8"]),
        ("1, 2-16:2 ,50%", [1, "2-16:2", "50%"]),
        ("topology", "topology"),
    ],
)
def test_core_counts_are_read(text: str, found: object) -> None:
    assert parse_cores(text) == found
    assert suite(cores=text).cores == found


def test_a_list_holds_core_counts_in_each_form() -> None:
    assert suite(cores=[2, "4", "2-16:2,50%", "1-8"]).cores == [2, 4, "2-16:2", "50%", "1-8"]
    with pytest.raises(ValueError, match="'topology' is not a core count"):
        suite(cores=[1, "topology"])


@pytest.mark.parametrize(
    "text", ["0", "-1", "1-", "0-4", "4-1", "1-8:0", "1-8/2", "0%", "101%", "half", "1,,2", "",
             "1-99999999", "1.5"],
)  # fmt: skip
def test_what_is_no_core_count_is_refused(text: str) -> None:
    with pytest.raises(FscaleError, match="--cores"):
        parse_cores(text)
    with pytest.raises(ValueError, match="cores"):
        suite(cores=[text])


def test_numbers_and_the_largest_of_core_counts() -> None:
    assert corecounts.numbers([8, "1-4:3"]) == [1, 4, 8]
    assert corecounts.numbers([8, "50%"]) is None
    assert corecounts.largest([3, "2-9:4", "100%"]) == 6
    assert corecounts.largest(["100%"]) == 0


def test_the_cells_of_a_suite_have_its_workers_and_their_placement() -> None:
    chosen = suite(workers_per_cpu=3, placement="spread", control=0.1)
    controlled = {**KNOWN, "spin": KNOWN["DRBL"].model_copy(update={"id": "spin", "control": True})}
    made = make_keys(chosen, controlled, MEDIA, described(suite()), [1, 2], 1)
    assert any(one.control for one in made)
    assert {(one.workers_per_cpu, one.placement) for one in made} == {(3, "spread")}
    usual = make_keys(suite(), KNOWN, MEDIA, described(suite()), [1, 2], 1)
    assert {one.workers_per_cpu for one in usual} == {1}


def test_names_tell_what_is_not_usual_and_old_names_stay() -> None:
    # A run of before must be resumed, so this must never change.
    assert key().id == "DRBL-ext4-ram-buffered-1c-dbb95101-r1"
    assert "-1c-2w-spread-" in key(workers_per_cpu=2, placement="spread").id
    points = {key(**changes).point for changes in (
        {}, {"workers_per_cpu": 2}, {"workers_per_cpu": 3}, {"placement": "spread"},
    )}  # fmt: skip
    assert len(points) == 4
    assert key(workers_per_cpu=1, placement="packed").id == key().id


def test_a_load_with_its_own_number_of_processes_is_refused(tmp_path: Path) -> None:
    toml = 'title = "t"\noperation = "o"\n[command]\nrun = ["true"]\nops = 1\n'
    own = tmp_path / "mine.toml"
    own.write_text(toml + "copies = 2\n")
    found: dict[str, Load] = {load.descriptor.id: load for load in loads([str(own)])}
    for name in ("exim", "rocksdb", "dbench", "sysbench_rndwr", "varmail", "mine"):
        if name in found:
            with pytest.raises(FscaleError, match=f"workers_per_cpu = 2: {name} cannot"):
                resources.check_workers(suite(workers_per_cpu=2), found, {name})
            resources.check_workers(suite(), found, {name})
    assert {"exim", "dbench", "varmail", "mine"} <= found.keys()
    resources.check_workers(suite(workers_per_cpu=2), found, {"fio_randwrite"})


@pytest.mark.parametrize(
    ("toml", "job", "grows"),
    [
        ('[command]\nrun = ["true"]\nops = 1\ncopies = "cores"\n', "", True),
        ('[command]\nrun = ["true"]\nops = 1\n', "", False),
        ('[fio]\njob = "a.fio"\n', "[one]\nrw=read\n[two]\nrw=read\n", True),
        ('[fio]\njob = "a.fio"\n', "[one]\nrw=read\n[two]\nrw=read\nnumjobs=2\n", False),
        ('[fio]\njob = "a.fio"\n', "[global]\nnumjobs=2\n[one]\nrw=read\n", False),
        ('[fio]\njob = "a.fio"\nper_core = {one = 0.5}\n', "[one]\nrw=read\nnumjobs=2\n", True),
    ],
)
def test_which_own_loads_grow_with_the_workers(
    tmp_path: Path, toml: str, job: str, grows: bool
) -> None:
    (tmp_path / "own.toml").write_text(f'title = "t"\noperation = "o"\n{toml}')
    (tmp_path / "a.fio").write_text(job)
    assert custom_load(str(tmp_path / "own.toml")).oversubscribes is grows


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of eight CPUs in two sockets."""
    cpus = cpus_of(2, 4)
    there = machine(8, cpus).model_copy(update={"cpu_order": cpu_order(cpus)})
    monkeypatch.setattr(host, "read_machine", lambda: there.model_copy(deep=True))


def prepared(tmp_path: Path, typed: dict[str, object] | None = None, **keys: object) -> Prepared:
    """A checked run of a suite's file in a directory, with keys that were typed."""
    given: dict[str, object] = {"filesystems": ["any"], "workloads": ["DRBL"], "control": 0}
    return prepare(
        Request(
            suite=suite_file(tmp_path, **(given | keys)),
            output=tmp_path / "out",
            overrides=typed or {},
            directory=tmp_path,
            binary=fake_bench(tmp_path),
        )
    )


@pytest.mark.usefixtures("eight")
def test_counts_that_the_machine_lacks_are_left_out_of_a_suite_alone(tmp_path: Path) -> None:
    counts: dict[str, object] = {"cores": [1, "6-12:2", 80, "50%"]}
    made = prepared(tmp_path, **counts)
    assert {cell.cores for cell in made.cells} == {1, 4, 6, 8}
    (said,) = [text for text in made.run.warnings if "are not measured" in text]
    assert said.startswith("10,12,80 cores")
    with pytest.raises(FscaleError, match="10,12,80 cores are asked for") as refused:
        prepared(tmp_path, counts)
    assert refused.value.code == Exit.USAGE
    with pytest.raises(FscaleError, match="9-10 cores are asked for, but this run may use 8"):
        prepared(tmp_path, cores=["9-10"])
    whole = prepared(tmp_path, {"cores": "1,100%"})
    assert {cell.cores for cell in whole.cells} == {1, 8}
    assert not [text for text in whole.run.warnings if "are not measured" in text]


@pytest.mark.usefixtures("eight")
def test_core_counts_refer_to_the_cpus_that_are_not_kept_free(tmp_path: Path) -> None:
    made = prepared(tmp_path, cores="50%,100%", keep_free="25%", placement="spread")
    assert {cell.cores for cell in made.cells} == {3, 6}
    assert made.run.machine.cpu_order == [0, 4, 1, 5, 2, 6]
    assert made.setup.machine.kept_free == made.run.machine.kept_free == [3, 7]
    assert made.run.machine.placement == "spread"
    assert made.run.suite["keep_free"] == "25%"
    with pytest.raises(FscaleError, match="7 cores are asked for, but this run may use 6"):
        prepared(tmp_path, {"cores": [7]}, keep_free=2)
    with pytest.raises(FscaleError, match="keep_free = 8"):
        prepared(tmp_path, keep_free=8)


@pytest.mark.usefixtures("eight")
def test_a_machine_without_groups_says_that_spread_has_no_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> bool:
        made = prepared(tmp_path, placement="spread")
        return any("spread has no effect" in text for text in made.run.warnings)

    assert not told()
    monkeypatch.setattr(host, "read_machine", lambda: machine(4, cpus_of(1, 4)))
    assert told()


@pytest.mark.usefixtures("eight")
def test_a_plan_shows_workers_placement_and_free_cpus(tmp_path: Path) -> None:
    lines: list[str] = []
    given = {"workers_per_cpu": 2, "placement": "spread", "keep_free": 2}
    preview(prepared(tmp_path, cores=[2], **given), lines.append)
    head = " ".join(line for line in lines if line.startswith("# ") and "cell 1" not in line)
    assert "2 workers share each CPU" in head
    assert "CPUs 3,7 stay online" in head
    assert any("-2c-2w-spread-" in line for line in lines)
    (bench,) = [line for line in lines if "--workers-per-cpu 2" in line]
    assert "--cpus 0,4" in bench


@pytest.mark.usefixtures("eight")
def test_a_run_with_other_workers_is_not_resumed(tmp_path: Path) -> None:
    first = prepared(tmp_path, keep_free=1)
    first.store.save_run(first.run)
    for changes in ({}, {"keep_free": 2}, {"workers_per_cpu": 2}, {"placement": "spread"}):
        with pytest.raises(FscaleError, match="cannot be resumed"):
            prepared(tmp_path, **{"keep_free": 1, **changes} if changes else {})
    assert prepared(tmp_path, keep_free=1).resumed


def test_a_site_counts_workers() -> None:
    site = Site(dirs=[], cpus=[0, 2], scratch=Path(), space=1, workers_per_cpu=3)
    assert (site.cores, site.workers) == (2, 6)


def test_a_run_with_other_workers_is_neither_resumed_nor_compared(tmp_path: Path) -> None:
    usual = written(tmp_path / "usual")
    for number, (chosen, says) in enumerate((
        ({"workers_per_cpu": 2}, "suite.workers_per_cpu: 1 and 2"),
        ({"placement": "spread"}, "suite.placement: packed and spread"),
        ({"keep_free": 1}, "suite.keep_free: 0 and 1"),
    )):  # fmt: skip
        changes = {"machine": KEPT} if "keep_free" in chosen else {}
        other = written(tmp_path / str(number), chosen, **changes)
        sides = open_sides(usual, other)
        with pytest.raises(FscaleError, match="mean different things") as refused:
            compare(sides, Settings())
        (name,) = chosen
        assert says in str(refused.value)
        assert f"--allow-different suite.{name}" in str(refused.value)
        # Who asks for just this gets a verdict on each point.
        judged = compare(sides, Settings(allow_different=(f"suite.{name}",)))
        assert {one.subject.cores for one in judged.judgements} >= {(1,), (2,)}
        assert not judged.missing_in_new
        changed = list_changes(load(usual).run, load(other).run)
        assert any(text.startswith(f"suite.{name}: ") for text in changed)
    assert not list_changes(load(usual).run, load(usual).run)


def test_a_comparison_says_what_is_unusual_on_both_sides(tmp_path: Path) -> None:
    runs = [written(tmp_path / str(number), {"workers_per_cpu": 2}) for number in range(2)]
    said = [text for text in compare(open_sides(*runs), Settings()).warnings if "both" in text]
    assert [text for text in said if "2 workers share each CPU" in text]
    usual = [written(tmp_path / f"usual{number}") for number in range(2)]
    said = compare(open_sides(*usual), Settings()).warnings
    assert not [text for text in said if "workers" in text]


def test_a_share_that_keeps_as_many_free_is_the_same(tmp_path: Path) -> None:
    sides = [
        written(tmp_path / str(number), {"keep_free": keep}, machine=KEPT)
        for number, keep in enumerate((1, "25%"))
    ]
    assert not list_changes(*(load(side).run for side in sides))
    assert compare(open_sides(*sides), Settings()).judgements


def test_one_history_has_one_number_of_workers(tmp_path: Path) -> None:
    runs = [written(tmp_path / "1"), written(tmp_path / "2", {"workers_per_cpu": 2})]
    with index.opened(tmp_path / "index.sqlite") as opened:
        for run in runs:
            index.add(opened, run)
        rows = opened.execute(
            "SELECT DISTINCT path, definition, place FROM point JOIN run ON run.id = run_id"
        ).fetchall()
    assert len({row["definition"] for row in rows}) == 2
    places = {Path(row["path"]).name: row["place"] for row in rows}
    assert "workers_per_cpu=2" in places["2"]
    assert "workers_per_cpu" not in places["1"]


def test_scaling_is_by_cores_whatever_their_workers() -> None:
    """Two cores with two workers each are twice one core with two, not four times a worker."""
    points = summarise(
        cell(one.key.model_copy(update={"workers_per_cpu": 2}), 100.0 * one.key.cores)
        for one in grid([1, 2, 4], 3, ["DRBL"], ["ext4"])
    )
    (page,) = arrange(points, ["ext4"], {"DRBL": descriptor("DRBL")})
    (panel,) = page.panels
    (curve,) = panel.curves
    assert [point.workers for point in curve.points] == [2, 4, 8]
    assert [curve.linear_at(point) for point in curve.points] == [1, 2, 4]
    assert panel.ideal is not None
    assert panel.ideal.factors == ((1, 1), (2, 2), (4, 4))
    assert panel.variant == "workers_per_cpu=2"


def test_readers_beside_a_writer_scale_by_their_cores() -> None:
    found = grid([2, 4], 3, ["DRBL_bg"], ["ext4"])
    keys = [one.key.model_copy(update={"workers_per_cpu": 3}) for one in found]
    points = summarise(cell(one, 100.0) for one in keys)
    assert [(point.workers, point.worked_cores) for point in points] == [(3, 1), (9, 3)]


def test_reports_say_it(tmp_path: Path) -> None:
    usual = written(tmp_path / "usual")
    chosen = {"workers_per_cpu": 2, "placement": "spread", "keep_free": 1}
    other = written(tmp_path / "other", chosen, machine=KEPT)
    said = " ".join(limits(report(other)))
    assert "2 workers share each CPU" in said
    assert "placement spread" in said
    assert "CPU 3 stays online without a worker" in said
    assert "refer to the 3 CPUs left" in said
    assert crew.sentences(load(usual).run) == []
    several = report(usual, other)
    assert [member.label for member in several.members] == [
        USUAL_CREW, "workers_per_cpu=2 placement=spread keep…",
    ]  # fmt: skip
    # Curves of several runs share a panel.
    assert [panel.variant for page in several.pages for panel in page.panels] == [""]


def test_exports_say_it(tmp_path: Path) -> None:
    chosen = {"workers_per_cpu": 2, "placement": "spread", "keep_free": 1}
    results = load(written(tmp_path / "run", chosen, machine=KEPT))
    table = pd.read_csv(io.StringIO(exported(results, "csv")))
    columns = ["workers_per_cpu", "placement", "cpus_kept_free"]
    assert table[columns].drop_duplicates().to_numpy().tolist() == [[2, "spread", 1]]
    assert set(table["workers"]) == {2, 4}
    google = json.loads(FORMATS[Format.GOOGLE_BENCHMARK](results))
    assert all("/workers_per_cpu:2/placement:spread/" in b["name"] for b in google["benchmarks"])
    families = text_string_to_metric_families(FORMATS[Format.OPENMETRICS](results))
    (rates,) = [f.samples for f in families if f.name == "fscale_throughput_per_second"]
    assert {tuple(one.labels[name] for name in columns) for one in rates} == {("2", "spread", "1")}
    tests = json.loads(FORMATS[Format.KCIDB](results))["tests"]
    assert {test["misc"]["workers_per_cpu"] for test in tests} == {2}


@pytest.mark.parametrize("setting", ["workers_per_cpu=2", 'placement="spread"', "keep_free=1"])
def test_the_simulator_refuses_it(tmp_path: Path, setting: str) -> None:
    output = str(tmp_path / "sim")
    done = CliRunner().invoke(app, ["simulate", "--set", setting, "--output", output])
    assert isinstance(done.exception, FscaleError)
    assert done.exception.code == Exit.USAGE
    assert setting.partition("=")[0] in str(done.exception)


@pytest.mark.parametrize("command", ["simulate", "gate"])
def test_the_simulator_has_no_shares(tmp_path: Path, command: str) -> None:
    sides = ["--base", "ext4", "--new", "ext4"] if command == "gate" else []
    given = [command, *sides, "--cores", "1,50%", "--output", str(tmp_path / "sim")]
    done = CliRunner().invoke(app, given)
    assert isinstance(done.exception, FscaleError)
    assert "--cores 1,50%" in str(done.exception)


@pytest.mark.parametrize(
    ("cores", "keys", "smp"),
    [("1,4", None, 4), ("1-6:2", None, 5), ("2,50%", None, 2), ("2", ["keep_free=2"], 4)],
)
def test_a_guest_has_the_cpus_of_its_core_counts(
    cores: str, keys: list[str] | None, smp: int
) -> None:
    assert PairedOptions(cores=cores, suite_keys=keys).guest_cpus == smp


def test_a_suite_may_give_a_share_of_the_cpus_to_keep() -> None:
    assert suite(keep_free="25%").keep_free == "25%"
    assert Suite.model_validate(suite(keep_free=2).model_dump()).keep_free == 2
    assert CellKey.model_validate(key().model_dump()) == key()


@pytest.mark.usefixtures("eight")
def test_a_plan_has_and_resumes_the_points_of_a_sweep(tmp_path: Path) -> None:
    def planned(way: object) -> Prepared:
        return prepared(tmp_path, cores=[1, 2], options={"DRBL": {"way": way}}, repetitions=2)

    lines: list[str] = []
    made = planned(["a", "b"])
    preview(made, lines.append)
    cells = [line.split() for line in lines if line.startswith("# cell ")]
    assert lines[0].startswith("# 8 cells to measure")
    assert [words[2] for words in cells] == [f"{n}/8:" for n in range(1, 9)]
    assert [words[-1] for words in cells].count("way=a") == 4
    assert made.run.suite["options"] == {"DRBL": {"way": ["a", "b"]}}
    first = made.cells[0]
    made.store.save_run(made.run)
    made.store.save_cell(cell(first, 1.0))
    again = planned("a,b")
    assert again.resumed
    assert len(again.todo) == 7 and first not in again.todo
    with pytest.raises(FscaleError, match="cannot be resumed"):
        planned("b")
