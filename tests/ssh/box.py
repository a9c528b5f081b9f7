# SPDX-License-Identifier: GPL-2.0-only
"""Runs fscale on the test machine, and checks how the machine is left."""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fscale.model import paths
from fscale.model.errors import Exit

# What a command may change there: kernel, mounts, CPUs, links, its own files. The kernel itself
# mounts tracefs below debugfs as soon as libbpf looks there.
_STATE = """
uname -rv; cat /proc/cmdline; nproc
findmnt -rno TARGET,SOURCE | grep -Ev '^/(run|sys/kernel/debug/tracing)' | sort
ls /lib/modules; ls -d /var/tmp/fscale*; ls -R /etc/systemd/system
"""
TESTBOX = "ssh:testbox"
JUDGED = ["--fdr", "0.1", "--metric", "throughput"]
"""how few boots are judged"""
_RESET = """
import socket, sys
monitor = socket.socket(socket.AF_UNIX)
monitor.connect(sys.argv[1])
monitor.recv(100)
monitor.sendall(b"system_reset\\n")
monitor.recv(100)
"""


class Box:
    """The test machine, and `ssh` in the user's PATH that knows it as testbox."""

    def __init__(self, place: Path, config: Path) -> None:
        self.place = place
        ssh = place / "bin/ssh"
        ssh.parent.mkdir(exist_ok=True)
        ssh.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {config} "$@"\n')
        ssh.chmod(0o755)
        self._ssh = [str(ssh), "-oBatchMode=yes", "testbox"]
        self.environment = {**os.environ, "PATH": f"{ssh.parent}:{os.environ['PATH']}"}
        self.console = f"tail -c 0 -f {place}/console"
        self.reset = shlex.join([sys.executable, "-c", _RESET, f"{place}/monitor"])
        self.own = self.ask("uname -r").strip()
        self._state = self.ask(_STATE)

    def ask(self, command: str) -> str:
        """What a shell there prints."""
        done = subprocess.run([*self._ssh, command], stdout=subprocess.PIPE, text=True, check=False)
        return done.stdout

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a command of fscale on the machine."""
        return subprocess.Popen(_argv(words, TESTBOX), env=self.environment)

    def fscale(self, *words: str, on: str = TESTBOX) -> int:
        """Run a command of fscale on the machine, by one of its names; its exit code."""
        return self._run(_argv(words, on))

    def refused(self, *words: str, on: str = TESTBOX) -> str:
        """What a command says that is to be refused."""
        done = subprocess.run(
            _argv(words, on),
            env=self.environment,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        print(f"{words[0]}: exit code {done.returncode}: {done.stderr}", flush=True)
        assert done.returncode == Exit.USAGE
        return done.stderr

    def bisect(self, repository: Path, *words: str) -> int:
        """Let git bisect the commits of a repository, the last of which is bad; its exit code."""
        git = ["git", "-C", str(repository), "bisect"]
        roots = subprocess.run(
            ["git", "-C", str(repository), "rev-list", "--max-parents=0", "HEAD"],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        subprocess.run([*git, "start", "HEAD", roots.stdout.strip()], check=True)
        build = words.index("--")
        step = _argv(words[:build], TESTBOX) + list(words[build:])
        return self._run([*git, "run", *step])

    def _run(self, argv: list[str]) -> int:
        began = time.monotonic()
        code = subprocess.run(argv, env=self.environment, check=False).returncode
        print(f"{argv[1]}: exit code {code} after {time.monotonic() - began:.0f} s", flush=True)
        return code

    def compared(self, *words: str) -> dict[str, Any]:
        """What `fscale compare` says of results here."""
        argv = [str(paths.ROOT / "bin/fscale"), "compare", *words, "--json"]
        done = subprocess.run(argv, stdout=subprocess.PIPE, check=False)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def judgements(self, output: Path) -> list[dict[str, Any]]:
        """The judgements of a paired run, which are printed."""
        judged: list[dict[str, Any]] = self.compared(str(output), *JUDGED)["judgements"]
        print(f"{len(list((output / 'boots').iterdir()))} boots")
        for one in judged:
            shown = {key: one[key] for key in ("metric", "verdict", "ratio", "low", "high")}
            print(one["subject"]["workload"], json.dumps(shown), flush=True)
        return judged

    def check_left_alone(self) -> None:
        """Check that the machine is as it was."""
        state = self.ask(_STATE)
        assert state == self._state, f"the machine was\n{self._state}\nand is\n{state}"
        print("the machine is as it was", flush=True)


def _argv(words: Sequence[str], on: str) -> list[str]:
    return [str(paths.ROOT / "bin/fscale"), *words, "--on", on]
