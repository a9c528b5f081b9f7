# SPDX-License-Identifier: GPL-2.0-only
"""What goes wrong with an application is an error that says what: no figure comes of it."""

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fscale.apps import __main__ as command
from fscale.apps.base import AppError, AppResult, Options, Site, Timing
from fscale.apps.exim import driver as exim
from fscale.apps.meter import Meter, between
from fscale.apps.process import FileSystemFullError, Processes, error_in_output
from fscale.apps.registry import applications
from fscale.model import paths
from tests.support.files import write_program

CPU = min(os.sched_getaffinity(0))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(dirs=[tmp_path], cpus=[CPU], scratch=tmp_path, space=1 << 20)


def daemons(tmp_path: Path, count: int = 2) -> list[exim.Spool]:
    found = []
    for number in range(count):
        log = tmp_path / f"exim-{number}"
        log.mkdir()
        (log / "mainlog").touch()
        found.append(exim.Spool(2500 + number, log, log / "exim.conf"))
    return found


def program(tmp_path: Path, body: str) -> str:
    """A stand-in for exim4; `$2` is its configuration file."""
    path = tmp_path / "exim4"
    write_program(path, f"#!/bin/sh\n{body}\n")
    return str(path)


def test_a_daemon_that_ends_at_once(site: Site, tmp_path: Path) -> None:
    fake = program(tmp_path, "echo 'Exim configuration error in line 3'; exit 1")
    started = time.monotonic()
    with (
        Processes(site) as processes,
        pytest.raises(AppError, match="exim ended with exit code 1: Exim configuration error"),
    ):
        exim._start_daemons(processes, fake, daemons(tmp_path), {})
    assert time.monotonic() - started < exim._START_SECONDS / 2


def test_a_daemon_that_crashes(site: Site, tmp_path: Path) -> None:
    fake = program(tmp_path, "kill -SEGV $$")
    with Processes(site) as processes, pytest.raises(AppError, match="was killed by SIGSEGV"):
        exim._start_daemons(processes, fake, daemons(tmp_path), {})


def test_a_daemon_that_never_listens(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exim, "_START_SECONDS", 0.3)
    fake = program(tmp_path, "echo still thinking; exec sleep 60")
    started = time.monotonic()
    with (
        Processes(site) as processes,
        pytest.raises(AppError, match="did not start within 0 s: still thinking"),
    ):
        exim._start_daemons(processes, fake, daemons(tmp_path), {})
    assert time.monotonic() - started < 10
    assert [command.returncode for command in processes.commands] == [-9, -9]


@pytest.fixture
def started(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Site, list[list[int]]]:
    """Makes the driver meet a busy port at first, and keeps the ports that it tries."""
    tried: list[list[int]] = []

    def start(_: Processes, __: str, spools: list[exim.Spool], ___: dict[str, str]) -> None:
        tried.append([spool.port for spool in spools])
        if len(tried) == 1:
            raise exim._PortInUseError(f"exim: port {spools[0].port} is in use")

    monkeypatch.setattr(exim, "_start_daemons", start)
    monkeypatch.setattr(exim.shutil, "chown", lambda *_: None)
    (tmp_path / "mail").mkdir()
    return site, tried


def test_a_free_port_that_was_taken_is_tried_anew(
    started: tuple[Site, list[list[int]]], tmp_path: Path
) -> None:
    site, tried = started
    with Processes(site) as processes:
        options: Options = {"spools": 2, "port": 0}
        found = exim._start(processes, site, options, tmp_path / "mail", {})
    assert len(tried) == 2
    assert [spool.port for spool in found] == tried[1]


def test_a_port_that_was_asked_for_is_not(
    started: tuple[Site, list[list[int]]], tmp_path: Path
) -> None:
    site, tried = started
    with Processes(site) as processes, pytest.raises(AppError, match="port 2600 is in use"):
        exim._start(processes, site, {"spools": 2, "port": 2600}, tmp_path / "mail", {})
    assert tried == [[2600, 2601]]


def test_mail_boxes_must_hold_what_the_log_says(site: Site, tmp_path: Path) -> None:
    mail = tmp_path / "mail"
    (mail / "0").mkdir(parents=True)
    (mail / "0" / "mbox").write_bytes(b"From a@b Fri\n\nx\n" * 3)
    exim._check({"delivered_in_all": 3}, site, mail)
    with pytest.raises(AppError, match="has 4 deliveries, but the mail boxes have 3"):
        exim._check({"delivered_in_all": 4}, site, mail)
    left = tmp_path / "spool" / "0" / "input" / "1abc-D"
    left.parent.mkdir(parents=True)
    left.touch()
    with pytest.raises(AppError, match="1 files remain in the spool"):
        exim._check({"delivered_in_all": 3}, site, mail)


