# SPDX-License-Identifier: GPL-2.0-only
"""A load of a user's own, from its file to the figures of a cell."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fscale.system import powers
from tests.support.runner import fscale

pytestmark = [
    pytest.mark.root,
    pytest.mark.live,
    pytest.mark.skipif(powers.no_mount() is not None, reason="mounts file systems: needs root"),
    pytest.mark.usefixtures("unchanged"),
]
NEEDS_FIO = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
HEAD = 'title = "t"\noperation = "o"\n'


def measure(directory: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run a load on tmpfs, at one core and as many as there are up to two."""
    counts = ",".join(str(n) for n in (1, 2) if n <= (os.cpu_count() or 1))
    return fscale(
        *("run", "quick", "--workload", str(directory / "own.toml"), "--fs", "tmpfs"),
        *("--cores", counts, "--duration", "1", "--repetitions", "1", "--set", "control=0"),
        *("--output", str(directory / "out"), *more),
    )


def cells(directory: Path, *more: str, code: int = 0) -> list[dict[str, Any]]:
    """The cells of such a run."""
    done = measure(directory, *more)
    assert done.returncode == code, done.stderr
    found = [json.loads(path.read_text()) for path in (directory / "out/cells").glob("*.json")]
    return sorted(found, key=lambda cell: int(cell["key"]["cores"]))


@NEEDS_FIO
def test_a_job_file_has_figures_latencies_and_its_text(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(HEAD + '[fio]\njob = "own.fio"\n')
    job = "[mixed]\nrw=randrw\nrwmixread=70\nbs=4k\nsize=8m\nruntime=9\n"
    (tmp_path / "own.fio").write_text(job)
    for cell in cells(tmp_path):
        assert (cell["status"], cell["reason"]) == ("ok", None)
        assert cell["key"]["workload"] == "own"
        reads, writes = cell["extra"]["reads"], cell["extra"]["writes"]
        assert cell["ops"] == reads + writes
        assert 0.68 < reads / (reads + writes) < 0.72
        assert 0.95 < cell["seconds"] < 1.2
        quantiles = cell["latency"]["quantiles"]
        assert cell["latency"]["count"] == cell["ops"]
        assert 0 < quantiles["50"] <= quantiles["99"] <= quantiles["100"]
        assert f"numjobs={cell['key']['cores']}" in cell["extra"]["configuration"]
        assert cell["extra"]["user"] == "nobody"
    run = json.loads((tmp_path / "out/run.json").read_text())
    (described,) = run["workloads"]
    assert described["definition"]["own.fio"] == job
    (tmp_path / "own.fio").write_text("[mixed]\nrw=read\nbs=4k\nsize=8m\n")
    refused = measure(tmp_path)
    assert refused.returncode == 2
    assert "workloads.own.definition" in refused.stderr


@NEEDS_FIO
@pytest.mark.parametrize(
    ("job", "says"),
    [
        ("rw=randread\nbs=4k\nsize=900g\nfallocate=posix", "full|larger|space"),
        ("rw=sideways\nsize=1m", "sideways"),
        ("rw=read\nioengine=none_such\nsize=1m", "none_such"),
    ],
)
def test_a_job_that_fails_is_an_error_with_its_reason(tmp_path: Path, job: str, says: str) -> None:
    (tmp_path / "own.toml").write_text(HEAD + '[fio]\njob = "own.fio"\n')
    (tmp_path / "own.fio").write_text(f"[a]\n{job}\n")
    (cell,) = cells(tmp_path, "--cores", "1", code=1)
    assert cell["status"] == "error"
    assert re.search(says, cell["reason"]), cell["reason"]


def test_a_command_on_each_core_as_nobody(tmp_path: Path) -> None:
    script = (
        "id -un >worker{worker}; echo 3 > n; sleep {seconds}; echo 12.5 per second; echo p99 2 ms"
    )
    (tmp_path / "own.toml").write_text(
        HEAD + f'[command]\nrun = ["sh", "-c", "{script}; cat worker{{worker}}"]\n'
        'setup = [["touch", "{directory}/made"]]\ncopies = "cores"\nlatency_unit = "ms"\n'
        "regex = ['(?P<rate>[\\d.]+) per second', 'p99 (?P<p99>\\d+) ms']\n"
    )
    for cell in cells(tmp_path):
        assert (cell["status"], cell["reason"]) == ("ok", None)
        assert cell["ops"] / cell["seconds"] == pytest.approx(12.5 * cell["key"]["cores"])
        assert cell["latency"]["quantiles"] == {"99": 2e6}
        assert cell["extra"]["output"].endswith("nobody\n")
        bound = [
            c["argv"][2] for c in cell["extra"]["commands"] if "per second" in " ".join(c["argv"])
        ]
        assert len(set(bound)) == cell["key"]["cores"]


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ('run = ["sh", "-c", "exit 3"]\nops = 1', "exit code 3"),
        ('run = ["sh", "-c", "kill -9 $$"]\nops = 1', "SIGKILL"),
        ('run = ["sleep", "50"]\nops = 1\nlimit = 0.5', "hung"),
        ('run = ["true"]\nsetup = [["false"]]\nops = 1', "false"),
        ('run = ["echo", "{seconds}"]\nregex = ["(?P<rate>x)"]', "no match"),
        ('run = ["cat", "/root/.profile"]\nops = 1', "Permission denied"),
    ],
)
def test_a_command_that_fails_is_an_error_with_its_reason(
    tmp_path: Path, command: str, says: str
) -> None:
    (tmp_path / "own.toml").write_text(HEAD + f"[command]\n{command}\n")
    (cell,) = cells(tmp_path, "--cores", "1", code=1)
    assert cell["status"] == "error"
    assert says in cell["reason"]


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(HEAD + '[command]\nrun = ["no-such-program"]\nops = 1\n')
    assert cells(tmp_path, code=77) == []
