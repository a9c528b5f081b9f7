# SPDX-License-Identifier: GPL-2.0-only
"""The engine for Slurm, with programs in place of Slurm's: what it asks them, and what it believes.

`python -m tests.cluster` tries it with a real Slurm.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from fscale.cli import app
from fscale.farm import jobs, slurm
from fscale.farm.answer import Answer
from fscale.farm.engine import open_engine
from fscale.farm.objects import Objects
from fscale.farm.task import Task
from fscale.model.errors import Exit, FscaleError, MissingTool
from fscale.model.results import CellKey
from fscale.system import environment, executor
from tests.support.farm import cell, content, keys, task
from tests.support.files import write_program

# Each takes what a call is to do from numbered files: states.N is what the N-th squeue prints, the
# last one from then on, and directory.N what the jobs of the N-th sbatch store.
SBATCH = """
number=$(($(cat calls 2>/dev/null || echo 0) + 1))
echo "$number" > calls
printf '%s\\n' "$@" > "sbatch.$number"
if [ -e "full.$number" ]; then
    echo 'sbatch: error: Slurm temporarily unable to accept job' >&2
    exit 1
fi
for last; do :; done
[ ! -d "directory.$number" ] || cp -a "directory.$number/." "$last"
echo "$((99 + number))"
"""
SQUEUE = """
[ "$SLURM_BITSTR_LEN" = 0 ] || exit 1
number=$(($(cat asked 2>/dev/null || echo 0) + 1))
echo "$number" > asked
[ ! -e "down.$number" ] || { echo 'Unable to contact slurm controller' >&2; exit 1; }
while [ ! -e "states.$number" ]; do number=$((number - 1)); done
cat "states.$number"
"""
SCONTROL = 'echo "MaxArraySize = 1001"; echo "MaxJobCount = 10000"'
SINFO = "printf 'all*|2|idle\\nall*|1|down*\\nslow|7|mix\\nslow|1|drain\\n'"
SCANCEL = "printf '%s\\n' \"$@\" > cancelled; printf '100_0|CANCELLED|15|n1\\n' > states.1"
FIRST, SECOND = keys(2)


class Fake:
    """The programs, in a directory, and the engine's current directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.said: list[str] = []
        for name, body in {
            "sbatch": SBATCH,
            "squeue": SQUEUE,
            "scontrol": SCONTROL,
            "sinfo": SINFO,
            "scancel": SCANCEL,
        }.items():
            self.program(name, body)

    def program(self, name: str, body: str) -> None:
        path = self.directory / name
        write_program(path, f"#!/bin/sh\ncd {self.directory} || exit 9\n{body}\n")

    def stores(self, call: int, index: int, *of: CellKey, says: str = "") -> None:
        """Let a job of the N-th sbatch store cells and print something."""
        place = self.directory / f"directory.{call}"
        (place / f"{index}/cells").mkdir(parents=True)
        (place / f"{index}.txt").write_text(says)
        for key in of:
            (place / f"{index}/cells/{key.id}.json").write_bytes(content(cell(key)))

    def states(self, call: int, *lines: str) -> None:
        """Let the N-th squeue print this, and the following ones."""
        (self.directory / f"states.{call}").write_text("".join(f"{line}\n" for line in lines))

    def asked(self, call: int) -> list[str]:
        """The arguments of the N-th sbatch."""
        return (self.directory / f"sbatch.{call}").read_text().splitlines()

    def answers(self, *tasks: Task, on: str = "slurm") -> list[Answer]:
        with open_engine(on, self.said.append) as engine:
            engine.submit(tasks, Objects())
            return list(engine.collect())


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    programs, here = tmp_path / "programs", tmp_path / "here"
    programs.mkdir()
    here.mkdir()
    for module in (executor, environment):
        monkeypatch.setattr(module, "TOOL_PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(slurm, "POLL_SECONDS", 0)
    monkeypatch.setattr(slurm, "LATE_SECONDS", 0)
    monkeypatch.chdir(here)
    yield Fake(programs)
    assert not list(here.iterdir())


def native(*of: CellKey, **fields: object) -> Task:
    return task(*of, kind="run", **fields)


def test_a_native_task_has_a_node_for_itself(fake: Fake) -> None:
    fake.stores(1, 0, FIRST)
    fake.stores(1, 1, SECOND)
    fake.states(1, "100_0|RUNNING|0|n1", "100_1|PENDING|0|", "77_0|FAILED|256|n9")
    fake.states(2, "100_0|RUNNING|0|n1", "100_1|COMPLETED|0|n2")
    fake.states(3, "100_0|COMPLETED|0|n1", "100_1|COMPLETED|0|n2")
    found = fake.answers(native(FIRST), native(SECOND), on="slurm:slow,all")
    assert [(a.header.host, a.header.code) for a in found] == [("n2", 0), ("n1", 0)]
    assert [a.cells[0].key for a in found] == [SECOND, FIRST]
    assert {"--exclusive", "--array=0-1", "--no-requeue", "--partition=slow,all"} <= set(
        fake.asked(1)
    )
    assert not fake.said


def test_a_task_goes_to_the_node_that_it_names(fake: Fake) -> None:
    fake.stores(1, 0, FIRST)
    fake.stores(2, 0, SECOND)
    fake.states(1, "100_0|COMPLETED|0|n2", "101_0|COMPLETED|0|n1")
    assert len(fake.answers(native(FIRST, host="n2"), native(SECOND))) == 2
    assert "--nodelist=n2" in fake.asked(1)
    assert not any(word.startswith("--nodelist") for word in fake.asked(2))


def test_a_lost_node_costs_one_attempt_and_is_named_with_its_command(fake: Fake) -> None:
    fake.stores(1, 0, says="mount /dev/zram0\nfscale-bench --workload DRBL\n")
    fake.stores(2, 0, FIRST)
    fake.states(1, "100_0|NODE_FAIL|0|n1")
    fake.states(2, "100_0|NODE_FAIL|0|n1", "101_0|COMPLETED|0|n2")
    (found,) = fake.answers(native(FIRST))
    assert (found.header.host, len(found.cells)) == ("n2", 1)
    (said,) = fake.said
    assert "n1" in said
    assert "fscale-bench --workload DRBL" in said


def test_a_task_that_loses_two_nodes_gets_no_third(fake: Fake) -> None:
    fake.states(1, "100_0|NODE_FAIL|0|n1")
    fake.states(2, "100_0|NODE_FAIL|0|n1", "101_0|NODE_FAIL|0|n2")
    (found,) = fake.answers(native(FIRST))
    assert not found.cells
    assert found.header.code == 1
    assert "n1" in found.header.text
    assert "n2" in found.header.text
    assert not (fake.directory / "sbatch.3").exists()


def test_a_cell_that_was_stored_before_its_node_was_lost_counts(fake: Fake) -> None:
    fake.stores(1, 0, FIRST)
    fake.states(1, "100_0|NODE_FAIL|0|n1")
    (found,) = fake.answers(native(FIRST))
    assert len(found.cells) == 1
    assert not (fake.directory / "sbatch.2").exists()


def test_a_job_that_slurm_has_forgotten_is_judged_by_its_files(fake: Fake) -> None:
    fake.stores(1, 0, FIRST)
    fake.states(1, "100_0|RUNNING|0|n1")
    fake.states(2)
    (found,) = fake.answers(native(FIRST))
    assert (found.header.host, found.header.code, len(found.cells)) == ("n1", 0, 1)


def test_a_job_that_squeue_leaves_out_once_is_not_lost(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "LATE_SECONDS", 60)
    fake.stores(1, 0)
    fake.states(1)
    fake.states(2, "100_0|PENDING|0|")
    fake.states(3, "100_0|FAILED|256|n1")
    (found,) = fake.answers(native(FIRST))
    assert found.header.code == 1
    assert not fake.said
    assert not (fake.directory / "sbatch.2").exists()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("TIMEOUT|9|n1", 137),
        ("FAILED|512|n1", 2),
        ("FAILED|19712|n1", 77),
        ("CANCELLED|15|n1", 143),
        ("COMPLETED|0|n1", 1),
    ],
)
def test_a_job_without_cells_says_how_it_ended(fake: Fake, line: str, code: int) -> None:
    fake.stores(1, 0, says="fscale: no space left\n")
    fake.states(1, f"100_0|{line}")
    (found,) = fake.answers(native(FIRST))
    assert (found.cells, found.header.code, found.header.host) == ([], code, "n1")
    assert line.partition("|")[0] in found.header.text
    assert "no space left" in found.header.text


