# SPDX-License-Identifier: GPL-2.0-only
"""`fscale show`: what a terminal gets, however narrow, dumb or colourless it is."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

from fscale.cli import app
from fscale.model import paths
from fscale.model.errors import Exit, FscaleError
from tests.support.synthetic import PAPER, cell, grid, machine, write_run

pytestmark = pytest.mark.slow

FILESYSTEMS = ("tmpfs", "ext4", "xfs", "btrfs")
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
FRAME = "\u2500\u2502\u250c\u2510\u2514\u2518\u251c\u2524\u252c\u2534"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("run")
    return write_run(directory, grid((1, 2, 4, 8, 16), 3, PAPER, FILESYSTEMS), cpus=16)


def show(run: Path, *more: str, columns: int = 80, **environment: str) -> str:
    given = {"COLUMNS": str(columns), "LC_ALL": "C.UTF-8", "TERM": "xterm", **environment}
    done = CliRunner(env=given).invoke(app, ["show", str(run), *more], catch_exceptions=False)
    assert done.exit_code == Exit.GOOD, done.output
    return done.output


def in_a_terminal(run: Path, *more: str, columns: int = 80, **environment: str) -> str:
    """What a terminal of 24 lines gets."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    kept = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
    given = kept | {"PYTHONPATH": str(paths.ROOT), "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
    argv = [sys.executable, "-m", "fscale", "show", str(run), *more]
    with subprocess.Popen(argv, stdout=theirs, stdin=theirs, env=given | environment) as process:
        os.close(theirs)
        said = b""
        try:
            while part := os.read(ours, 1 << 16):
                said += part
        except OSError:  # the other end is closed
            pass
        assert process.wait() == Exit.GOOD
    os.close(ours)
    return said.decode().replace("\r\n", "\n")


def widest(text: str) -> int:
    return max(cell_len(ESCAPE.sub("", line)) for line in text.splitlines())


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 132, 200])
@pytest.mark.parametrize("more", [(), ("--workload", "MWCL"), ("--workload", "MWCL,DRBL")])
def test_no_line_is_longer_than_the_terminal(
    run: Path, columns: int, more: tuple[str, ...]
) -> None:
    assert widest(show(run, *more, columns=columns)) <= columns


def test_plots_stand_beside_one_another_where_there_is_room(run: Path) -> None:
    def titles(columns: int) -> int:
        first = next(s for s in show(run, columns=columns).splitlines() if s.startswith("DRBL "))
        return first.count("made-up title of")

    assert [titles(columns) for columns in (40, 80, 120)] == [1, 2, 3]


def test_every_workload_has_a_plot_and_a_row(run: Path) -> None:
    lines = show(run).splitlines()
    rows = lines[next(i for i, s in enumerate(lines) if s.startswith("workload ")) + 1 :]
    assert [row.split()[0] for row in rows[: len(PAPER)]] != []
    assert {row.split()[0] for row in rows[: len(PAPER)]} == set(PAPER)
    for name in PAPER:
        assert any(f"{name}  made-up title of {name}" in line for line in lines)


def test_the_matrix_ends_what_a_terminal_of_24_lines_shows(run: Path) -> None:
    last = show(run).splitlines()[-22:]
    assert last[0].startswith("workload ")
    assert last[-1].endswith("loses much")


def test_a_file_system_without_a_figure_is_a_dot_and_an_early_end_a_dagger(tmp_path: Path) -> None:
    cells = grid((1, 2, 4), 1, ("DRBL", "MWCL"), ("ext4", "xfs"))
    left = [
        c
        for c in cells
        if (c.key.workload, c.key.filesystem) != ("DRBL", "xfs")
        and (c.key.workload, c.key.filesystem, c.key.cores) != ("MWCL", "ext4", 4)
    ]
    lines = show(write_run(tmp_path, left, cpus=4)).splitlines()
    (drbl,) = (line for line in lines if re.match(r"DRBL +\d", line))
    (mwcl,) = (line for line in lines if re.match(r"MWCL +\d", line))
    assert drbl.rstrip().endswith("·")
    assert mwcl.count("†") == 1


