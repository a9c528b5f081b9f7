# SPDX-License-Identifier: GPL-2.0-only
"""`fscale locks` and the report on a run made of recorded profiles and made-up rates."""

import gzip
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fscale.analysis.diagnosis.run import costs, diagnose
from fscale.analysis.reader import load
from fscale.analysis.report import build
from fscale.cli import app
from fscale.model import paths
from fscale.model.errors import FscaleError
from fscale.model.results import Cell, CellKey
from fscale.runner.profilers import parse_names
from tests.support import synthetic
from tests.support.synthetic import cell, write_run

pytestmark = pytest.mark.slow

GOLDEN = paths.ROOT / "tests" / "golden" / "profiles"
DIRECTORY = "inode->i_rwsem of the shared directory"


def key(cores: int, repetition: int = 1, profile: str | None = None) -> CellKey:
    return synthetic.key(
        repetition, workload="MWCM", filesystem="btrfs", cores=cores, profile=profile
    )


def written(directory: Path, *profiled: int) -> Path:
    """Six scored cells that fall from one core to two, and lock profiles that cost 5%."""
    rates = {1: 100.0, 2: 60.0}
    cells: list[Cell] = [cell(key(n, r), rates[n] + r) for n in (1, 2) for r in (1, 2, 3)]
    for cores in profiled:
        name = key(cores, profile="locks").id
        made = cell(key(cores, profile="locks"), 0.95 * (rates[cores] + 2))
        made.profiles["locks"] = f"profiles/{name}/locks.json.gz"
        made.counts = {"kmem:kmem_cache_alloc": 8.1772}
        cells.append(made)
        (directory / "profiles" / name).mkdir(parents=True)
        golden = GOLDEN / "MWCM-btrfs-locks.json.gz"
        shutil.copy(golden, directory / "profiles" / name / "locks.json.gz")
    return write_run(directory, cells)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run whose point of two cores has a lock profile."""
    return written(tmp_path / "run", 2)


def test_json_holds_the_verdict_and_the_table(run: Path) -> None:
    done = CliRunner().invoke(app, ["locks", str(run), "--json"])
    assert done.exit_code == 0
    data = json.loads(done.stdout)
    (point,) = data["points"]
    assert point["shape"] == "collapses"
    assert point["cause"] == DIRECTORY
    assert point["suspects"][0]["named_by"] == "address and stack"
    assert point["counts_per_operation"] == {"kmem:kmem_cache_alloc": 8.1772}
    (row,) = data["table"]
    assert (row["filesystem"], row["bottleneck"]) == ("btrfs", "Directory access lock")
    assert data["costs"][0]["ratio"] == pytest.approx(0.95)


def test_json_keeps_what_the_terminal_cannot_show(tmp_path: Path) -> None:
    directory = written(tmp_path / "run", 2)
    described = json.loads((directory / "run.json").read_text())
    described["machine"]["kernel"] = "6.12-\u00fc"
    (directory / "run.json").write_text(json.dumps(described))
    done = CliRunner(env={"LC_ALL": "C"}).invoke(app, ["locks", str(directory), "--json"])
    assert json.loads(done.stdout)["kernel"] == "6.12-\u00fc"


def test_json_and_markdown_together_are_refused(run: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.md"
    done = CliRunner().invoke(app, ["locks", str(run), "--json", "--markdown", str(table)])
    assert isinstance(done.exception, FscaleError)
    assert "give one of them" in str(done.exception)


def test_text_and_markdown_name_the_lock(run: Path) -> None:
    text = CliRunner().invoke(app, ["locks", str(run), "--stacks"]).stdout
    assert "collapses from 2 cores on" in text
    assert "down_write < path_openat" in text
    assert "work per operation: kmem:kmem_cache_alloc 8.1772" in text
    table = CliRunner().invoke(app, ["locks", str(run), "--markdown", "-"]).stdout
    assert f"| MWCM | btrfs | 2 | 30% | {DIRECTORY} | 7.3% |" in table


def test_a_cell_is_chosen_by_the_start_of_its_name(run: Path) -> None:
    assert CliRunner().invoke(app, ["locks", str(run), "MWCM-btrfs"]).exit_code == 0
    done = CliRunner().invoke(app, ["locks", str(run), "MWCX"])
    assert isinstance(done.exception, FscaleError)
    assert "no profiled cell MWCX" in str(done.exception)


def test_a_run_without_profiles_says_what_to_do(tmp_path: Path) -> None:
    directory = write_run(tmp_path, [cell(key(1), 10)])
    done = CliRunner().invoke(app, ["locks", str(directory)])
    assert isinstance(done.exception, FscaleError)
    assert "--profile locks,cpu,offcpu" in str(done.exception)


@pytest.mark.parametrize("damage", ["cut", "text", "gone", "list"])
def test_a_damaged_profile_is_named_and_the_rest_is_read(run: Path, damage: str) -> None:
    (path,) = (run / "profiles").glob("*/locks.json.gz")
    if damage == "gone":
        path.unlink()
    else:
        data = {
            "cut": path.read_bytes()[:500],
            "text": b"no profile",
            "list": gzip.compress(b"[]"),
        }[damage]
        path.write_bytes(data)
    (point,) = diagnose(load(run)).points
    assert len(point.triage.unreadable) == 1
    assert "no profile" in point.judgement.sentence


def test_cost_compares_profiled_with_scored_cells_of_the_run(run: Path) -> None:
    (cost,) = costs(load(run))
    assert (cost.profiler, cost.points) == ("locks", 1)
    assert cost.ratio == pytest.approx(0.95)


def test_the_report_has_the_section(run: Path, tmp_path: Path) -> None:
    html = build(run, tmp_path / "out").read_text()
    assert "Why it stops scaling" in html
    assert "Directory access lock" in html


def test_the_report_says_nothing_of_shares_that_no_profile_shows(run: Path, tmp_path: Path) -> None:
    (path,) = (run / "profiles").glob("*/locks.json.gz")
    path.write_bytes(b"no profile")
    html = build(run, tmp_path / "out").read_text()
    assert "No object took" not in html
    assert html.count("No profile measures shares of time.") == 2  # the table's and the point's


def test_sampled_waits_are_said_to_be(run: Path, tmp_path: Path) -> None:
    assert "one wait in" not in CliRunner().invoke(app, ["locks", str(run)]).stdout
    (path,) = (run / "profiles").glob("*/locks.json.gz")
    waits = {"7,16,-131384255322904,down_write\npath_openat\n": {"count": 1000, "total": 10**8}}
    buckets = {"7,16,-131384255322904": [{"min": 65536, "max": 131071, "count": 1000}]}
    maps = [{"@active": 10**11}, {"@wait": waits}, {"@histogram": buckets}]
    output = "\n".join(json.dumps({"type": "map", "data": one}) for one in maps)
    profile = {"profiler": "locks", "output": output, "samples": {}}
    path.write_bytes(gzip.compress(json.dumps(profile).encode()))
    said = "one wait in 128 was sampled; its sums are scaled, with a standard error of 3.2%"
    text = CliRunner().invoke(app, ["locks", str(run)]).stdout
    assert said in " ".join(text.split())
    assert said in build(run, tmp_path / "out").read_text()
    data = json.loads(CliRunner().invoke(app, ["locks", str(run), "--json"]).stdout)
    (suspect,) = data["points"][0]["suspects"]
    assert (suspect["waits"], suspect["one_in"]) == (128_000, 128)
    assert suspect["blocked"] == pytest.approx(0.128)


def test_turns_are_said_where_locks_were_looked_at_in_turns(run: Path, tmp_path: Path) -> None:
    assert "of the time; the sums" not in CliRunner().invoke(app, ["locks", str(run)]).stdout
    (path,) = (run / "profiles").glob("*/locks.json.gz")
    waits = {"0,16,-131384255322904,down_write\npath_openat\n": {"count": 9, "total": 10**9}}
    maps = [{"@active": 10**11}, {"@looked": 26 * 10**9}, {"@wait": waits}]
    output = "\n".join(json.dumps({"type": "map", "data": one}) for one in maps)
    profile = {"profiler": "locks", "output": output, "samples": {}}
    path.write_bytes(gzip.compress(json.dumps(profile).encode()))
    said = "waits were recorded only 26% of the time"
    assert said in " ".join(CliRunner().invoke(app, ["locks", str(run)]).stdout.split())
    assert said in build(run, tmp_path / "out").read_text()
    data = json.loads(CliRunner().invoke(app, ["locks", str(run), "--json"]).stdout)
    (point,) = data["points"]
    assert point["looked"] == pytest.approx(0.26)
    assert point["suspects"][0]["blocked"] == pytest.approx(0.01 / 0.26, rel=1e-3)


def test_unknown_profilers_are_refused() -> None:
    assert parse_names("locks, cpu,locks") == ["locks", "cpu"]
    with pytest.raises(FscaleError, match="no profiler 'lock'"):
        parse_names("lock")


def test_one_core_has_no_sentence_of_a_curve(tmp_path: Path) -> None:
    both = written(tmp_path / "both", 1, 2)
    said = CliRunner().invoke(app, ["locks", str(both), "--all"]).stdout
    first, second = said.index("1 core "), said.index("2 cores ")
    assert first < second
    assert "collapses" not in said[first:second]
    assert "collapses" in said[second:]


def test_the_answer_comes_first_and_the_most_cores_of_each_curve(tmp_path: Path) -> None:
    both = written(tmp_path / "both", 1, 2)
    said = CliRunner().invoke(app, ["locks", str(both)]).stdout
    assert said.startswith(f"fscale: {DIRECTORY} limits MWCM (btrfs)\n")
    assert "1 core " not in said
    assert "2 cores " in said
    assert said.endswith("1 point with fewer cores, and objects below 1%: add --all\n")


def test_names_of_objects_are_shown_whole(run: Path) -> None:
    said = CliRunner().invoke(app, ["locks", str(run)], env={"COLUMNS": "80"}).stdout
    assert "\u2026" not in said
