# SPDX-License-Identifier: GPL-2.0-only
"""What can be done with imported runs, and what they lack."""

import json
from pathlib import Path

import pandas as pd
import pytest

from fscale.analysis.formats.run import FORMATS
from fscale.analysis.imports.reading import drop_counts
from fscale.analysis.imports.run import Stated
from fscale.analysis.reader import load
from fscale.analysis.report import build
from fscale.model.errors import FscaleError
from fscale.model.facts import collect_facts, find_rule
from tests.support.exports import exported
from tests.support.hostile import Done
from tests.support.hostile import run as fscale
from tests.support.imports import FILES, PROGRAMS, read
from tests.support.pages import text_of

SAMPLES = {
    "fio": ["fio-loop1.json", "fio-loop2.json"],
    "fxmark": ["fxmark.log"],
    "hyperfine": ["hyperfine-threads.json"],
    "perf-bench": ["perf-pipe.txt", "perf-memcpy.txt"],
    "sysbench": ["sysbench-cpu-1.txt", "sysbench-cpu-2.txt"],
    "will-it-scale": ["getppid1.csv", "open1.csv"],
}


def imported(output: Path, program: str, *options: str, files: list[Path] | None = None) -> Done:
    files = files or [FILES / name for name in SAMPLES[program]]
    if program != "fio":
        options += ("--started", "2026-11-29")
    output.parent.mkdir(exist_ok=True)
    return fscale(output.parent, "import", program, *files, "--output", output, *options)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_run_of_each_program_is_shown_drawn_and_exported(program: str, tmp_path: Path) -> None:
    done = imported(tmp_path / "run", program)
    assert done.code == 0, done.error
    for words in (["show"], ["report"], *(["export", "--format", form] for form in FORMATS)):
        done = fscale(tmp_path, words[0], tmp_path / "run", *words[1:])
        assert done.code == 0, done.error
    assert load(tmp_path / "run").scored


def repeated(directory: Path, factor: float, *options: str, block: str = "4k") -> Path:
    """A run of hyperfine, or with `block` other options of one command, twelve times."""
    name = "results" if block == "4k" else block
    times = [factor * (0.1 + n / 10_000) for n in range(12)]
    command = f"dd bs={block}" if block != "4k" else "dd bs=4k"
    result = {"command": command, "mean": 0.1, "times": times, "parameters": {"bs": block}}
    directory.mkdir()
    (directory / f"{name}.json").write_text(json.dumps({"results": [result]}))
    done = imported(directory / "run", "hyperfine", *options, files=[directory / f"{name}.json"])
    assert done.code == 0, done.error
    return directory / "run"


def test_runs_of_one_machine_are_compared(tmp_path: Path) -> None:
    base = repeated(tmp_path / "a", 1, "--host", "vm")
    new = repeated(tmp_path / "b", 1.5, "--host", "vm")
    done = fscale(tmp_path, "compare", base, new)
    assert (done.code, "1 slower" in done.output) == (1, True)
    assert fscale(tmp_path, "compare", base, base).code == 0


def test_there_is_no_verdict_across_unknown_machines(tmp_path: Path) -> None:
    known = repeated(tmp_path / "a", 1, "--host", "vm")
    unknown = repeated(tmp_path / "b", 1.5)
    for sides, who in (((known, unknown), "NEW"), ((unknown, unknown), "BASE and NEW")):
        done = fscale(tmp_path, "compare", *sides)
        assert done.code == 2
        assert f"the machine of {who} is not known" in done.error
        allowed = fscale(tmp_path, "compare", *sides, "--allow-different", "machine.hosts")
        assert allowed.code == (1 if who == "NEW" else 0)
        assert "is not known: a difference may be that of two machines" in " ".join(
            allowed.output.split()
        )


def test_options_that_differ_are_not_compared(tmp_path: Path) -> None:
    base = repeated(tmp_path / "a", 1, "--host", "vm")
    new = repeated(tmp_path / "b", 1, "--host", "vm", block="64k")
    done = fscale(tmp_path, "compare", base, new)
    assert done.code == 2
    assert "loads.dd_bs_bs: `bs=4k` and `bs=64k`" in done.error
    assert fscale(tmp_path, "compare", base, new, "--allow-different", "loads").code == 0


