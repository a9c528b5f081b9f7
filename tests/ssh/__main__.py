# SPDX-License-Identifier: GPL-2.0-only
"""Tries `--on ssh:testbox` with a machine in QEMU: python -m tests.ssh [KERNEL].

`doctor`, `run`, and `ab` of KERNEL with itself in two boots a side; the machine must run its own
kernel afterwards. KERNEL is by default the installed one. Under emulation it takes minutes.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fscale.model import paths
from tests.ssh.machine import running, steps

PORT = 22722
CELL = ["--workload", "MWCL", "--cores", "1", "--duration", "0.2", "--fs", "tmpfs"]


def main() -> None:
    """Run the commands, and print what they print and how long they take."""
    with tempfile.TemporaryDirectory(prefix="fscale-ssh-test-") as named:
        place = Path(named)
        with running(steps(), place, PORT) as config:
            ssh = place / "bin/ssh"
            ssh.parent.mkdir()
            ssh.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {config} "$@"\n')
            ssh.chmod(0o755)
            ask = [str(ssh), "-oBatchMode=yes", "testbox"]
            own = _output([*ask, "uname -rv; cat /proc/cmdline"])
            kernel = f"kernel:{sys.argv[1] if len(sys.argv) > 1 else own.split()[0]}"
            environment = {**os.environ, "PATH": f"{ssh.parent}:{os.environ['PATH']}"}
            for words in (
                ["doctor"],
                ["run", "smoke", *CELL, "--repetitions", "1", "--output", f"{place}/run"],
                [
                    *("ab", "--base", kernel, "--new", kernel, "--suite", "smoke", *CELL),
                    *("--max-minutes", "1", "--output", f"{place}/ab"),
                ],
            ):
                began = time.monotonic()
                argv = [str(paths.ROOT / "bin/fscale"), *words, "--on", "ssh:testbox"]
                done = subprocess.run(argv, env=environment, check=False)
                seconds = time.monotonic() - began
                print(f"{words[0]}: exit code {done.returncode} after {seconds:.0f} s", flush=True)
            assert _output([*ask, "uname -rv; cat /proc/cmdline"]) == own
            assert not _output([*ask, "ls -d /var/tmp/fscale* || true"])
            print("the machine is as it was")


def _output(argv: list[str]) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main()
