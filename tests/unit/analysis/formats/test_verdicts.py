# SPDX-License-Identifier: GPL-2.0-only
"""Verdicts as tests of KernelCI and JUnit, read back by their own readers."""

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml
from kcidb_io.schema import V5_0, V5_3

from fscale.model.results import Cell, CellKey
from tests.support.hostile import run as fscale
from tests.support.synthetic import grid, key, write_run

COMMIT = "0123456789abcdef0123456789abcdef01234567"
BROKEN = {"status": "error", "reason": "pread: EIO", "ops_per_second": 0}


def written(directory: Path, factor: Callable[[CellKey], float], lacking: str = "") -> Path:
    """Twelve repetitions of three workloads at one and two cores, but for one workload."""
    cells = grid(
        [1, 2], 12, [w for w in ("DRBL", "DWOL", "MWCL") if w != lacking], ["ext4"],
        rate=lambda k: factor(k) * 1e5 * k.cores * (1 + k.repetition / 1000),
    )  # fmt: skip
    return write_run(directory, cells, filesystems=["ext4"], cpus=2)


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    """In NEW, DWOL is slower, one repetition of MWCL is broken, and DRBL is the same."""
    base = written(tmp_path / "base", lambda _: 1)
    new = written(tmp_path / "new", lambda k: 0.7 if k.workload == "DWOL" else 1)
    path = new / "cells" / f"{key(workload='MWCL', cores=2).id}.json"
    broken = Cell.model_validate_json(path.read_text()).model_copy(update=BROKEN)
    path.write_text(broken.model_dump_json(by_alias=True))
    return base, new


def filed(*words: object, code: int = 1) -> Any:
    """The valid document that a comparison of two runs prints."""
    scratch = Path(str(words[0])).parent
    done = fscale(scratch, "compare", *words, "--kcidb", "-")
    assert done.code == code, done.error
    data = json.loads(done.output)
    V5_0.validate_exactly(data)
    V5_3.validate(data)
    return data


def test_words_of_a_program_keep_the_xml_readable(sides: tuple[Path, Path]) -> None:
    path = sides[1] / "cells" / f"{key(workload='MWCL', cores=2).id}.json"
    path.write_text(path.read_text().replace("pread: EIO", "\\u001b[31mEIO\\u001b[0m \\uffff"))
    done = fscale(sides[0].parent, "compare", *sides, "--junit", "-")
    cases = [case for suite in JUnitXml.fromstring(done.output) for case in suite]
    assert any("?[31mEIO?[0m ?" in case.system_out for case in cases if case.name == "broken")


def statuses(data: Any) -> dict[str, str]:
    return {test["path"]: test["status"] for test in data["tests"]}


def test_verdicts_are_tests(sides: tuple[Path, Path]) -> None:
    data = filed(*sides)
    found = statuses(data)
    place = "ext4.ram.buffered"
    assert found[f"fscale.DRBL.{place}.1c.throughput"] == "PASS"
    assert found[f"fscale.DWOL.{place}.1c.throughput"] == "FAIL"
    assert found[f"fscale.MWCL.{place}.2c.broken"] == "FAIL"
    assert found[f"fscale.DRBL.{place}.1_2c.speed-up"] == "PASS"
    slow = next(t for t in data["tests"] if t["path"] == f"fscale.DWOL.{place}.1c.throughput")
    assert slow["number"]["value"] == pytest.approx(70455)
    assert slow["number"]["unit"] == "ops/s"
    assert slow["misc"]["verdict"] == "slower"
    assert slow["misc"]["ratio"] == pytest.approx(0.7)
    assert slow["comment"].startswith("slower: DWOL, ext4 on ram, buffered, 1 core: throughput")
    assert slow["start_time"].startswith("2026-01-01")
    assert len({test["id"] for test in data["tests"]}) == len(data["tests"])


def test_what_is_undecided_is_skipped_or_an_error(tmp_path: Path) -> None:
    base = written(tmp_path / "base", lambda _: 1)
    wild = written(tmp_path / "new", lambda k: 1 + 0.8 * (k.repetition % 2))
    assert "SKIP" in statuses(filed(base, wild, code=0)).values()
    found = statuses(filed(base, wild, "--fail-undecided")).values()
    assert "ERROR" in found
    assert "SKIP" not in found


def test_what_a_side_lacks_is_skipped(tmp_path: Path) -> None:
    base = written(tmp_path / "base", lambda _: 1)
    found = statuses(filed(base, written(tmp_path / "new", lambda _: 1, "DWOL"), code=0))
    assert found["fscale.DWOL.ext4.ram.buffered.2c.all"] == "SKIP"


def test_a_point_without_a_value_for_another_reason_is_an_error(tmp_path: Path) -> None:
    base = written(tmp_path / "base", lambda _: 1)
    new = written(tmp_path / "new", lambda _: 1)
    for path in (new / "cells").glob("DWOL*2c*"):
        cell = Cell.model_validate_json(path.read_text())
        lost = cell.model_copy(update={"status": "skipped", "reason": "no tool"})
        path.write_text(lost.model_dump_json(by_alias=True))
    assert statuses(filed(base, new))["fscale.DWOL.ext4.ram.buffered.2c.lost"] == "ERROR"


