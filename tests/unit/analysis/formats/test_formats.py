# SPDX-License-Identifier: GPL-2.0-only
"""A run in other programs' formats, read back by those programs' readers."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from junitparser import Error, Failure, JUnitXml, Skipped
from kcidb_io.schema import V5_0, V5_3
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from tap.parser import Parser

from fscale.analysis.formats.run import FORMATS
from fscale.analysis.formats.tables import TABLE_FORMATS, TABLES
from fscale.analysis.reader import load
from fscale.commands.options.formats import OF_TABLES, Format, TableName
from fscale.commute.tables import TABLES as CONFLICT_TABLES
from fscale.model.bench import CpuTimes
from fscale.model.results import Cell, CellKey
from fscale.model.simulation import Simulation
from tests.support import exports, simulated_cells
from tests.support.hostile import run as fscale
from tests.support.synthetic import cell, key, machine, write_run

GOOGLES_COMPARE = Path("/usr/share/benchmark/compare.py")
RATES = {1: 1000.0, 2: 1100.0, 3: 1600.0}
LATENCY = {"quantiles": {"50": 2000, "99": 5000, "99.9": 9000}}


def failed(repetition: int, status: str, reason: str, **changes: Any) -> Cell:
    """As the runner leaves one: no figures, no output of the benchmark."""
    return cell(
        key(repetition, cores=2), 1.0, status=status, reason=reason, ops=0, seconds=0,
        ops_per_second=0, cpu=None, own_cpu_seconds=None, bench=None, **changes,
    )  # fmt: skip


def cells() -> list[Cell]:
    """Three good ones of which one is disturbed, one of each other end, one that was profiled."""
    no_space = cell(key(9, cores=2), 1.0, status="error", reason="ENOSPC", ops_per_second=0)
    assert no_space.bench is not None
    no_space.bench.end = "no_space"
    return [
        cell(key(1), RATES[1], latency=LATENCY),
        cell(key(2), RATES[2]),
        cell(key(3), RATES[3], disturbed="others took 0.4 CPUs\nfor a while"),
        cell(key(1, cores=2), 1800.0),
        failed(2, "error", "fsck: # 3 inodes\x1b[31m are wrong"),
        failed(3, "invalid", "the window was too short"),
        failed(4, "skipped", "mkfs.ext4 is missing"),
        failed(5, "interrupted", "by the user"),
        no_space,
        cell(key(1, profile="locks"), 700.0),
        cell(key(1, filesystem="=1+1", options={"size": 4096}), 5.0, own_cpu_seconds=None),
    ]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """With all of them, one file that is no cell, and two cells that were never made."""
    made = cells()
    run = write_run(
        tmp_path / "run", made, workloads=["DRBL"], planned_cells=len(made) + 3, revision=None
    )
    (run / "cells" / "torn.json").write_text("{")
    return run


def exported(directory: Path, form: str, table: str = "cells") -> str:
    return exports.exported(load(directory), form, table)


@pytest.fixture(params=["csv", "json"])
def frame(directory: Path, request: pytest.FixtureRequest) -> pd.DataFrame:
    text = io.StringIO(exported(directory, request.param))
    return pd.read_csv(text) if request.param == "csv" else pd.read_json(text, orient="table")


def test_a_table_has_a_row_for_each_repetition(frame: pd.DataFrame) -> None:
    assert len(frame) == len([c for c in cells() if not c.key.profile]) + 1
    scored = frame[frame.counts & (frame.filesystem == "ext4")]
    one = scored[scored.cores == 1]
    assert one.ops_per_second.tolist() == list(RATES.values())
    assert one.ops_per_second.median() == 1100
    assert one.simulated.tolist() == [False] * 3
    assert one.disturbed.notna().tolist() == [False, False, True]
    assert one.latency_p99_seconds.iloc[0] == pytest.approx(5e-6)
    assert one.latency_p99_seconds.isna().tolist() == [False, True, True]
    sums = scored[[c for c in frame if c.startswith("cpu_")]].sum(axis=1)
    assert sums.tolist() == pytest.approx([1.0, 1.0, 1.0, 2.0])


def test_a_failed_row_has_a_reason_and_no_figure(frame: pd.DataFrame) -> None:
    bad = frame[frame.status != "ok"]
    assert sorted(bad.status) == [
        "error", "error", "interrupted", "invalid", "skipped", "unreadable",
    ]  # fmt: skip
    figures = ["ops", "seconds", "ops_per_second", "own_cpu_seconds", "cpu_idle_seconds"]
    assert bad[figures].isna().all(axis=None)
    assert bad.reason.notna().all()
    assert not bad.counts.any()


def test_no_text_is_a_formula_and_types_are_kept(directory: Path) -> None:
    assert ",'=1+1," in exported(directory, "csv")
    frame = pd.read_json(io.StringIO(exported(directory, "json")), orient="table")
    assert "=1+1" in set(frame.filesystem)
    assert str(frame.cores.dtype) == "Int64"
    assert str(frame.simulated.dtype) == "boolean"
    assert json.loads(exported(directory, "json"))["schema"]["missingCells"] == 2


def result_lines(text: str) -> list[Any]:
    """As the parser of TAP has them, once it has checked that the plan is kept."""
    lines = list(Parser().parse_text(text))
    found = [line for line in lines if line.category == "test"]
    (plan,) = [line for line in lines if line.category == "plan"]
    assert plan.expected_tests == len(found)
    assert [line.number for line in found] == list(range(1, len(found) + 1))
    return found


def subtests(text: str) -> dict[str, list[Any]]:
    """The result lines of each block that is indented by two, by the name that it bears."""
    blocks: dict[str, str] = {}
    current: list[str] = []
    for line in text.splitlines():
        if line.startswith("  "):
            current.append(line.removeprefix("  "))
        elif current:
            name = current[1].removeprefix("# Subtest: ")
            blocks[name], current = "\n".join(current) + "\n", []
    assert all(block.startswith("KTAP version 1\n") for block in blocks.values())
    return {name: result_lines(block) for name, block in blocks.items()}


def test_ktap_has_a_test_for_each_point(directory: Path) -> None:
    text = exported(directory, "ktap")
    points = {line.description: line for line in result_lines(text)}
    assert text.startswith("KTAP version 1\n1..5\n")
    assert [line.ok for line in points.values()] == [True, True, False, True, False]
    inner = subtests(text)
    assert list(inner) == list(points)
    two = next(lines for name, lines in inner.items() if "-2c-" in name)
    assert [line.ok for line in two] == [True, False, False, True, False, False]
    assert [line.skip for line in two] == [False, False, False, True, False, False]
    assert "1800 ops/s" in two[0].directive.text
    assert two[1].directive.text == "error: fsck: # 3 inodes?[31m are wrong"
    assert two[2].directive.text.startswith("ERROR invalid: the window")
    assert [line.description for line in inner["absent"]] == ["torn.json", "planned cells"]
    assert "# median 1100 ops/s, min-max 1000 to 1600, 3 repetitions, 1 disturbed" in text


def test_junit_knows_failures_from_errors(directory: Path) -> None:
    suites = JUnitXml.fromstring(exported(directory, "junit").encode())
    assert (suites.tests, suites.failures, suites.errors, suites.skipped) == (13, 1, 5, 1)
    two = next(suite for suite in suites if "-2c-" in suite.name)
    kinds = [type(case.result[0]) if case.result else None for case in two]
    assert kinds == [None, Failure, Error, Skipped, Error, Error]
    assert next(iter(two)).time == 1.5
    first = next(suite for suite in suites if suite.name.startswith("DRBL-ext4-ram-buffered-1c"))
    told = {p.name: p.value for p in first.properties()}
    assert told["throughput"].startswith("median 1100 ops/s, min-max 1000 to 1600")
    assert "disturbed" in [case.system_out for case in first][2]


@pytest.mark.parametrize("schema", [V5_0, V5_3])
def test_kcidb_is_of_its_schema(directory: Path, schema: Any) -> None:
    data = json.loads(exported(directory, "kcidb"))
    schema.validate_exactly(data) if schema is V5_0 else schema.validate(data)
    tests = data["tests"]
    assert len({test["id"] for test in tests}) == len(tests) == len(cells()) + 2
    assert {test["build_id"] for test in tests} == {build["id"] for build in data["builds"]}
    assert data["builds"][0]["checkout_id"] == data["checkouts"][0]["id"]
    two = [test for test in tests if test["path"] == "fscale.DRBL.ext4.ram.buffered.2c"]
    assert [test["status"] for test in two] == ["DONE", "FAIL", "ERROR", "SKIP", "ERROR", "ERROR"]
    assert [test.get("number") for test in two] == [
        {"value": 1800.0, "unit": "ops/s", "prefix": "metric"}, *[None] * 5,
    ]  # fmt: skip
    assert sorted(test["status"] for test in tests).count("MISS") == 2
    profiled = [test for test in tests if test.get("misc", {}).get("profile")]
    assert ["number" in test for test in profiled] == [False]
    assert any("2 planned cells" in test["comment"] for test in tests)


def test_kcidb_belongs_to_the_build_of_a_ci(directory: Path, tmp_path: Path) -> None:
    def export(*options: str) -> Any:
        done = fscale(tmp_path, "export", directory, "--format", "kcidb", *options)
        assert done.code == 0, done.error
        data = json.loads(done.output)
        V5_0.validate_exactly(data)
        return data

    data = export("--origin", "myci", "--build-id", "myci:b42", "--platform", "rack-7")
    assert not {"builds", "checkouts"} & data.keys()
    for test in data["tests"]:
        assert (test["origin"], test["build_id"]) == ("myci", "myci:b42")
        assert test["id"].startswith("myci:")
        assert test["environment"]["misc"]["platform"] == "rack-7"
    data = export("--checkout-id", "other:c1")
    assert "checkouts" not in data
    (build,) = data["builds"]
    assert build["checkout_id"] == "other:c1"
    assert {test["build_id"] for test in data["tests"]} == {build["id"]}
    assert data["tests"][0]["environment"]["misc"]["platform"] == "synthetic-test-host"


@pytest.mark.parametrize(
    ("form", "option", "value", "says"),
    [
        ("kcidb", "--origin", "My CI", "My CI is not an origin"),
        ("kcidb", "--build-id", "b42", "b42 is not an id"),
        ("kcidb", "--checkout-id", ":c1", ":c1 is not an id"),
        ("csv", "--origin", "myci", "--origin"),
    ],
)
def test_what_kcidb_does_not_take_is_refused(
    directory: Path, tmp_path: Path, form: str, option: str, value: str, says: str
) -> None:
    done = fscale(tmp_path, "export", directory, "--format", form, option, value)
    assert (done.code, says in done.error) == (2, True), done.error


def samples(text: str) -> dict[str, list[Any]]:
    assert text.endswith("# EOF\n")
    return {family.name: family.samples for family in text_string_to_metric_families(text)}


def test_openmetrics_has_samples_of_what_was_measured(directory: Path) -> None:
    found = samples(exported(directory, "openmetrics"))
    rates = found["fscale_throughput_per_second"]
    ext4 = [s for s in rates if s.labels["filesystem"] == "ext4" and s.labels["cores"] == "1"]
    assert [s.value for s in ext4] == list(RATES.values())
    assert [s.labels["disturbed"] for s in ext4] == ["false", "false", "true"]
    assert all(s.value > 0 for s in rates)
    assert float(rates[0].timestamp) == 1767225600
    ended = [s for s in found["fscale_cell_status"] if s.value == 1]
    assert len(ended) == len(cells())
    assert [s.labels["fscale_cell_status"] for s in ended].count("error") == 2
    assert [s.value for s in found["fscale_run_cells_missing"]] == [2]
    assert [s.value for s in found["fscale_run_cells_unreadable"]] == [1]


def benchmarks(directory: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(exported(directory, "google-benchmark"))["benchmarks"]
    return found


def test_google_benchmark_has_times_of_an_operation(directory: Path) -> None:
    name = "DRBL/ext4/ram/buffered/seconds:1/cores:1"
    ext4 = [b for b in benchmarks(directory) if b["run_name"] == name]
    assert [b["name"].removeprefix(b["run_name"]) for b in ext4] == [
        "", "", "", "_mean", "_median", "_stddev", "_cv",
    ]  # fmt: skip
    assert [b["items_per_second"] for b in ext4[:3]] == list(RATES.values())
    assert [b["real_time"] for b in ext4[:3]] == [1e9 / rate for rate in RATES.values()]
    assert ext4[4]["real_time"] == pytest.approx(1e9 / 1100)
    assert [b.get("disturbed") for b in ext4[:3]] == [None, None, 1]


def test_google_benchmark_has_no_entry_of_what_has_no_times(directory: Path) -> None:
    (two,) = [b for b in benchmarks(directory) if b["run_name"].endswith("/cores:2")]
    assert two["real_time"] == pytest.approx(2e9 / 1800)
    assert two["cpu_time"] > 0
    out = json.loads(exported(directory, "google-benchmark"))["left_out"]
    assert [one["message"].split(":")[0] for one in out if one["name"].endswith("cores:2")] == [
        "error", "invalid", "skipped", "interrupted", "error",
    ]  # fmt: skip
    assert {"name": "", "message": "2 planned cells left no result"} in out
    assert "torn.json" in [one["name"] for one in out]
    (unknown,) = [one for one in out if "=1+1" in one["name"]]
    assert unknown["name"] == "DRBL/=1+1/ram/buffered/size:4096/seconds:1/cores:1"
    assert unknown["message"] == "its CPU time was not recorded"


@pytest.mark.slow
@pytest.mark.skipif(not GOOGLES_COMPARE.exists(), reason="needs Debian's libbenchmark-tools")
def test_googles_own_reader_compares_exports(directory: Path, tmp_path: Path) -> None:
    files = []
    for name, factor in (("base", 1), ("new", 2)):
        made = [c.model_copy(update={"ops_per_second": factor * c.ops_per_second}) for c in cells()]
        run = write_run(tmp_path / name, made, workloads=["DRBL"])
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(exported(run, "google-benchmark"))
    done = subprocess.run(
        [sys.executable, GOOGLES_COMPARE, "--no-color", "benchmarks", *files],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines() if "DRBL" in line}
    assert rows["DRBL/ext4/ram/buffered/seconds:1/cores:1_median"] == "-0.5000"
    assert rows["DRBL/ext4/ram/buffered/seconds:1/cores:2"] == "-0.5000"
    assert not any("=1+1" in name for name in rows)


def simulated(repetition: int) -> Cell:
    window = simulated_cells.window(100, 1e-4, instructions=10, cycles=400, idle=100, transfers={})
    record = Simulation(seed=repetition, windows=[window], lines=[], host_seconds=1)
    none = CpuTimes(user=0, system=0, idle=0, iowait=0, irq=0, softirq=0, steal=0)
    return cell(
        key(repetition), 1e6 + repetition, cpu=none, own_cpu_seconds=None, simulation=record
    )


def test_every_format_says_that_a_run_is_simulated(tmp_path: Path) -> None:
    guest = machine(1).model_copy(update={"guest": {"accelerator": "simulated"}})
    made = [simulated(1), simulated(2)]
    results = load(write_run(tmp_path / "run", made, workloads=["DRBL"], machine=guest))
    text = {name: exports.exported(results, name) for name in (*FORMATS, "csv", "json")}
    frame = pd.read_csv(io.StringIO(text["csv"]))
    assert frame.simulated.all()
    assert frame.cpu_idle_seconds.isna().all()
    assert pd.read_json(io.StringIO(text["json"]), orient="table").simulated.all()
    entries = json.loads(text["google-benchmark"])["benchmarks"]
    assert all("/simulated/" in entry["name"] for entry in entries)
    assert [e["cpu_time"] / e["real_time"] for e in entries[:2]] == pytest.approx([0.75, 0.75])
    for (point,) in [result_lines(text["ktap"])]:
        assert all(
            "; simulated" in line.directive.text
            for line in subtests(text["ktap"])[point.description]
        )
    assert all(
        "simulated" in case.system_out
        for suite in JUnitXml.fromstring(text["junit"].encode())
        for case in suite
    )
    tests = json.loads(text["kcidb"])["tests"]
    assert all(test["misc"]["simulated"] and "simulated" in test["comment"] for test in tests)
    rates = samples(text["openmetrics"])["fscale_throughput_per_second"]
    assert {s.labels["simulated"] for s in rates} == {"true"}
    assert "fscale_cpu_seconds" not in {
        name for name, own in samples(text["openmetrics"]).items() if own
    }


def test_the_command_knows_all_formats_and_says_what_is_absent(
    directory: Path, tmp_path: Path
) -> None:
    assert [form.value for form in Format] == [*TABLE_FORMATS, *FORMATS]
    assert list(OF_TABLES) == list(TABLE_FORMATS)
    assert [name.value for name in TableName] == [*TABLES, *CONFLICT_TABLES]
    target = tmp_path / "out.csv"
    done = fscale(tmp_path, "export", directory, "--format", "csv", "--output", target)
    assert done.code == 0, done.error
    assert target.read_text() == exported(directory, "csv")
    assert "2 planned cells left no result" in done.error
    assert "1 files of cells cannot be read" in done.error
    printed = fscale(tmp_path, "export", directory, "--format", "ktap")
    assert printed.output == exported(directory, "ktap")


def test_what_cannot_be_written_is_said(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    done = fscale(tmp_path, "export", directory, "--format", "csv", "--output", tmp_path / "link")
    assert done.code == 2
    assert "it is a link" in done.error
    assert not (tmp_path / "elsewhere").exists()


def test_a_strangers_time_is_no_time(tmp_path: Path) -> None:
    made = cell(key(1), 1.0, started="yesterday")
    results = load(write_run(tmp_path / "run", [made], workloads=["DRBL"]))
    (rate,) = samples(FORMATS["openmetrics"](results))["fscale_throughput_per_second"]
    assert rate.timestamp is None
    data = json.loads(FORMATS["kcidb"](results))
    V5_3.validate(data)
    assert "start_time" not in data["tests"][0]


def test_a_name_begins_no_directive(tmp_path: Path) -> None:
    made = [cell(key(1, filesystem="ext4 # SKIP"), 1.0)]
    results = load(write_run(tmp_path / "run", made, workloads=["DRBL"]))
    (line,) = result_lines(FORMATS["ktap"](results))
    assert not line.skip
    assert "ext4 _ SKIP" in line.description


def test_core_counts_are_in_order(tmp_path: Path) -> None:
    made = [cell(CellKey.model_validate(key(1).model_dump() | {"cores": n}), n) for n in (1, 2, 16)]
    results = load(write_run(tmp_path / "run", made, workloads=["DRBL"], cpus=16))
    names = [line.description for line in result_lines(FORMATS["ktap"](results))]
    assert [name.split("-")[4] for name in names] == ["1c", "2c", "16c"]
