# SPDX-License-Identifier: GPL-2.0-only
"""Each table at several widths: what a reader needs is whole, and no line is too long."""

import json
import re
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner

from fscale.analysis.compare.noise import measure_noise
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.analysis.history import index
from fscale.apps.adapter import loads
from fscale.cli import app
from fscale.commands import doctor, noise
from fscale.commands.options.ending import print_cells
from fscale.model.tables import Column, Row, Table
from fscale.model.terminal import terminal
from fscale.runner.doctor import Finding, examine
from tests.support.synthetic import grid, write_run
from tests.unit.analysis.compare.test_kept import unpacked
from tests.unit.commands.test_locks import DIRECTORY, written

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
WIDTHS = (60, 80, 120, 200)
LOCALES = ("C", "C.UTF-8")
TITLES = {
    "MWCL": "Create files in the directory of one process, private",
    "MWCM": "Create files in the directory of all processes, shared",
}
MEANT = {
    "ab": ["slower", "DWAL, ext4, 1 core", "throughput", "per-cpu-second", "62% slower"],
    "gate": ["newly shared", "DWAL, ext4, 4 cores", "shared-lines", "instructions"],
    "undecided": ["undecided", "DWSL, ext4, 1 core", "throughput", "could not judge"],
    "noise": ["DWSL ext4 ram buffered 1c 0.5s", "throughput", "in 30 min"],
    "locks": [DIRECTORY, "tree locks (extent_buffer->lock)", "delayed_node->mutex"],
    "show": ["MWCL", "private", "MWCM", "shared"],
    "list": ["DWSL", "DRBM_bg", "fsync=off|each"],
    "suites": ["regression", "profile-cost"],
    "history": ["synthetic", "2026-01-01T00:00:00Z"],
    "doctor": ["cgroup v2", "lock tracepoints"],
}


@pytest.fixture(scope="module")
def command_lines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    made = {}
    for name, kept in (("ab", "ab-slices"), ("gate", "gate"), ("undecided", "ab-slices-same")):
        made[name] = ["compare", str(unpacked(kept, tmp_path_factory.mktemp(name)))]
    run = tmp_path_factory.mktemp("grid")
    write_run(run, grid((1, 2), 2, TITLES, ("ext4",)), workloads=TITLES)
    stored = json.loads((run / "run.json").read_text())
    for workload in stored["workloads"]:
        workload["title"] = TITLES[workload["id"]]
    (run / "run.json").write_text(json.dumps(stored))
    database = tmp_path_factory.mktemp("history") / "index.sqlite"
    with index.opened(database) as connection:
        index.add(connection, run)
    made["locks"] = ["locks", str(written(tmp_path_factory.mktemp("locks"), 2))]
    made["show"] = ["show", str(run)]
    made["list"] = ["list", "workloads"]
    made["suites"] = ["list", "suites"]
    made["history"] = ["history", "list", "--db", str(database)]
    made["doctor"] = ["doctor"]
    return made


@pytest.fixture(scope="module")
def findings() -> list[Finding]:
    return examine(loads())


def printed(arguments: list[str], width: int, locale: str, colour: bool) -> str:
    given = {"COLUMNS": str(width), "LC_ALL": locale, "TERM": "xterm-256color"}
    given |= {"FORCE_COLOR": "1"} if colour else {"NO_COLOR": "1"}
    return CliRunner(env=given).invoke(app, arguments).output


def check(text: str, meant: list[str], width: int, locale: str) -> None:
    lines = [ESCAPE.sub("", line).rstrip() for line in text.splitlines()]
    assert max(map(cell_len, lines)) <= width, text
    assert "…" not in text
    assert locale != "C" or text.isascii(), text
    assert [words for words in meant if not any(words in line for line in lines)] == [], text


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", [name for name in MEANT if name != "noise"])
def test_what_is_meant_is_whole(
    name: str,
    width: int,
    command_lines: dict[str, list[str]],
    findings: list[Finding],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "examine", lambda _: findings)
    for locale in LOCALES:
        for colour in (False, True):
            text = printed(command_lines[name], width, locale, colour)
            assert colour is bool(ESCAPE.search(text)) or name in ("doctor", "show")
            check(text, MEANT[name], width, locale)


@pytest.mark.parametrize("width", WIDTHS)
def test_noise_says_how_long_a_comparison_would_take(
    width: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sides = open_sides(unpacked("ab-slices-same", tmp_path), None)
    monkeypatch.setenv("COLUMNS", str(width))
    noise.show(measure_noise(sides, Settings(), 30, 0.1))
    text = capsys.readouterr().out
    answer = "fscale: a comparison of 30 minutes would detect a change of 10%"
    assert " ".join(text.split()).startswith(answer)
    check(text, MEANT["noise"], width, "C.UTF-8")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_run_ends_with_its_rates_and_what_they_say(
    width: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(Path("today"), cells := grid((1, 2), 2, TITLES), workloads=TITLES)
    monkeypatch.setenv("COLUMNS", str(width))
    print_cells(terminal(), cells, Path("today"))
    text = capsys.readouterr().out
    check(text, ["MWCL", "MWCM", "of 8 curves up to 2 cores"], width, "C")
    assert all(name in text for name in ("tmpfs", "ext4", "xfs", "btrfs"))
    assert text.endswith("32 ok; results are in today\n")


def test_wide_terminals_have_all_in_the_row_and_narrow_ones_what_matters_most() -> None:
    columns = (Column("object"), Column("time", 1), Column("seen by", 2))
    table = Table(
        columns, [Row(["inode->i_rwsem", "7.3%", "address and stack"]), Row(["b", "", "x"])]
    )
    made = {}
    for width in (16, 30, 60):
        console = Console(width=width, color_system=None)
        with console.capture() as capture:
            console.print(table)
        made[width] = [line.rstrip() for line in capture.get().splitlines()]
    assert made[60][1] == "inode->i_rwsem  7.3%  address and stack"
    assert made[30][:3] == [
        "object          time",
        "inode->i_rwsem  7.3%",
        "   seen by address and stack",
    ]
    assert made[16][:2] == ["object", "inode->i_rwsem"]
    assert "  time 7.3%;" in made[16]


def test_the_widest_column_wraps_at_blanks() -> None:
    table = Table((Column("a"), Column("b")), [Row(["inode->i_rwsem of the directory", "x" * 10])])
    console = Console(width=30, color_system=None)
    with console.capture() as capture:
        console.print(table)
    lines = [line.rstrip() for line in capture.get().splitlines()]
    assert lines == ["a                   b", "inode->i_rwsem of   " + "x" * 10, "the directory"]