def test_verdicts_belong_to_the_build_of_a_ci(sides: tuple[Path, Path]) -> None:
    data = filed(*sides, "--origin", "myci", "--build-id", "myci:b42", "--platform", "rack-7")
    assert not {"builds", "checkouts"} & data.keys()
    for test in data["tests"]:
        assert (test["origin"], test["build_id"]) == ("myci", "myci:b42")
        assert test["environment"]["misc"]["platform"] == "rack-7"
    data = filed(*sides, "--checkout-id", "other:c1")
    assert "checkouts" not in data
    assert data["builds"][0]["checkout_id"] == "other:c1"
    assert data["tests"][0]["environment"]["misc"]["platform"] == "synthetic-test-host"


def test_a_commit_is_that_of_the_checkout(sides: tuple[Path, Path]) -> None:
    data = filed(*sides, "--origin", "myci", "--commit", COMMIT)
    (checkout,), (build,) = data["checkouts"], data["builds"]
    assert (checkout["id"], checkout["git_commit_hash"]) == (f"myci:{COMMIT}", COMMIT)
    assert build["checkout_id"] == checkout["id"]
    assert {test["build_id"] for test in data["tests"]} == {build["id"]}
    other = filed(*sides, "--origin", "myci", "--commit", COMMIT.replace("0", "f"))
    assert other["builds"][0]["id"] != build["id"]


def test_an_export_and_its_verdicts_are_of_one_build(sides: tuple[Path, Path]) -> None:
    words = ["export", sides[1], "--format", "kcidb", "--commit", COMMIT]
    exported = json.loads(fscale(sides[0].parent, *words).output)
    judged = filed(*sides, "--commit", COMMIT)
    for part in ("checkouts", "builds"):
        assert exported[part] == judged[part]
    assert not {t["id"] for t in exported["tests"]} & {t["id"] for t in judged["tests"]}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--origin", "myci"], "--origin: describes a submission to KernelCI; add --kcidb"),
        (["--kcidb", "x", "--commit", "HEAD"], "is not the full hash of a commit"),
        (["--kcidb", "x", "--commit", COMMIT, "--build-id", "a:b"], "leave it out"),
        (["--kcidb", "x", "--build-id", "b"], "b is not an id of KernelCI"),
        (["--kcidb", "-", "--json"], "both name -"),
    ],
)
@pytest.mark.parametrize("command", ["compare", "ab", "gate"])
def test_what_cannot_be_submitted_is_refused_at_once(
    command: str, options: list[str], said: str, tmp_path: Path
) -> None:
    named = {"compare": ["base", "new"], "ab": ["--base", "ext4", "--new", "xfs"]}
    words = named.get(command, named["ab"])
    done = fscale(tmp_path, command, *words, *options)
    assert (done.code, said in done.error) == (2, True), done.error


def test_junit_has_times_and_plain_properties(sides: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "out.xml"
    assert fscale(tmp_path, "compare", *sides, "--junit", path).code == 1
    suites = JUnitXml.fromfile(str(path))
    (suite,) = suites
    assert suite.timestamp == "2026-01-01T00:00:00Z"
    assert suite.hostname == "synthetic-test-host"
    # 1.5 s for each repetition of six points on two sides, each told once.
    assert suite.time == pytest.approx(2 * 6 * 12 * 1.5)
    times = Counter((case.classname, bool(case.time)) for case in suite)
    assert all(count == 1 for (_, timed), count in times.items() if timed)
    text = path.read_text()
    assert '<property name="verdict" value="slower"/>' in text
    assert "&quot;" not in text
    assert 'value="null"' not in text
    assert "<properties>" in text.partition("<testcase")[2]


def test_junit_goes_to_standard_output_alone(sides: tuple[Path, Path], tmp_path: Path) -> None:
    done = fscale(tmp_path, "compare", *sides, "--junit", "-")
    (suite,) = JUnitXml.fromstring(done.output.encode())
    assert suite.failures


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The commit that is checked out in the working directory."""
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(tmp_path)]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *command], check=True)
    monkeypatch.chdir(tmp_path)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return head.stdout.strip()


def test_a_step_of_a_bisection_is_filed(
    repository: str, sides: tuple[Path, Path], tmp_path: Path
) -> None:
    base, new = sides
    filed_in = tmp_path / "out" / repository[:12] / "kcidb.json"

    def step(*command: str) -> tuple[int | None, Any]:
        words = ["bisect", "--reference", base, "--output", tmp_path / "out"]
        words += ["--kcidb", "{output}/kcidb.json"]
        done = fscale(tmp_path, *words, "--origin", "myci", "--", *command)
        data = json.loads(filed_in.read_text())
        V5_0.validate_exactly(data)
        assert data["checkouts"][0]["git_commit_hash"] == repository
        assert {test["build_id"] for test in data["tests"]} == {data["builds"][0]["id"]}
        filed_in.unlink()
        return done.code, data

    code, data = step("/bin/false")
    assert (code, data["builds"][0]["status"]) == (125, "FAIL")
    (test,) = data["tests"]
    assert (test["status"], test["comment"]) == ("SKIP", "/bin/false failed")
    code, data = step("/bin/sh", "-c", f'mkdir -p "$0" && cp -r {new}/. "$0"', "{output}")
    assert code == 1
    assert Counter(statuses(data).values())["FAIL"] > 1
    assert "status" not in data["builds"][0]


def test_a_bisection_whose_tests_cannot_be_filed_stops(
    repository: str, sides: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / repository[:12]).write_text("a file")
    words = ["bisect", "--reference", sides[0], "--output", tmp_path / "out"]
    done = fscale(tmp_path, *words, "--kcidb", "{output}/kcidb.json", "--", "/bin/false")
    assert (done.code, "cannot write" in done.error) == (128, True), done.error