def test_the_error_in_a_programs_output() -> None:
    assert error_in_output(["start", "[1]", '{"error": "worker 1 died"}']) == "worker 1 died"
    assert error_in_output(["start", '{"error": null}', "end"]) is None
    assert error_in_output(["no JSON"]) is None


@pytest.mark.parametrize(
    ("name", "given", "duration", "space"),
    [
        ("rocksdb", {"databases": 1}, 5, 1),
        ("rocksdb", {"databases": 0}, 5, 1 << 30),
        ("dbench", {"load": "/nowhere"}, 5, 1 << 30),
        ("dbench", {}, 0.1, 1 << 30),
    ],
)
def test_what_the_user_asked_for_is_no_finding(
    name: str, given: Options, duration: float, space: int, site: Site
) -> None:
    """Another machine has less memory, or no such file: the file system did not break."""
    (app,) = (one for one in applications([]) if one.descriptor.id == name)
    defaults = {option.name: option.default for option in app.descriptor.options}
    with pytest.raises(AppError) as caught:
        app.run(replace(site, space=space), Timing(duration), defaults | given, lambda: None)
    assert caught.value.fault == "user"


STOPPED = """
import os, subprocess
from pathlib import Path
from fscale.apps.base import Site
from fscale.apps.process import Processes
stop = f"sleep 0.2; kill -STOP {os.getpid()}; sleep 2; kill -CONT {os.getpid()}"
subprocess.Popen(["sh", "-c", stop])
here = Path.cwd()
with Processes(Site([here], [min(os.sched_getaffinity(0))], here, 1)) as processes:
    print(processes.run(["sh", "-c", "sleep 1; echo done"], timeout=1.5), end="")
"""


def test_a_program_that_ends_while_all_is_stopped_has_not_hung(tmp_path: Path) -> None:
    """A container that is frozen (docker pause) is stopped with its driver."""
    argv = [sys.executable, "-c", STOPPED]
    env = os.environ | {"PYTHONPATH": str(paths.ROOT)}
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_a_runner_that_went_away() -> None:
    read, far = os.pipe()
    gone, write = os.pipe()
    os.close(far)
    try:
        with pytest.raises(AppError, match="the runner ended"):
            command._ready((read, write), None)
    finally:
        for fd in (read, gone, write):
            os.close(fd)


@pytest.mark.parametrize(("amount", "seconds"), [(0, 2.0), (100, 0.0), (float("nan"), 2.0)])
def test_nothing_done_is_no_result(
    amount: float, seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = next(a for a in applications() if a.descriptor.id == "catd")
    edge = Meter([CPU], None).read()
    measured = AppResult(amount, "ops", seconds, between(edge, edge), [])
    monkeypatch.setattr(app, "run", lambda *_: measured)
    monkeypatch.setattr("os.sched_setaffinity", lambda *_: None)
    monkeypatch.setattr(command, "raise_priority", lambda: None)
    argv = ["x", "--workload", "catd", "--dir", str(tmp_path), "--cpus", str(CPU)]
    monkeypatch.setattr("sys.argv", argv)
    with pytest.raises(AppError, match="catd did nothing"):
        command._measure(app, command._arguments(), tmp_path)


def generate(site: Site, tmp_path: Path, body: str) -> None:
    with Processes(site) as processes:
        exim._generate(processes, site, [program(tmp_path, body)], Timing(duration=1, warmup=0))


def test_a_file_system_that_was_full_is_named_though_it_has_room_again(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([True])
    monkeypatch.setattr("fscale.apps.process._full", lambda _: next(answers, False))
    with pytest.raises(FileSystemFullError, match="exim: the file system is full"):
        generate(site, tmp_path, "exit 1")


@pytest.mark.parametrize("words", ["451 Error in writing spool file", "Failed writing journal"])
def test_a_short_write_of_exims_is_most_likely_a_full_file_system(
    site: Site, tmp_path: Path, words: str
) -> None:
    said = json.dumps({"error": f"generator 0: the message was answered: {words}"})
    with pytest.raises(AppError, match=rf"{words} \(most likely the file system is full\)"):
        generate(site, tmp_path, f"echo '{said}'; exit 1")


def test_what_exim_is_about_to_remove_is_not_left(site: Site, tmp_path: Path) -> None:
    journal = tmp_path / "spool" / "0" / "input" / "1-J"
    journal.parent.mkdir(parents=True)
    journal.touch()
    threading.Timer(0.2, journal.unlink).start()
    exim._wait_for_spools(site)
    assert not exim._spooled(site)


def test_what_stays_in_the_spool_is_an_error(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exim, "_DRAIN_SECONDS", 0.1)
    journal = tmp_path / "spool" / "0" / "input" / "1-J"
    journal.parent.mkdir(parents=True)
    journal.touch()
    exim._wait_for_spools(site)
    with pytest.raises(AppError, match="1 files remain in the spool"):
        exim._check({"delivered_in_all": 0}, site, tmp_path / "mail")
