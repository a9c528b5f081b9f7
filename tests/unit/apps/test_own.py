# SPDX-License-Identifier: GPL-2.0-only
"""Loads of a user's own: what their files may say, and what is refused."""

import getpass
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fscale.analysis.report.repeat import command as repeated
from fscale.apps.adapter import LAUNCHER
from fscale.apps.base import AppError
from fscale.apps.custom import command, jobs
from fscale.apps.custom.figures import figures, latencies
from fscale.apps.registry import applications, custom_load
from fscale.cli import app as cli
from fscale.model import loadfile, paths
from fscale.model.errors import Exit, FscaleError
from fscale.model.facts import collect_facts, find_rule
from fscale.model.loadfile import CommandLoad
from fscale.vm.files import pass_loads
from tests.support.synthetic import cell, key, write_run

JOB = "[global]\nbs=4k\nruntime=60\ntime_based\n[readers]\nrw=randread\n[writer]\nrw=write\n"
FIO = 'title = "t"\noperation = "o"\n[fio]\njob = "own.fio"\n'
COMMAND = 'title = "t"\noperation = "o"\n[command]\n'


def own(directory: Path, text: str = FIO, job: str | None = JOB) -> str:
    (directory / "own.toml").write_text(text)
    if job is not None:
        (directory / "own.fio").write_text(job)
    return str(directory / "own.toml")


