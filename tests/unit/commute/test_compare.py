# SPDX-License-Identifier: GPL-2.0-only
"""Two results are compared by the tests that both executed."""

import json
from pathlib import Path
from typing import Any

import jsonschema
from click.testing import Result
from junitparser import JUnitXml
from typer.testing import CliRunner

from fscale.cli import app
from fscale.commands import schema
from fscale.commute.compare import LAYOUT_BOOTS
from fscale.commute.conflicts import Conflict
from fscale.commute.store import boot_name
from fscale.model.errors import FscaleError
from tests.support.conflicts import COUNT, IDS, RWSEM, TESTS, write


def compare(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["compare", *map(str, words)])


def judged(*words: str | Path) -> dict[str, Any]:
    done = compare(*words, "--json")
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads(schema.text("conflicts")))
    (only,) = document["compared"]
    assert done.exit_code == bool(only["conflicting"])
    found: dict[str, Any] = only
    return found


def refused(*words: str | Path) -> str:
    done = compare(*words)
    assert isinstance(done.exception, FscaleError)
    assert done.exception.code == 2
    return str(done.exception)


def test_a_pair_newly_conflicts_or_no_longer(tmp_path: Path) -> None:
    # In each boot of one side and in none of the other: tests 1 and 2, and in BASE test 4.
    base = write(tmp_path / "a", [{0: [RWSEM], 4: [COUNT]}, {4: [COUNT]}])
    new = write(
        tmp_path / "b",
        [{0: [RWSEM], 1: [COUNT], 2: [COUNT, RWSEM], 3: [RWSEM]}] * 2
        + [{0: [RWSEM], 1: [COUNT], 2: [RWSEM, COUNT]}],
    )
    found = judged(base, new)
    assert found["conflicting"] == [
        {"calls": ["link", "unlink"], "tests": IDS[1:3], "objects": ["file.f_count", "i_rwsem"]}
    ]
    assert found["free"] == [
        {"calls": ["stat", "stat"], "tests": IDS[4:], "objects": ["file.f_count"]}
    ]
    assert found["tests"] == 5
    table = compare(base, new).stdout
    assert "executed 5 tests: 1 pair of calls newly conflict, 1 no longer do" in table
    assert IDS[1] in table


def test_other_conflicts_of_a_test_are_no_change(tmp_path: Path) -> None:
    base = write(tmp_path / "a", [{0: [RWSEM]}] * 2)
    new = write(tmp_path / "b", [{0: [COUNT]}] * 2)
    found = judged(base, new)
    assert (found["conflicting"], found["free"]) == ([], [])


def test_different_bytes_count_with_enough_boots(tmp_path: Path) -> None:
    """Where an object lies in its lines differs between boots."""
    beside = Conflict("cred.usage", True, (), ())
    for boots in (LAYOUT_BOOTS - 1, LAYOUT_BOOTS):
        base = write(tmp_path / f"a{boots}", [{1: [beside], 4: [COUNT, beside]}] * boots)
        new = write(tmp_path / f"b{boots}", [{0: [beside], 1: [COUNT], 4: [beside]}] * boots)
        found = judged(base, new)
        # Different bytes before are no reason why the same ones now are no change.
        conflicting = IDS[:2] if boots == LAYOUT_BOOTS else IDS[1:2]
        assert [one["tests"] for one in found["conflicting"]] == [conflicting]
        assert [one["tests"] for one in found["free"]] == [IDS[4:]]
        assert found["unjudged"] == (boots < LAYOUT_BOOTS)
        said = "in 1 test merely different bytes" in compare(base, new).stdout
        assert said == (boots < LAYOUT_BOOTS)
    # The side with the fewer boots decides.
    few, enough = tmp_path / f"a{LAYOUT_BOOTS - 1}", tmp_path / f"b{LAYOUT_BOOTS}"
    assert judged(few, enough)["unjudged"] == 1


def test_only_tests_of_both_count(tmp_path: Path) -> None:
    base = write(tmp_path / "a", [{}] * 2, TESTS[:2])
    new = write(tmp_path / "b", [{0: [RWSEM], 1: [RWSEM]}] * 2, TESTS[1:])
    found = judged(base, new)
    assert found["tests"] == 1
    assert found["conflicting"][0]["tests"] == [IDS[1]]
    # A test of the same id is another one if its lines are.
    text = (new / "tests.jsonl").read_text()
    (new / "tests.jsonl").write_text(text.replace("d0/n0", "d0/n1"))
    assert "have no test in common" in refused(base, new)


def test_file_systems_are_matched(tmp_path: Path) -> None:
    base = write(tmp_path / "a", [{}] * 2, filesystems=["tmpfs", "ext4"])
    new = write(tmp_path / "b", [{}] * 2, filesystems=["ext4", "xfs"], kernels=["6.12"])
    found = judged(base, new)
    assert (found["base"]["filesystem"], found["new"]["filesystem"]) == ("ext4", "ext4")
    xfs = write(tmp_path / "c", [{}] * 2, filesystems=["xfs", "btrfs"])
    assert "have no file system in common" in refused(base, xfs)
    several = write(tmp_path / "d", [{}] * 2, kernels=["6.1", "6.12"])
    assert f"{several} has several kernels" in refused(base, several)


def test_junit_fails_where_calls_newly_conflict(tmp_path: Path) -> None:
    base = write(tmp_path / "a", [{4: [COUNT]}] * 2)
    new = write(tmp_path / "b", [{0: [RWSEM]}] * 2)
    done = compare(base, new, "--junit", "-")
    assert done.exit_code == 1
    (suite,) = JUnitXml.fromstring(done.stdout.encode())
    assert (suite.tests, suite.failures) == (2, 1)
    failed, passed = suite
    assert (failed.name, passed.name) == ("link, unlink", "stat, stat")
    assert failed.result[0].message == "newly conflict at i_rwsem"
    assert IDS[0] in failed.system_out
    assert compare(base, base, "--junit", tmp_path / "x.xml").exit_code == 0
    assert JUnitXml.fromfile(str(tmp_path / "x.xml")).failures == 0


def test_what_is_no_finished_result_is_refused(tmp_path: Path) -> None:
    base = write(tmp_path / "a", [{}] * 2)
    assert "give another one as NEW" in refused(base)
    assert "--margin: not supported with results of `fscale commute`" in refused(
        base, base, "--margin", "0.1"
    )
    (tmp_path / "run").mkdir()
    assert f"{tmp_path / 'run'} has no tests.jsonl" in refused(tmp_path / "run", base)
    first = base / boot_name("tmpfs", "6.1", 1)
    kept = first.read_text()
    first.write_text("".join(kept.splitlines(keepends=True)[:-1]))
    assert f"a boot in {base} lacks the test '{IDS[-1]}'" in refused(base, base)
    first.unlink()
    assert f"{first} is missing" in refused(base, base)
    first.write_text(kept)
    for name in ("matrix.json", "tests.jsonl"):
        good = (base / name).read_text()
        for bad in (good[: len(good) // 2], '{"schema": 2}', "[" * 100_000, "\0"):
            (base / name).write_text(bad)
            assert f"{base / name} is damaged" in refused(base, base)
        (base / name).write_text(good)
