# SPDX-License-Identifier: GPL-2.0-only
"""A result is shown, drawn and exported; what it has not is refused."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from click.testing import Result
from typer.testing import CliRunner

from fscale.cli import app
from fscale.commute.conflicts import Conflict
from fscale.model.errors import FscaleError
from tests.support.conflicts import COUNT, RWSEM, write
from tests.support.pages import Table, text_of
from tests.support.synthetic import write_run

LAYOUT = Conflict("cred.usage", True, ("init_file",), ("generic_permission",))
HOSTILE = Conflict("<script>alert(1)</script>", False, ("a",), ("b",))
BOOTS = [{0: [RWSEM, COUNT], 1: [LAYOUT], 3: [HOSTILE]}] * 2


def command(*words: str | Path) -> Result:
    return CliRunner().invoke(app, list(map(str, words)), env={"COLUMNS": "100"})


def refused(*words: str | Path) -> str:
    done = command(*words)
    assert isinstance(done.exception, FscaleError), done.output
    assert done.exception.code == 2
    return str(done.exception)


def squares(page: Path) -> dict[str, str]:
    """The heat maps: what is said of a pair, and its text."""
    return dict(re.findall(r'<td style="[^"]*" title="([^"]*)">(\d+)</td>', page.read_text()))


def titles(page: Path) -> list[str]:
    return re.findall(r"<h2 [^>]*>(.*?)</h2>", page.read_text())


def test_it_is_shown_as_it_was_when_it_was_measured(tmp_path: Path) -> None:
    done = command("show", write(tmp_path / "a", BOOTS, filesystems=("tmpfs", "ext4")))
    assert done.exit_code == 0
    assert "tmpfs on 6.1, 2 boots: 2 of 5 tests have no conflict" in done.output
    assert "ext4 on 6.1" in done.output
    assert "file.f_count" in done.output
    alone = command("show", tmp_path / "a", "--fs", "ext4").output
    assert "tmpfs" not in alone
    assert done.output.endswith(alone)


def test_the_page_has_each_pair_and_object(tmp_path: Path) -> None:
    result = write(tmp_path / "a", BOOTS)
    done = command("report", result)
    assert done.output.strip() == str(result / "report.html")
    page = result / "report.html"
    assert titles(page) == ["Which calls scale", "tmpfs on 6.1"]
    assert squares(page) == {
        "link, unlink: 1 of 3 tests without a conflict, 1 at different bytes only": "33",
        "stat, stat: 1 of 2 tests without a conflict, 0 at different bytes only": "50",
    }
    assert [row[:2] for row in Table(page, "Objects").rows] == [
        [HOSTILE.object, "same"],
        ["cred.usage", "different"],
        ["file.f_count", "same"],
        ["i_rwsem", "same"],
    ]
    assert "<script>alert" not in page.read_text()


def test_a_page_of_several_results_says_what_changed(tmp_path: Path) -> None:
    old, new = write(tmp_path / "a", BOOTS), write(tmp_path / "b", [{4: [COUNT]}] * 2)
    done = command("report", f"{old}=stock", new, "--output", tmp_path / "both")
    assert done.exit_code == 0
    page = tmp_path / "both" / "report.html"
    assert titles(page) == [
        *("Which calls scale", "b against stock"),
        *("stock: tmpfs on 6.1", "b: tmpfs on 6.1"),
    ]
    assert "1 pair of calls newly conflict" in text_of(page)
    rows = Table(page, "Changed pairs").rows
    assert rows[0] == ["stat, stat", "new only", "1", "stat-stat-2", "file.f_count"]
    assert ["link, unlink", "base only", "1"] in [row[:3] for row in rows]


def test_a_page_says_why_results_are_not_compared(tmp_path: Path) -> None:
    old = write(tmp_path / "a", BOOTS, kernels=("6.1", "6.12"))
    new = write(tmp_path / "b", BOOTS, kernels=("6.1", "6.12"))
    assert command("report", old, new, "--output", tmp_path / "both").exit_code == 0
    page = tmp_path / "both" / "report.html"
    assert "They are not compared:" in text_of(page)
    assert len(titles(page)) == 6


def test_a_label_may_follow_a_directory_with_an_equals_sign(tmp_path: Path) -> None:
    result = write(tmp_path / "fs=x" / "a", BOOTS)
    done = command("export", f"{result}=named", "--format", "csv", "--table", "objects")
    assert done.stdout.splitlines()[1].startswith("named,tmpfs")


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_tables_have_a_row_for_each_pair_and_object(form: str, tmp_path: Path) -> None:
    one = write(tmp_path / "a", BOOTS)
    other = write(tmp_path / "b", BOOTS, filesystems=("ext4",), kernels=("6.12",))
    output = tmp_path / "out"
    for table, wanted in (
        ("pairs", [("link", "unlink", 3, 1, 1), ("stat", "stat", 2, 1, 0)]),
        (
            "objects",
            [
                (HOSTILE.object, "same", 1, 1, "a, b"),
                ("cred.usage", "different", 1, 1, "init_file, generic_permission"),
                ("file.f_count", "same", 1, 1, ""),
                ("i_rwsem", "same", 1, 1, "down_write, up_write"),
            ],
        ),
    ):
        asked = ("export", f"{one}=first", other, "--format", form, "--table", table)
        assert command(*asked, "--output", output).exit_code == 0
        rows = _rows(output, form)
        places = [("first", "tmpfs", "6.1", 2), ("b", "ext4", "6.12", 2)]
        assert rows == [tuple(map(str, (*at, *row))) for at in places for row in wanted]


def _rows(path: Path, form: str) -> list[tuple[str, ...]]:
    if form == "csv":
        return [tuple(row) for row in list(csv.reader(io.StringIO(path.read_text())))[1:]]
    if form == "json":
        return [tuple(map(str, row.values())) for row in json.loads(path.read_text())["data"]]
    return [tuple(map(str, row)) for row in pd.read_parquet(path).itertuples(index=False)]


def test_the_table_of_pairs_is_the_one_that_is_not_asked_for(tmp_path: Path) -> None:
    result = write(tmp_path / "a", BOOTS)
    whole = command("export", result, "--format", "csv").stdout
    assert whole == command("export", result, "--format", "csv", "--table", "pairs").stdout
    assert whole.startswith("run,filesystem,kernel,boots,a,b,tests,free,layout\n")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("export", "RESULT", "--format", "junit"), "in one of the formats csv, json, parquet"),
        (
            ("export", "RESULT", "--format", "csv", "--table", "cells"),
            "its tables pairs and objects",
        ),
        (
            ("export", "RUN", "--format", "csv", "--table", "objects"),
            "only results of `fscale commute`",
        ),
        (("export", "RUN", "RESULT", "--format", "csv"), "has no matrix.json"),
        (("report", "RUN", "RESULT", "--output", "OUT"), "has no matrix.json"),
        (("report", "RESULT", "--paper"), "--paper: not supported"),
        (("report", "RESULT", "RESULT"), "needs --output DIR"),
        (("report", "RESULT", "RESULT", "--output", "OUT"), "have one name"),
        (("export", "RESULT", "RESULT", "--format", "csv"), "have one name"),
        (("show", "RESULT", "--workload", "DWAL"), "--workload: not supported"),
        (("show", "RESULT", "--fs", "xfs"), "no file system xfs"),
        (("predict", "RESULT", "--cores", "16"), "`fscale show`, `report`, `export` and `compare`"),
    ],
)
def test_what_it_has_not_is_refused(words: tuple[str, ...], reason: str, tmp_path: Path) -> None:
    write_run(tmp_path / "run", [])
    places = {
        "RESULT": write(tmp_path / "a", BOOTS),
        "RUN": tmp_path / "run",
        "OUT": tmp_path / "o",
    }
    assert reason in refused(*(places.get(word, word) for word in words))
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: "",
        lambda text: "{",
        lambda text: "\x00",
        lambda text: '{"schema": 2, "matrices": []}',
        lambda text: text.replace('"stat"', '"chmod"'),
        lambda text: text.replace('"tests": 2', '"tests": 0'),
        lambda text: text.replace('"free": 1', '"free": 99'),
        lambda text: re.sub(r'"tests": 2,(\s+)"free": 1', r'"tests": 0,\1"free": 0', text),
        lambda text: re.sub(r'"pairs": \[.*?\n   \],', '"pairs": [],', text, flags=re.DOTALL),
    ],
)
def test_a_damaged_matrix_is_said(spoil: Callable[[str], str], tmp_path: Path) -> None:
    result = write(tmp_path / "a", BOOTS)
    text = (result / "matrix.json").read_text()
    assert spoil(text) != text
    (result / "matrix.json").write_text(spoil(text))
    for words in (("show", result), ("report", result), ("export", result, "--format", "csv")):
        assert "matrix.json is damaged" in refused(*words)