@pytest.mark.parametrize(
    ("rates", "sign"),
    [
        ((1000, 2000, 4000), "++"),
        ((1000, 1400, 2000), "+"),
        ((1000, 1000, 1000), "="),
        ((1000, 700, 500), "-"),
        ((1000, 500, 250), "--"),
    ],
)
def test_the_sign_says_how_it_scales(tmp_path: Path, rates: tuple[int, ...], sign: str) -> None:
    by_cores = dict(zip((1, 2, 4), rates, strict=True))
    made = grid(by_cores, 1, ("DRBL", "MWCL"), ("ext4",), rate=lambda k: by_cores[k.cores])
    output = show(write_run(tmp_path, made, cpus=4))
    rows = [line.split() for line in output.splitlines() if re.match(r"(DRBL|MWCL) +\d", line)]
    assert [row[-1] for row in rows] == [sign, sign]


def test_one_workload_has_its_figures(run: Path) -> None:
    output = show(run, "--workload", "MWCL", "--fs", "ext4,xfs")
    rows = [line for line in output.splitlines() if re.match(r"\d+ +\d", line)]
    assert [row.split()[0] for row in rows] == ["1", "2", "4", "8", "16"]
    assert all(row.count("%") == 2 for row in rows)
    assert "tmpfs" not in output
    assert "half the spread" in output


def test_marks_differ_without_colours(run: Path) -> None:
    legend = show(run).splitlines()[1]
    marks = re.findall(r"(\S) (\S+)", legend)
    assert [name for _, name in marks] == list(FILESYSTEMS)
    assert len({mark for mark, _ in marks}) == len(FILESYSTEMS)


def test_a_mark_is_on_the_line_of_its_name(tmp_path: Path) -> None:
    names = [f"fs-{'x' * length}" for length in range(1, 13)]
    cells = grid((1, 2), 1, ("DRBL",), names)
    legend = show(write_run(tmp_path, cells, filesystems=names)).split("DRBL")[0].splitlines()[1:]
    assert len(legend) > 1
    found = [pair for line in legend for pair in re.findall(r"(\S) (fs-\S+)  ", line)]
    assert [name for _, name in found] == names


def test_many_file_systems_have_a_mark_each_and_tables_below_one_another(tmp_path: Path) -> None:
    names = [f"fs-{i}-with-a-name-that-is-long" for i in range(12)]
    cells = grid((1, 2), 1, ("DRBL", "MWCL"), names)
    output = show(write_run(tmp_path, cells, filesystems=names))
    assert widest(output) <= 80
    assert output.count("\nworkload ") == 6
    words = " ".join(output.splitlines()[1:8]).split()
    marks = [words[words.index(name) - 1] for name in names]
    assert len(set(marks)) == len(names)


def test_sides_of_a_comparison_are_told_apart(tmp_path: Path) -> None:
    cells = [
        cell(made.key.model_copy(update={"side": side}), 1000 * made.key.cores)
        for side in "AB"
        for made in grid((1, 2), 2, ("DRBL",), ("ext4",))
    ]
    legend = show(write_run(tmp_path, cells)).splitlines()[1]
    marks = re.findall(r"(\S) ext4.\((A|B)\)", legend)
    assert [side for _, side in marks] == ["A", "B"]
    assert marks[0][0] != marks[1][0]


@pytest.mark.parametrize(
    "environment",
    [
        {"TERM": "dumb"},
        {"LC_ALL": "C"},
        {"LC_ALL": "POSIX"},
        {"LC_ALL": "", "LC_CTYPE": "", "LANG": ""},
        {"LC_ALL": "de_DE.ISO-8859-1"},
    ],
)
def test_ascii_alone_where_there_is_nothing_else(run: Path, environment: dict[str, str]) -> None:
    output = show(run, **environment)
    assert output.isascii()
    assert show(run, "--ascii") == output
    assert not show(run).isascii()


def test_names_in_other_letters_keep_their_columns(tmp_path: Path) -> None:
    names = ("\u30d5\u30a1\u30a4\u30eb", "d\u00e9j\u00e0", "ext4")
    cells = grid((1, 2), 1, ("DRBL", "MWCL"), names)
    directory = write_run(tmp_path, cells, filesystems=names)
    plain, full = show(directory, "--ascii"), show(directory)
    assert plain.isascii()
    assert [cell_len(a) for a in plain.splitlines()] == [cell_len(b) for b in full.splitlines()]


