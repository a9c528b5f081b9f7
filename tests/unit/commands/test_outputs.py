# SPDX-License-Identifier: GPL-2.0-only
"""Commands where nothing can be written, where nobody reads, and of numbers that are none."""

import contextlib
import io
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fscale import cli
from fscale.analysis.report import interactive  # noqa: F401 - imported before the fork
from fscale.commands.options.writable import directory_to_write, file_to_write, results_directory
from fscale.model import paths
from tests.support.command_lines import leaves
from tests.support.hostile import Done, good, run
from tests.support.synthetic import grid, write_run

LOG = "fxmark.log"  # it is not looked at
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="makes a full file system")


def options() -> Iterator[tuple[str, Any]]:
    """All options, each with its command's words."""
    for words, command in leaves():
        for option in command.params:
            if option.param_type_name == "option":
                yield words, option


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run `good`, and one that is half as fast."""
    root = tmp_path_factory.mktemp("results")
    good(root / "good")
    slow = grid([1, 2], 12, ["DWOM"], ["ext4"], rate=lambda key: 500.0 + key.repetition)
    write_run(root / "slow", slow, workloads=["DWOM"], filesystems=["ext4"])
    return root


SHOWING = {
    "show": ["show", "{good}"],
    "compare": ["compare", "{good}", "{good}"],
    "compare --json": ["compare", "{good}", "{good}", "--json"],
    "compare --mail": ["compare", "{good}", "{good}", "--mail", "-"],
    "export": ["export", "{good}", "--format", "json"],
    "locks": ["locks", "{good}"],
    "locks --json": ["locks", "{good}", "--json"],
    "list": ["list", "workloads"],
    "list --json": ["list", "filesystems", "--json"],
    "schema": ["schema", "run"],
    "report": ["report", "{good}", "--output", "{scratch}/report"],
    "help": ["compare", "--help"],
}


def named(words: list[str], results: Path, scratch: Path) -> list[str]:
    return [w.format(good=results / "good", slow=results / "slow", scratch=scratch) for w in words]


@pytest.mark.parametrize("name", SHOWING)
def test_a_reader_that_has_gone_changes_no_exit_code(
    name: str, results: Path, tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = run(tmp_path, *named(SHOWING[name], results, tmp_path), stdout=writing)
    os.close(writing)
    assert (done.code, done.error) == (0, "")


def test_a_regression_is_one_whoever_reads_it(results: Path, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    words = ["compare", str(results / "good"), str(results / "slow")]
    done = [run(tmp_path, *words), run(tmp_path, *words, stdout=writing)]
    os.close(writing)
    assert [(d.code, d.error) for d in done] == [(1, ""), (1, "")]


def test_the_interpreter_ends_as_quietly(results: Path) -> None:
    """What it would flush at its end fails no more; `run` of this test does not get there."""
    fscale = str(paths.ROOT / "bin" / "fscale")
    text = 'set -o pipefail; "$0" schema run | true; code=$?; "$0" schema run >/dev/full; '
    done = subprocess.run(
        ["bash", "-c", f'{text} echo "$code $?"; "$0" schema run >&-; echo $?', fscale],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["0", "2", "0"]
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("name", SHOWING)
def test_a_terminal_that_is_full_is_said(name: str, results: Path, tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = run(tmp_path, *named(SHOWING[name], results, tmp_path), stdout=full.fileno())
    refused(done, "standard output")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_other_letters_are_no_error(
    encoding: str, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path(tmp_path / "shown").open("w", encoding=encoding) as shown:
        done = run(tmp_path, "show", results / "good", stdout=shown.fileno(), encoding=encoding)
    assert (done.code, done.error) == (0, "")
    assert (tmp_path / "shown").stat().st_size > 0


WRITING = {
    "report": ["report", "{good}", "--output", "{place}"],
    "reports": ["report", "{good}", "{slow}", "--output", "{place}"],
    "history report": ["history", "report", "{good}", "--output", "{place}"],
    "flames": ["locks", "{good}", "--flames", "{place}"],
    "import": ["import", "fxmark", "{log}", "--started", "2026-01-08", "--output", "{place}"],
    "run": ["run", "smoke", "--fs", "tmpfs", "--output", "{place}"],
    "ab": ["ab", "--base", "tmpfs", "--new", "tmpfs", "--output", "{place}"],
    "ab guests": ["ab", "--base", "kernel:6.1", "--new", "kernel:6.1", "--output", "{place}"],
    "noise": ["noise", "--fs", "tmpfs", "--output", "{place}"],
    "gate": ["gate", "--base", "ext4", "--new", "ext4", "--output", "{place}"],
    "simulate": ["simulate", "--output", "{place}"],
    "commute": ["commute", "--output", "{place}"],
    "vm run": ["vm", "run", "smoke", "--output", "{place}"],
    "vm crash": ["vm", "crash", "--fs", "ext4", "--output", "{place}"],
    "vm exec": ["vm", "exec", "--output", "{place}", "--", "true"],
}
RUN = "{scratch}/r"
FILES = {
    "export": ["export", "{good}", "--format", "csv", "--output", "{place}"],
    "predict": ["predict", "{good}", "--simulated", "{slow}", "--output", "{place}"],
    "locks --markdown": ["locks", "{good}", "--markdown", "{place}"],
    **{
        f"{words[0]} --{form}": [*words, f"--{form}", "{place}"]
        for words, forms in (
            (["compare", "{good}", "{slow}"], "junit markdown mail html ktap kcidb"),
            (["run", "smoke", "--fs", "tmpfs", "--output", RUN], "junit ktap"),
            (
                ["ab", "--base", "tmpfs", "--new", "tmpfs", "--output", RUN],
                "junit markdown mail html ktap kcidb",
            ),
            (["gate", "--base", "ext4", "--new", "ext4", "--output", RUN], "junit markdown"),
        )
        for form in forms.split()
    },
}


def a_dangling_link(root: Path) -> Path:
    (root / "link").symlink_to("/nonexistent/place")
    return root / "link"


def a_file(root: Path) -> Path:
    (root / "file").write_text("mine")
    return root / "file"


def below_a_file(root: Path) -> Path:
    return a_file(root) / "below"


def a_directory(root: Path) -> Path:
    (root / "directory").mkdir()
    return root / "directory"


def nowhere(root: Path) -> Path:
    return root / "nowhere" / "file"


def no_space(root: Path) -> Path:
    return Path("/dev/full")


BAD_DIRECTORIES = [a_dangling_link, a_file, below_a_file, no_space]
BAD_FILES = [a_dangling_link, a_directory, below_a_file, nowhere, no_space]


def ended(*words: object) -> Done:
    """How a command ends that does not get further than to its options."""
    out, err = io.StringIO(), io.StringIO()
    code: object = None
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("sys.argv", ["fscale", *map(str, words)])
        try:
            cli.main()
        except SystemExit as end:
            code = end.code
    return Done(code if isinstance(code, int) else None, out.getvalue(), err.getvalue(), 0)


def refused(done: Done, *words: object) -> None:
    """A sentence with these words, and nothing else."""
    assert done.code == 2, done.error
    assert "Traceback" not in done.error
    assert done.error.startswith("fscale: ") and done.error.count("\n") == 1
    assert all(str(word) in done.error for word in words)


@pytest.mark.parametrize("place", BAD_DIRECTORIES, ids=lambda place: place.__name__)
@pytest.mark.parametrize("name", WRITING)
def test_a_directory_that_is_none_is_refused_at_once(
    name: str, place: Callable[[Path], Path], results: Path, tmp_path: Path
) -> None:
    bad = place(tmp_path)
    words = [w.replace("{place}", str(bad)).replace("{log}", LOG) for w in WRITING[name]]
    refused(ended(*named(words, results, tmp_path)), bad, words[words.index(str(bad)) - 1])
    if place is a_file:
        assert bad.read_text() == "mine"


@pytest.mark.parametrize("place", BAD_FILES, ids=lambda place: place.__name__)
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_none_is_refused_at_once(
    name: str, place: Callable[[Path], Path], results: Path, tmp_path: Path
) -> None:
    bad = place(tmp_path)
    words = [w.replace("{place}", str(bad)) for w in FILES[name]]
    refused(ended(*named(words, results, tmp_path)), bad, words[words.index(str(bad)) - 1])
    assert not (tmp_path / "r").exists()


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A file system that has no room."""
    place = tmp_path / "full"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "full", place], check=True)
    with contextlib.suppress(OSError):
        (place / "fill").write_bytes(bytes(1 << 16))
    yield place
    subprocess.run(["umount", place], check=True)


