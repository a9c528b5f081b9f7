# SPDX-License-Identifier: GPL-2.0-only
"""The C personalities: their system calls, what they leave, their errors; with sanitizers."""

import json
import os
import re
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fscale.model import paths

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("apps")
    argv = ["make", "-s", "-C", str(paths.ROOT / "apps"), f"OUT={build}"]
    argv += [str(build / "fscale-personality"), "SANITIZE=-fsanitize=address,undefined"]
    subprocess.run(argv, check=True)
    return build / "fscale-personality"


def run(argv: list[str]) -> tuple[int, dict[str, Any]]:
    # The leak checker cannot work below strace; ends of processes are exits, not leaks.
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"ASAN_OPTIONS": "detect_leaks=0", "PATH": "/usr/bin:/bin"},
    )
    assert "Sanitizer" not in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout.splitlines()[-1])


def argv(binary: Path, name: str, *dirs: Path, cpus: str = "0") -> list[str]:
    line = [str(binary), "--personality", name, "--cpus", cpus, "--warmup", "0"]
    line += ["--duration", "0.3"]
    for directory in dirs:
        line += ["--dir", str(directory)]
    return line


def calls(trace: Path, root: str) -> Counter[str]:
    """System calls by name; creating opens and others apart."""
    found: Counter[str] = Counter()
    for line in trace.read_text().splitlines():
        if match := re.match(r"\d+ +(\w+)\((.*)", line):
            name = match[1]
            if name == "openat":
                if root not in match[2] and not match[2].split(", ")[1].startswith('"f'):
                    continue
                name = "create" if "O_CREAT" in match[2] else "open"
            found[name] += 1
    return found