def test_a_terminal_has_colours_unless_it_is_told_otherwise(run: Path) -> None:
    few = ("--workload", "MWCL", "--fs", "ext4,xfs")
    assert "\x1b[3" in in_a_terminal(run, *few)
    assert "\x1b" not in in_a_terminal(run, *few, TERM="dumb")
    assert not re.search(r"\x1b\[[0-9;]*(3|4|9|10)\d", in_a_terminal(run, *few, NO_COLOR="1"))
    assert "\x1b" not in show(run, *few)


def test_a_terminal_s_size_is_honoured(run: Path) -> None:
    one = in_a_terminal(run, "--workload", "MWCL", "--fs", "ext4", columns=80)
    assert 60 < widest(one) <= 80
    assert len(one.splitlines()) <= 23
    wide = in_a_terminal(run, "--workload", "MWCL", "--fs", "ext4", columns=100)
    assert 80 < widest(wide) <= 100


def test_one_core_count_has_figures_and_no_plot(tmp_path: Path) -> None:
    output = show(write_run(tmp_path, grid((1,), 1, ("DRBL", "MWCL"), ("ext4",))))
    assert "median per second at 1 core" in output
    assert not set(FRAME) & set(output)


def test_several_media_have_a_heading_each(tmp_path: Path) -> None:
    cells = grid((1, 2), 1, ("DRBL",), ("ext4",), ("ram", "disk"))
    output = show(write_run(tmp_path, cells))
    assert "disk medium, buffered I/O" in output
    assert "ram medium, buffered I/O" in output


def test_what_is_doubtful_is_said(tmp_path: Path) -> None:
    cells = grid((1, 2), 2, ("DRBL",), ("ext4",))
    cells[0] = cells[0].model_copy(update={"disturbed": "others used 0.4 CPU"})
    cells[1] = cells[1].model_copy(update={"status": "error", "reason": "no space"})
    simulated = machine(2).model_copy(update={"guest": {"accelerator": "simulated", "host": "h"}})
    run = write_run(tmp_path, cells, state="running", machine=simulated)
    output = show(run)
    assert "SIMULATED" in output
    assert "the run is unfinished" in output
    assert "1 cell without a figure" in output
    assert "1 repetition disturbed" in output
    assert re.search(r"^1 .*!$", output, re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ext4:mount=commit={1,5}", {"ext4:mount=commit=1", "ext4:mount=commit=5"}),
        ("./mine.toml,ext4:mkfs=-b 1024", {"mine", "ext4:mkfs=-b_1024"}),
    ],
)
def test_file_systems_are_chosen_as_they_were_given(
    tmp_path: Path, text: str, shown: set[str]
) -> None:
    names = ["ext4:mount=commit=1", "ext4:mount=commit=5", "ext4:mkfs=-b_1024", "mine"]
    cells = grid((1, 2), 1, ["DWAL"], names)
    output = show(write_run(tmp_path, cells, filesystems=names), "--fs", text, columns=200)
    assert {name for name in names if name in output} == shown


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--workload", "MWCM_"), "the run has no workload MWCM_; did you mean MWCM"),
        (("--fs", "ext3"), "the run has no file system ext3; did you mean ext4"),
        (("--fs", ""), "no selected cell"),
    ],
)
def test_a_wrong_name_is_an_error(run: Path, more: tuple[str, ...], said: str) -> None:
    with pytest.raises(FscaleError, match=re.escape(said)):
        show(run, *more)


def test_what_is_no_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FscaleError, match="is not a results directory"):
        show(tmp_path)
    (made,) = grid((1,), 1, ("DRBL",), ("ext4",))
    failed = made.model_copy(update={"status": "error", "reason": "no space"})
    with pytest.raises(FscaleError, match="no selected cell"):
        show(write_run(tmp_path, [failed], workloads=("DRBL",)))


def test_a_stranger_s_names_do_not_steer_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J[bold]x"
    cells = grid((1, 2), 1, ("DRBL",), ("ext4",))
    there = machine(2).model_copy(update={"kernel": evil, "hostname": evil})
    output = show(write_run(tmp_path, cells, id=evil, machine=there))
    assert "\x1b" not in output
    assert "\x07" not in output
    assert "[bold]x" in output