@ROOT
@pytest.mark.root
@pytest.mark.parametrize("name", [*WRITING, *FILES])
def test_a_full_file_system_is_said_at_once(
    name: str, full: Path, results: Path, tmp_path: Path
) -> None:
    bad = full / "new"
    words = [w.replace("{place}", str(bad)).replace("{log}", LOG) for w in (WRITING | FILES)[name]]
    refused(ended(*named(words, results, tmp_path)), bad, "full")


@ROOT
@pytest.mark.root
@pytest.mark.parametrize(
    "words", [["add", "{good}"], ["rebuild", "{good}"], ["tag", "{good}", "t"]]
)
def test_an_index_without_room_is_said(
    words: list[str], full: Path, results: Path, tmp_path: Path
) -> None:
    done = ended("history", *named(words, results, tmp_path), "--db", full / "new" / "db")
    refused(done)


@pytest.mark.parametrize("words", [["add", "{good}"], ["rebuild", "{good}"], ["list"]])
@pytest.mark.parametrize("place", [a_directory, below_a_file], ids=lambda place: place.__name__)
def test_an_index_that_is_none_is_said(
    words: list[str], place: Callable[[Path], Path], results: Path, tmp_path: Path
) -> None:
    done = ended("history", *named(words, results, tmp_path), "--db", place(tmp_path))
    refused(done)