def test_catd_does_what_the_paper_says(binary: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    work = tmp_path / "work"
    work.mkdir()
    strace = ["strace", "-f", "-qq", "-o", str(trace)]
    strace += ["-e", "trace=openat,write,fsync,ftruncate,unlinkat"]
    code, said = run([*strace, *argv(binary, "catd", work, cpus="0,0"), "--files", "50"])
    assert (code, said["error"]) == (0, None)
    assert [phase["ops"] for phase in said["phases"].values()] == [100] * 4
    found = calls(trace, str(work))
    assert found["create"] == found["fsync"] == found["ftruncate"] == found["unlinkat"] == 100
    assert len(re.findall(r'write\(\d+, "ccc', trace.read_text())) == 100
    assert said["bytes"] == 100 * 4096
    assert sorted(p.name for p in work.rglob("*")) == ["worker0", "worker1"]


@pytest.mark.parametrize("name", ["varmail", "fileserver"])
def test_a_turn_is_taken_for_each_byte(binary: Path, tmp_path: Path, name: str) -> None:
    line = [*argv(binary, name, tmp_path, cpus="0,0"), "--files", "20", "--slice", "0.02"]
    done = subprocess.run(
        [*line, "--settle"], input="gggg", capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    ready, *turns, last = done.stdout.splitlines()
    assert (ready, [turn.split()[0] for turn in turns]) == ("ready", ["turn"] * 4)
    counted = sum(int(turn.split()[1]) for turn in turns)
    assert json.loads(last)["phases"]["all"]["ops"] == counted


@pytest.mark.parametrize(("name", "slice_"), [("varmail", "1"), ("catd", "0.1")])
def test_turns_that_cannot_be_are_refused(
    binary: Path, tmp_path: Path, name: str, slice_: str
) -> None:
    line = [*argv(binary, name, tmp_path), "--slice", slice_]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("--slice ")


@pytest.mark.parametrize(("name", "syncs", "stats"), [("varmail", 2, 0), ("fileserver", 0, 1)])
def test_a_round_has_the_steps_of_filebench(
    binary: Path, tmp_path: Path, name: str, syncs: int, stats: int
) -> None:
    trace = tmp_path / "trace"
    work = tmp_path / "work"
    work.mkdir()
    strace = [
        "strace",
        "-f",
        "-qq",
        "-o",
        str(trace),
        "-e",
        "trace=openat,fsync,unlinkat,newfstatat",
    ]
    code, said = run([*strace, *argv(binary, name, work), "--files", "40", "--width", "50"])
    assert (code, said["error"]) == (0, None)
    rounds = Counter(re.findall(r"\d+ +(\w+)\((?!AT_FDCWD)", trace.read_text()))
    deleted = rounds["unlinkat"]
    assert deleted > 0
    # A round that has begun is finished, so the counts match exactly, of however many rounds.
    assert rounds["fsync"] == syncs * deleted
    names = re.findall(r'newfstatat\(\d+, "f\d+"', trace.read_text())
    assert len(names) == stats * deleted
    created = len(re.findall(r'openat\(\d+, "f\d+", [^)]*O_EXCL', trace.read_text()))
    existed = created - deleted
    assert 20 <= existed <= 40  # about 80% of 40 at the start
    assert len([p for p in work.rglob("f*") if p.is_file()]) == existed


@pytest.mark.parametrize("width", [2, 7, 1000])
def test_no_directory_is_wider_than_said(binary: Path, tmp_path: Path, width: int) -> None:
    line = [*argv(binary, "fileserver", tmp_path), "--files", "100", "--width", str(width)]
    code, said = run([*line, "--size", "100", "--append", "100"])
    assert (code, said["error"]) == (0, None)
    directories = [tmp_path / "set0", *(p for p in tmp_path.rglob("d*") if p.is_dir())]
    assert all(len(list(d.iterdir())) <= width for d in directories)


def test_workers_can_share_one_set(binary: Path, tmp_path: Path) -> None:
    line = [*argv(binary, "varmail", tmp_path, cpus="0,0,0"), "--files", "60", "--shared"]
    code, said = run(line)
    assert (code, said["error"]) == (0, None)
    assert [p.name for p in tmp_path.iterdir()] == ["set0"]


def test_workers_take_the_partitions_in_turn(binary: Path, tmp_path: Path) -> None:
    dirs = [tmp_path / "a", tmp_path / "b"]
    for directory in dirs:
        directory.mkdir()
    code, _ = run([*argv(binary, "catd", *dirs, cpus="0,0,0"), "--files", "3"])
    assert code == 0
    assert sorted(p.name for p in dirs[0].iterdir()) == ["worker0", "worker2"]
    assert [p.name for p in dirs[1].iterdir()] == ["worker1"]


def test_errors_are_told(binary: Path, tmp_path: Path) -> None:
    code, said = run(argv(binary, "varmail", tmp_path / "nowhere"))
    assert code == 1
    assert said["error"].endswith("nowhere/set0: No such file or directory")
    (tmp_path / "worker0").mkdir()
    code, said = run(argv(binary, "catd", tmp_path))
    assert (code, said["error"][-11:]) == (1, "File exists")
    for wrong in ([], ["--personality", "oltp", "--dir", "/tmp", "--cpus", "0"]):
        done = subprocess.run([str(binary), *wrong], capture_output=True, check=False)
        assert done.returncode == 2


def test_a_worker_that_dies_is_an_error(binary: Path, tmp_path: Path) -> None:
    line = [*argv(binary, "varmail", tmp_path, cpus="0,0"), "--files", "20", "--duration", "20"]
    with subprocess.Popen(
        line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for word in process.stdout:
            if word == "start all\n":
                break
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[1]), signal.SIGKILL)
        out, _ = process.communicate(timeout=10)
    assert process.returncode == 1
    assert json.loads(out.splitlines()[-1])["error"].startswith("worker 1 was killed by signal 9")
    assert not any(Path(f"/proc/{child}").exists() for child in children)


def test_edges_are_said_of_each_phase(binary: Path, tmp_path: Path) -> None:
    line = [*argv(binary, "catd", tmp_path), "--files", "3"]
    done = subprocess.run(
        line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True
    )
    phases = ("create", "append", "truncate", "delete")
    edges = [f"{edge} {phase}" for phase in phases for edge in ("start", "end")]
    assert done.stdout.splitlines()[:-1] == ["ready", *edges]
