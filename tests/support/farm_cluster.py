# SPDX-License-Identifier: GPL-2.0-only
"""A scheduler and workers of Dask as processes of their own, with TLS, on loopback."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from fscale.model.paths import ROOT

SECONDS = 200.0  # on a busy machine


def certificate(directory: Path) -> Path:
    """One certificate, of its own authority, for scheduler, workers and client."""
    path = directory / "farm.pem"
    subject = ["-subj", "/CN=fscale-test", "-days", "2"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made = ["-keyout", str(path), "-out", f"{path}.cert"]
    subprocess.run(
        ["openssl", "req", "-x509", *key, *subject, *made], check=True, capture_output=True
    )
    with path.open("a") as whole:
        whole.write(Path(f"{path}.cert").read_text())
    return path


def until(true: Callable[[], object], what: str) -> None:
    """Wait for a state."""
    ends = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < ends, what
        time.sleep(0.02)


def runs(process: psutil.Process) -> bool:
    """Whether a thread of a process is left; the first one may end before the others."""
    try:
        ended = process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
        return not ended or process.num_threads() > 1
    except psutil.NoSuchProcess:
        return False


class Cluster:
    """Processes in groups of their own; a context manager that ends them."""

    def __init__(self, directory: Path, pem: Path | None) -> None:
        self.directory = directory
        self.pem = pem
        self.port = 0
        """which the scheduler chooses when it is started first, and keeps"""
        self.protocol = "tls" if pem else "tcp"
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        (directory / "log").touch()
        self.start_scheduler()

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *exc: object) -> None:
        for name in list(self.running):
            self.kill(name)

    @property
    def address(self) -> str:
        return f"{self.protocol}://127.0.0.1:{self.port}"

    def environment(self, **changes: str) -> dict[str, str]:
        """Of all processes; `changes` are a machine's own."""
        tls = "DASK_DISTRIBUTED__COMM__TLS__"
        pem = str(self.pem)
        secured = {f"{tls}CA_FILE": f"{pem}.cert"}
        for role in ("SCHEDULER", "WORKER", "CLIENT"):
            secured |= {f"{tls}{role}__CERT": pem, f"{tls}{role}__KEY": pem}
        plain = {k: v for k, v in os.environ.items() if not k.startswith("DASK_")}
        own = {"PYTHONPATH": str(ROOT), "FARM_TEST": str(self.directory)}
        # As docs/guide/many-machines.md: an idle worker takes a third of the CPU time.
        own["DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED"] = "False"
        own["DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL"] = "1s"
        return plain | own | (secured if self.pem else {}) | changes

    def start_scheduler(self) -> None:
        (about := self.directory / "scheduler.json").unlink(missing_ok=True)
        argv = ["dask_scheduler", "--port", str(self.port), "--host", "127.0.0.1"]
        argv += ["--protocol", self.protocol, "--scheduler-file", str(about)]
        self._start("scheduler", [*argv, "--no-dashboard"], {})

        def listens() -> bool:
            log = self.directory / "scheduler.log"
            assert self.running["scheduler"].poll() is None, log.read_text()
            try:
                said = json.loads(about.read_text())
            except (FileNotFoundError, json.JSONDecodeError):  # it is being written
                return False
            self.port = int(said["address"].rpartition(":")[2])
            return True

        until(listens, "the scheduler listens")

    def start_worker(self, name: str, nanny: bool = False, **changes: str) -> None:
        """A worker of one thread on a machine (that is, with a cache) of its own.

        With a `nanny`, a second process starts it again when it dies.
        """
        home = self.directory / name
        home.mkdir(exist_ok=True)
        argv = ["dask_worker", self.address, "--nthreads", "1", "--name", name, "--no-dashboard"]
        argv += ["--local-directory", str(home), "--host", "127.0.0.1"]
        argv += ["--nanny" if nanny else "--no-nanny"]
        self._start(name, argv, {"XDG_CACHE_HOME": str(home / "cache")} | changes)

    def _start(self, name: str, argv: list[str], changes: dict[str, str]) -> None:
        module, *rest = argv
        with (self.directory / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{module}", *rest],
                env=self.environment(**changes),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                start_new_session=True,
            )

    def kill(self, name: str) -> None:
        """Kill a process and its children at once: a worker with its nanny, and its task.

        The kernel kills a task when the worker's last thread has ended, so later than the worker.
        """
        process = self.running.pop(name)
        first = psutil.Process(process.pid)
        family = [first, *first.children(recursive=True)]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        until(lambda: not any(map(runs, family)), f"{name} is still there")

    def lines(self, word: str) -> list[int]:
        """The repetitions of the cells that have begun, or ended, so far."""
        said = (line.split() for line in (self.directory / "log").read_text().splitlines())
        return [int(number) for first, number in said if first == word]


def ended_once(cluster: Cluster, numbers: Any) -> None:
    """No cell is lost, and none was measured again after it had ended."""
    assert sorted(cluster.lines("ends")) == sorted(numbers)