def test_no_device_is_replaced_by_an_index(results: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    refused(ended("history", "rebuild", results, "--db", fifo), fifo)
    assert stat.S_ISFIFO(fifo.stat().st_mode)


@pytest.mark.parametrize("option", ["--output", "--junit"])
def test_a_name_that_splits_messages_is_refused(option: str, results: Path, tmp_path: Path) -> None:
    words = {"--output": ["report", "{good}"], "--junit": ["compare", "{good}", "{good}"]}[option]
    done = ended(*named(words, results, tmp_path), option, tmp_path / "a\nb")
    assert done.code == 2
    assert "its name contains a control character" in done.error


LOOKED_AT = {
    "--output": (directory_to_write, file_to_write, results_directory),
    "--flames": (directory_to_write,),
    **dict.fromkeys(["--junit", "--ktap", "--html", "--markdown", "--mail"], (file_to_write,)),
}


WRITTEN_IN_A_GUEST = ["fscale vm run --junit", "fscale vm run --ktap"]


def test_every_path_that_is_written_is_looked_at() -> None:
    written = [(words, option) for words, option in options() if option.opts[0] in LOOKED_AT]
    forgotten = [
        f"{words} {option.opts[0]}"
        for words, option in written
        # typer wraps a callback
        if getattr(option.callback, "__name__", "")
        not in [one.__name__ for one in LOOKED_AT[option.opts[0]]]
    ]
    assert len(written) >= 30 and forgotten == WRITTEN_IN_A_GUEST


def test_every_number_has_bounds() -> None:
    """An option with both is neither infinite nor NaN."""
    numbers = [
        (f"{words} {option.opts[0]}", option)
        for words, option in options()
        if re.search("int|float", str(option.type_descriptor.annotation))
    ]
    boundless = [name for name, option in numbers if option.min is None or option.max is None]
    assert len(numbers) > 50 and not boundless
    assert all(option.min >= 0 for _, option in numbers)


NUMBERS = ["inf", "-inf", "nan", "-1", "1e400", "1e300", "99999999999999999999", "two", ""]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(
    "words",
    [
        ["run", "smoke", "--dry-run", "--output", "{scratch}/r", "--duration"],
        ["run", "smoke", "--dry-run", "--output", "{scratch}/r", "--repetitions"],
        ["run", "smoke", "--dry-run", "--output", "{scratch}/r", "--seed"],
        ["run", "smoke", "--dry-run", "--output", "{scratch}/r", "--wait"],
        ["run", "smoke", "--dry-run", "--output", "{scratch}/r", "--cores"],
        ["run", "smoke", "--dry-run", "--output", "{scratch}/r", "--partitions"],
        ["ab", "--base", "tmpfs", "--new", "tmpfs", "--output", "{scratch}/r", "--max-minutes"],
        ["compare", "{good}", "{slow}", "--margin"],
        ["compare", "{good}", "{slow}", "--fdr"],
        ["compare", "{good}", "{slow}", "--seed"],
        ["noise", "--fs", "tmpfs", "--output", "{scratch}/r", "--budget"],
        ["simulate", "--output", "{scratch}/r", "--seeds"],
        ["commute", "--output", "{scratch}/r", "--each"],
        ["vm", "run", "smoke", "--output", "{scratch}/r", "--timeout"],
        ["history", "trend", "--margin"],
        ["restore", "--wait"],
    ],
    ids=lambda words: f"{words[0]} {words[-1]}",
)
def test_what_a_number_cannot_be_is_refused(
    words: list[str], number: str, results: Path, tmp_path: Path
) -> None:
    *rest, option = named(words, results, tmp_path)
    done = ended(*rest, f"{option}={number}")
    assert done.code == 2
    assert "Traceback" not in done.error
    assert not (tmp_path / "r").exists()


KEYS = ["duration", "warmup", "min_window", "interval", "setup_limit", "margin"]
COUNTS = ["repetitions", "profile_repetitions", "max_stock"]


@pytest.mark.parametrize("number", ["inf", "-inf", "nan", "1e400", "1e300", "-1", '"two"'])
@pytest.mark.parametrize("key", KEYS + COUNTS)
def test_nor_can_it_be_a_key_of_the_suite(key: str, number: str, tmp_path: Path) -> None:
    words = ["run", "smoke", "--fs", "tmpfs", "--dry-run", "--output", tmp_path / "r"]
    refused(ended(*words, "--set", f"{key}={number}"), key)


@pytest.mark.parametrize("words", [["show"], ["report"], ["locks"], ["history", "add"]])
def test_a_name_that_is_not_utf8_is_refused(words: list[str], tmp_path: Path) -> None:
    refused(ended(*words, os.fsdecode(b"/tmp/\xff")), "UTF-8")


@pytest.mark.parametrize(
    "words",
    [["--bose", "ext4"], ["--max-minutes", "inf"], ["--output", "/dev/full"], ["--output", "x"]],
)
def test_wrong_use_is_no_bad_commit(words: list[str]) -> None:
    assert ended("bisect", *words).code == 128


def test_two_outputs_have_two_files(results: Path, tmp_path: Path) -> None:
    sides = ["compare", results / "good", results / "slow"]
    twice = tmp_path / "out"
    refused(ended(*sides, "--junit", twice, "--html", twice), "--junit", "--html")
    refused(ended(*sides, "--json", "--mail", "-"), "--json", "--mail")
    assert not twice.exists()


FILES_OF_A_RUN = ["run.json", "cells", "cells/0", "profiles", "tags.json"]


@pytest.mark.parametrize(
    "words",
    [["show", "{run}"], ["report", "{run}"], ["locks", "{run}"], ["compare", "{run}", "{run}"]],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("file", FILES_OF_A_RUN[:2])
def test_an_empty_file_in_the_place_of_another_is_said(
    words: list[str], file: str, tmp_path: Path
) -> None:
    directory = good(tmp_path / "own")
    if (directory / file).is_dir():
        (directory / file).rename(directory / "away")
    (directory / file).write_bytes(b"")
    refused(run(tmp_path, *(w.format(run=directory) for w in words)))


@ROOT
def test_names_are_read_where_the_user_may_not_search(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    code = (
        "import os; from pathlib import Path; from fscale.model import catalogue, filetest\n"
        "from fscale.runner.profilers import base\n"
        f"os.chdir({str(closed)!r}); os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "assert catalogue.split_names('MWCL,DRBL') == ['MWCL', 'DRBL']\n"
        "assert catalogue.split_names('a.toml,b') == ['a.toml', 'b']\n"
        "assert catalogue.split_filesystems('ext4,tmpfs') == ['ext4', 'tmpfs']\n"
        "assert not (filetest.is_file('quick') or filetest.is_dir(Path('quick')))\n"
        "assert not filetest.exists('quick')\n"
        "base.TRACEFS = Path('tracing')\n"
        "base.needs_tracefs()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=paths.ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@ROOT
@pytest.mark.parametrize(
    "words",
    [
        ("list", "workloads"),
        ("doctor",),
        ("run", "quick", "--fs", "tmpfs,ext4:mkfs=-O ^has_journal", "--dry-run", "--output={run}"),
        ("run", "quick", "--dir", "{here}", "--workload=MWCL", "--dry-run", "--output={run}"),
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_commands_run_where_the_user_may_not_search(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Root without the capabilities by which it reads everything, in another user's directory."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    os.chown(closed, 65534, 65534)
    said = [word.format(here=tmp_path, run=tmp_path / "run") for word in words]
    done = subprocess.run(
        [
            *("setpriv", "--bounding-set=-dac_override,-dac_read_search"),
            *(sys.executable, "-P", "-m", "fscale", *said),
        ],
        cwd=closed,
        env=os.environ | {"PYTHONPATH": str(paths.ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