def test_files_of_a_node_are_a_strangers(fake: Fake) -> None:
    fake.stores(1, 0)
    link = fake.directory / f"directory.1/0/cells/{FIRST.id}.json"
    link.symlink_to("/etc/passwd")
    fake.states(1, "100_0|COMPLETED|0|n1")
    (found,) = fake.answers(native(FIRST))
    assert (found.cells, found.header.code) == ([], 1)


def test_a_cell_of_another_key_is_refused(fake: Fake) -> None:
    fake.stores(1, 0)
    there = fake.directory / f"directory.1/0/cells/{FIRST.id}.json"
    there.write_bytes(content(cell(SECOND)))
    fake.states(1, "100_0|COMPLETED|0|n1")
    (found,) = fake.answers(native(FIRST))
    assert (found.cells, found.header.code) == ([], 1)
    assert SECOND.id[:20] in found.header.text


def test_arrays_are_as_large_as_slurm_takes_them(fake: Fake) -> None:
    fake.program("scontrol", 'echo "MaxArraySize = 3"; echo "MaxJobCount = 9"')
    many = keys(5)
    for number, key in enumerate(many):
        fake.stores(number // 2 + 1, number % 2, key)
    done = [f"{100 + n // 2}_{n % 2}|COMPLETED|0|n1" for n in range(5)]
    fake.states(1, "100_0|RUNNING|0|n1", *(f"{x}|PENDING|0|" for x in ("100_1", "101_0", "101_1")))
    fake.states(2, *done[:1], *(f"{x}|PENDING|0|" for x in ("100_1", "101_0", "101_1")))
    fake.states(3, *done)
    found = fake.answers(*(native(key) for key in many))
    assert sorted(a.cells[0].id for a in found) == sorted(key.id for key in many)
    arrays = [word for n in (1, 2, 3) for word in fake.asked(n) if word.startswith("--array")]
    assert arrays == ["--array=0-1", "--array=0-1", "--array=0-0"]


def test_a_full_slurm_is_tried_again_when_a_job_has_ended(fake: Fake) -> None:
    fake.program("scontrol", 'echo "MaxArraySize = 2"; echo "MaxJobCount = 9"')
    (fake.directory / "full.2").touch()
    fake.stores(1, 0, FIRST)
    fake.stores(3, 0, SECOND)
    fake.states(1, "100_0|COMPLETED|0|n1", "102_0|COMPLETED|0|n1")
    assert len(fake.answers(native(FIRST), native(SECOND))) == 2


def test_slurm_that_is_full_of_others_jobs_is_an_error(fake: Fake) -> None:
    (fake.directory / "full.1").touch()
    with pytest.raises(jobs.Full):
        fake.answers(native(FIRST))


def test_a_controller_that_restarts_is_waited_for(fake: Fake) -> None:
    fake.stores(1, 0, FIRST)
    (fake.directory / "down.1").touch()
    fake.states(1, "100_0|COMPLETED|0|n1")
    assert len(fake.answers(native(FIRST))) == 1


def test_jobs_that_have_not_ended_are_cancelled(fake: Fake) -> None:
    fake.states(1, "100_0|RUNNING|0|n1")
    with pytest.raises(KeyboardInterrupt), open_engine("slurm", fake.said.append) as engine:
        engine.submit([native(FIRST)], Objects())
        raise KeyboardInterrupt
    assert "100" in (fake.directory / "cancelled").read_text().split()


def test_what_a_cancelled_job_had_stored_is_answered(fake: Fake) -> None:
    fake.stores(1, 0, FIRST)
    fake.states(1, "100_0|RUNNING|0|n1")
    with slurm.open_engine("slurm", fake.said.append) as engine:
        engine.submit([native(FIRST)], Objects())
        (found,) = engine.cancel()
    assert [c.key for c in found.cells] == [FIRST]
    assert found.header.host == "n1"


@pytest.mark.parametrize(("on", "slots"), [("slurm", 2), ("slurm:slow", 7), ("slurm:slow,all", 9)])
def test_the_nodes_that_are_up_are_counted(fake: Fake, on: str, slots: int) -> None:
    with open_engine(on, fake.said.append) as engine:
        assert engine.slots == slots


@pytest.mark.parametrize("on", ["slurm:", "slurm:a b", "slurm://x", "slurm:none", "slurmy"])
def test_a_partition_that_cannot_be_is_refused(fake: Fake, on: str) -> None:
    with pytest.raises(FscaleError), open_engine(on, fake.said.append):
        pass


def test_without_slurm_the_tool_is_missing(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "TOOL_PATH", "/nonexistent")
    with pytest.raises(MissingTool), open_engine("slurm", fake.said.append):
        pass


HERE = ("simulate", "gate --base ext4 --new ext4")
MEASURED = ("run smoke", "ab --base ext4 --new ext4")


@pytest.mark.parametrize(
    ("command", "on"),
    [
        *((command, "slurm") for command in HERE),
        *((command, "dask://node1:8786") for command in MEASURED),
        *((command, "lsf:all") for command in (*HERE, *MEASURED)),
    ],
)
def test_an_engine_of_the_other_kind_is_wrong_usage(command: str, on: str, tmp_path: Path) -> None:
    argv = [*command.split(), "--dry-run", "--output", str(tmp_path / "out"), "--on", on]
    error = CliRunner().invoke(app, argv).exception
    assert isinstance(error, FscaleError) and error.code == Exit.USAGE
    assert f"--on {on}" in str(error)


def test_a_dry_run_says_where_cells_would_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("prepare", "_say_shortage", "preview"):
        monkeypatch.setattr(f"fscale.commands.run.{name}", lambda *_: SimpleNamespace(cells=[]))
    argv = ["run", "smoke", "--dry-run", "--output", str(tmp_path / "out"), "--on", "slurm:all"]
    result = CliRunner().invoke(app, argv)
    assert (result.exit_code, "slurm:all" in result.output) == (0, True)


def test_a_current_directory_that_cannot_be_written_is_an_error(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/proc")
    with pytest.raises(FscaleError, match="current directory"):
        fake.answers(native(FIRST))