def test_a_history_has_figures_of_known_machines(tmp_path: Path) -> None:
    db = tmp_path / "db"
    known, unknown = repeated(tmp_path / "a", 1, "--host", "vm"), repeated(tmp_path / "b", 1)
    assert fscale(tmp_path, "history", "add", known, "--db", db).code == 0
    done = fscale(tmp_path, "history", "add", unknown, "--db", db)
    assert done.code == 2
    assert "import it again with --host NAME" in done.error
    assert "dd_bs_bs" in fscale(tmp_path, "history", "trend", "--db", db).output


def test_the_command_says_what_the_files_lack(tmp_path: Path) -> None:
    done = imported(tmp_path / "run", "fio")
    assert "run: 2 cells (2 ok) of 2 points" in done.output
    assert "note: the files do not name the machine" in done.error
    assert "note: each point was measured once, so there is no spread" in done.error
    known = imported(tmp_path / "known", "fio", "--host", "vm", "--fs", "ext4", "--media", "nvme")
    assert "the machine" not in known.error
    run = load(tmp_path / "known")
    assert run.run.machine.identity == "vm (unknown CPUs)"
    assert {(c.key.filesystem, c.key.medium) for c in run.cells} == {("ext4", "nvme")}


def test_a_time_is_needed(tmp_path: Path) -> None:
    file = FILES / "hyperfine-sleeps.json"
    done = fscale(tmp_path, "import", "hyperfine", file, "--output", tmp_path / "run")
    assert done.code == 2
    assert "does not tell when it was measured; add --started, such as --started 20" in done.error
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        (Stated(host="vm"), "--host is not needed: the files name testhost"),
        (Stated(filesystem="xfs"), "--fs is not needed: the files name ext4"),
        (Stated(medium="nvme"), "--media is not needed: the files name ram"),
    ],
)
def test_what_the_files_tell_cannot_be_stated(stated: Stated, said: str) -> None:
    with pytest.raises(FscaleError, match=said):
        read("fxmark", [FILES / "fxmark.log"], stated)


@pytest.mark.parametrize("name", ["", "a/b", "a\nb", "x" * 61])
@pytest.mark.parametrize("what", ["host", "filesystem", "medium"])
def test_a_name_is_one(what: str, name: str) -> None:
    with pytest.raises(FscaleError, match="is not a name"):
        read("fio", [FILES / "fio-loop1.json"], Stated(**{what: name}))


def test_a_file_system_is_not_that_of_controls() -> None:
    with pytest.raises(FscaleError, match="--fs 'none' is not a name"):
        read("fio", [FILES / "fio-loop1.json"], Stated(filesystem="none"))


@pytest.mark.slow
def test_the_report_says_what_is_not_known(tmp_path: Path) -> None:
    assert imported(tmp_path / "run", "fio").code == 0
    words = text_of(build(tmp_path / "run"))
    assert "imported from fio's output" in words
    assert "job1: bs=4k rw=randwrite size=4M" in words
    assert "the cores are fio's jobs" in words
    assert "0 CPUs" not in words
    assert "0 sockets" not in words
    assert "unknown CPUs" in words


def test_an_export_has_the_latencies(tmp_path: Path) -> None:
    assert imported(tmp_path / "run", "fio").code == 0
    (tmp_path / "out.csv").write_text(exported(load(tmp_path / "run"), "csv"))
    frame = pd.read_csv(tmp_path / "out.csv")
    assert list(frame.latency_p50_seconds) == pytest.approx([1048e-9, 1192e-9])
    assert frame.imported.str.startswith("fio's output").all()


def test_common_options_are_facts() -> None:
    run = read("fio", [FILES / "fio-loop1.json"]).run
    assert collect_facts(run)["loads.job1"] == ["bs=4k", "rw=randwrite", "size=4M"]
    assert find_rule("loads.job1").on_compare == "refuse"


@pytest.mark.parametrize(
    ("counted", "names"),
    [
        ([("read-1", 1), ("read-2", 2)], {"read-1": "read", "read-2": "read"}),
        ([("w1", 1), ("w16", 16)], {"w1": "w", "w16": "w"}),
        ([("a_1", 1), ("b_2", 2)], {"a_1": "a_1", "b_2": "b_2"}),
        ([("job1", 1), ("job1", 2)], {"job1": "job1"}),
        ([("1", 1), ("2", 2)], {"1": "1", "2": "2"}),
        ([("r11", 1), ("r12", 2)], {"r11": "r11", "r12": "r12"}),
    ],
)
def test_counts_at_the_end_of_names(counted: list[tuple[str, int]], names: dict[str, str]) -> None:
    assert drop_counts(counted) == names