def test_which_program_a_command_is_depends_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two shells may find two programs of one name, and a comparison is to say so."""
    load = custom_load(own(tmp_path, COMMAND + 'run = ["tool"]\nops = 1\n', None))
    tool = tmp_path / "tool"
    monkeypatch.setattr(command, "which", lambda _: str(tool))
    versions = []
    for text in "ab":
        tool.write_text(text)
        versions.append(load.version())
    assert versions[0] != versions[1]
    assert all(one.startswith(f"{tool} sha256:") for one in versions)


@pytest.mark.parametrize(
    "line",
    ["directory=/mnt", "filename=/mnt/x", "filename=x:y", "cpus_allowed=0", "time_based=0",
     "time_based = no", "numa_cpu_nodes=0", "stonewall", "startdelay=5", "include other.fio",
     "include=other.fio", "read_iolog=log", "uid=0", "exec_prerun=reboot", "cgroup=x", "wait_for=a",
     "opendir=/etc", "write_lat_log=/tmp/x", "chroot=/", "ioscheduler=none", "exitall",
     "wait_for_previous", "wait_for_previous=1", "write_iolog=/tmp/x", "filename_format=/t/$jobnum",
     "filename_format=../$jobnum", "ss=iops:30%", "steadystate=iops:30%", "ss_dur=1", "fill_fs=1",
     "mem=mmap:/tmp/x", "iomem=mmap:/tmp/x", "stats=0", "profile=tiobench", "replay_redirect=/x"],
)  # fmt: skip
@pytest.mark.parametrize("section", ["global", "readers"])
def test_what_a_cell_cannot_honour_is_refused_with_its_line(line: str, section: str) -> None:
    text = JOB.replace(f"[{section}]\n", f"[{section}]\n{line}\n")
    number = text.splitlines().index(line) + 1
    with pytest.raises(FscaleError, match=rf"^own\.fio:{number}: "):
        jobs.read(text, "own.fio")


@pytest.mark.parametrize(
    "line",
    ["filename=data1  ; was /dev/sdx", "filename=data1# a/b", "stonewall=0", "stats=1 # stonewall",
     "fill_device=0", "write_iolog=log", "filename_format=$jobname.$jobnum", "iomem=malloc"],
)  # fmt: skip
def test_comments_and_harmless_values_are_accepted(line: str) -> None:
    (section,) = jobs.read(f"[a] ; a comment\n{line}\n", "own.fio").sections
    key, _, value = line.partition("=")
    assert section.name == "a"
    assert section.keys == [(key, value.replace("#", ";").partition(";")[0].strip())]


@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
def test_the_other_names_of_refused_keys_are_refused() -> None:
    for name in jobs._REFUSED:
        argv = ["fio", f"--cmdhelp={name}"]
        told = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
        assert set(re.findall(r"alias: (\S+)", told)) <= jobs._REFUSED.keys()


@pytest.mark.parametrize("text", ["", "[global]\nbs=4k\n", "bs=4k\n[a]\n", "[a]\n[a]\n"])
def test_what_is_no_job_file_is_refused(text: str) -> None:
    with pytest.raises(FscaleError, match=r"own\.fio"):
        jobs.read(text, "own.fio")


def test_the_cell_fills_in_what_it_decides() -> None:
    made = jobs.read(JOB + "numjobs=3\n", "own.fio").filled({"directory": "/d"}, {}, 8)
    lines = made.splitlines()
    assert lines[:2] == ["[global]", "directory=/d"]
    assert "runtime=60" not in lines
    assert "time_based" not in lines
    counts = [line for line in lines if line.startswith("numjobs=")]
    assert counts == ["numjobs=8", "numjobs=3"]


@pytest.mark.parametrize(("cores", "number"), [(1, 1), (4, 1), (16, 3)])
def test_jobs_per_core_are_rounded_and_at_least_one(cores: int, number: int) -> None:
    read = jobs.read(JOB.replace("rw=write\n", "rw=write\nnumjobs=7\n"), "own.fio")
    made = read.filled({}, {"writer": 0.1875}, cores)
    assert made.endswith(f"rw=write\nnumjobs={number}\n")


@pytest.mark.parametrize(
    ("text", "direct"),
    [("[global]\ndirect=1\n[a]\n[b]\n", True), ("[a]\ndirect=1\n[b]\n", False),
     ("[global]\ndirect=1\n[a]\ndirect=0\n", False), ("[a]\n", False), ("[a]\nbuffered=0\n", True)],
)  # fmt: skip
def test_the_mode_is_what_the_jobs_say(text: str, direct: bool) -> None:
    assert jobs.read(text, "own.fio").direct is direct


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (FIO + "[fio.per_core]\nnobody = 1\n", "nobody"),
        (FIO.replace("own.fio", "other.fio"), "other.fio"),
        (FIO.replace("own.fio", "../own.fio"), "job"),
        ('title = "t"\noperation = "o"\n', "either"),
        (FIO + '[command]\nrun = ["x"]\nops = 1\n', "either"),
        (COMMAND + "run = []\nops = 1\n", "run"),
        (COMMAND + 'run = ["x"]\n', "exactly one"),
        (COMMAND + 'run = ["x"]\nops = 1\nregex = ["(?P<rate>.)"]\n', "exactly one"),
        (COMMAND + 'run = ["x"]\nregex = ["(?P<rate>.)"]\n', "{seconds}"),
        (COMMAND + 'run = ["x", "{second}"]\nops = 1\n', "{second}"),
        (COMMAND + 'run = ["x", "{"]\nops = 1\n', "brace"),
        (COMMAND + 'run = ["x", "{}"]\nops = 1\n', "{}"),
        (COMMAND + 'run = ["{seconds}"]\nregex = ["("]\n', "not valid"),
        (COMMAND + 'run = ["{seconds}"]\nregex = ["x"]\n', "named group"),
        (COMMAND + 'run = ["{seconds}"]\nregex = ["(?P<speed>x)"]\n', "speed"),
        (COMMAND + 'run = ["x"]\nops = 1\nrnu = 2\n', "rnu"),
        (FIO + '[options.cores]\ndefault=1\nhelp="h"\n', "cores"),
    ],
)
def test_a_file_that_is_wrong_is_refused_by_its_key(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(FscaleError) as refused:
        custom_load(own(tmp_path, text))
    assert says in str(refused.value)


def test_the_name_is_that_of_the_file(tmp_path: Path) -> None:
    made = applications([own(tmp_path)])[-1]
    assert made.descriptor.id == "own"
    assert set(made.descriptor.definition or {}) == {"own.toml", "own.fio"}
    taken = tmp_path / "dbench.toml"
    taken.write_text(FIO)
    with pytest.raises(FscaleError, match="already a load called dbench"):
        applications([str(taken)])
    blank = tmp_path / "a b.toml"
    blank.write_text(FIO)
    with pytest.raises(FscaleError, match="'a b'"):
        loadfile.read(str(blank))


def test_another_definition_is_another_load(tmp_path: Path) -> None:
    facts = []
    for number in (1, 2):
        load = custom_load(own(tmp_path, job=f"{JOB}bs={number}k\n"))
        run = write_run(tmp_path / str(number), [cell(key(1, workload="own"), 1.0)])
        from fscale.analysis.reader import load as read  # noqa: PLC0415

        record = read(run).run.model_copy(update={"workloads": [load.descriptor.model_dump()]})
        facts.append(collect_facts(record)["workloads.own.definition"])
    assert facts[0] != facts[1]
    assert find_rule("workloads.own.definition").on_resume == "refuse"
    assert find_rule("workloads.own.definition").on_compare == "refuse"


def said(**given: object) -> CommandLoad:
    return CommandLoad.model_validate({"run": ["x", "{seconds}"], **given})


def test_the_last_match_counts() -> None:
    command = said(regex=[r"(?P<rate>[\d.]+) ops/s", r"p99 (?P<p99>\d+)"])
    assert figures(command, "1 ops/s\np99 7\n22.5 ops/s") == {"rate": 22.5, "p99": 7}


def test_figures_of_json() -> None:
    command = said(json={"rate": "jobs.0.iops", "p99": "tail"})
    assert figures(command, 'noise\n{"jobs": [{"iops": 5}], "tail": "8"} more') == {
        "rate": 5,
        "p99": 8,
    }


@pytest.mark.parametrize(
    ("given", "text"),
    [({"regex": ["(?P<rate>x+)"]}, "y"), ({"regex": ["(?P<rate>x+)"]}, "xx"),
     ({"json": {"rate": "a"}}, "no"), ({"json": {"rate": "a"}}, '{"b": 1}'),
     ({"json": {"rate": "a"}}, '{"a": true}'), ({"json": {"rate": "a"}}, '{"a": -1}'),
     ({"json": {"rate": "a"}}, '{"a": NaN}'), ({"json": {"rate": "a.3"}}, '{"a": [1]}')],
)  # fmt: skip
def test_a_figure_that_is_none_is_an_error(given: dict[str, object], text: str) -> None:
    with pytest.raises(AppError):
        figures(said(**given), text)


def test_latencies_are_those_of_the_slowest_copy() -> None:
    command = said(regex=["(?P<rate>x)(?P<p99>y)"], latency_unit="ms")
    made = latencies(command, [{"rate": 1, "p99": 2}, {"rate": 1, "p99": 3}])
    assert made == {"unit": "ns", "quantiles": {"99": 3e6}}
    assert latencies(command, [{"rate": 1}]) is None


def test_a_guest_gets_the_files(tmp_path: Path) -> None:
    files, workloads = pass_loads(f"DRBL,{own(tmp_path)}")
    assert files == {f"loads/own.{kind}": tmp_path / f"own.{kind}" for kind in ("toml", "fio")}
    assert workloads == "DRBL,/control/loads/own.toml"


def test_a_guest_has_no_other_file(tmp_path: Path) -> None:
    path = own(tmp_path, COMMAND + 'run = ["{here}/x"]\nops = 1\n', job=None)
    with pytest.raises(FscaleError, match="here"):
        pass_loads(path)


def test_the_command_that_measures_a_point_again_has_the_path(tmp_path: Path) -> None:
    from fscale.analysis.reader import load as read  # noqa: PLC0415

    line = "bin/fscale run quick --workload DRBL,./loads/own.toml --output x"
    made = write_run(tmp_path / "run", [cell(key(1, workload="own"), 1.0)], command=[line])
    again = repeated(read(made).run, key(1, workload="own"))
    assert again is not None
    assert "--workload ./loads/own.toml " in again


def test_a_load_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    """The launcher ends at once on SIGTERM, and so do all copies."""
    mark = f"{60 + os.getpid() / 1e7:.7f}"
    text = COMMAND + f'run = ["sleep", "{mark}"]\ncopies = 2\nops = 1\nlimit = 50\n'
    path = own(tmp_path, f'user = "{getpass.getuser()}"\n{text}', job=None)
    (tmp_path / "d").mkdir()
    launcher = subprocess.Popen(
        [*LAUNCHER, "--load", path, "--workload", "own", "--dir", str(tmp_path / "d"),
         "--cpus", str(min(os.sched_getaffinity(0)))],
        stdout=subprocess.PIPE,
    )  # fmt: skip

    def sleeping() -> bool:
        return subprocess.run(["pgrep", "-cfx", f"sleep {mark}"], check=False,
                              capture_output=True, text=True).stdout.strip() == "2"  # fmt: skip

    deadline = time.monotonic() + 60
    while not sleeping() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert sleeping()
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(20) == Exit.INTERRUPTED
    assert not sleeping()


def test_a_broken_file_among_the_shipped_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "LOADS", tmp_path)
    own(tmp_path, "title = 1\n")
    done = CliRunner().invoke(cli, ["list", "workloads"])
    assert isinstance(done.exception, FscaleError)
    assert "own.toml" in str(done.exception)


def test_the_list_of_workloads_shows_each_option_once() -> None:
    done = CliRunner().invoke(cli, ["list", "workloads"])
    listed = json.loads(CliRunner().invoke(cli, ["list", "workloads", "--json"]).stdout)
    _, _, shown = done.stdout.partition("--option NAME=VALUE")
    lines = {entry.split()[0]: entry for entry in re.split(r"\n(?=\S+=)", shown)[1:]}
    with_block = [w["id"] for w in listed if "block" in {o["name"] for o in w["options"]}]
    assert f"{len(with_block)} workloads" in lines["block=4096"]
    assert "MRPL" in lines["access=open|stat"]
    assert "bytes" in lines["block=4096"]
