# SPDX-License-Identifier: GPL-2.0-only
"""Holds the machine that ssh reached: `python3 -m fscale.farm.keeper DIRECTORY OWNER`.

Nobody else gets the machine while it runs. It runs until its standard input ends, which is so also
if the connection breaks or the other end is killed. Then it leaves the machine as it was.

A line of standard input says that another kernel is booted now, and for how many seconds nobody
else gets the machine. The keeper that runs after the boot ends that time.
"""

import contextlib
import fcntl
import json
import re
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import IO

from fscale.farm.errand import BUSY
from fscale.model import paths
from fscale.model.files import printable
from fscale.system.executor import make_directory

HELD = "held"
"""what it prints once it holds the machine"""
DIRECTORY = re.compile(r"/var/tmp/fscale\.[A-Za-z0-9]{10}")
LOCK_FILE = "held"
LEASE_FILE = "lease"
KEXEC = Path(__file__).with_name("kexec.sh")


def main() -> None:
    """Hold the machine until standard input ends."""
    # The end of a connection may also come as this signal, which must not end the clean-up.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    directory: Path | None = Path(sys.argv[1])
    owner = printable(sys.argv[2])
    assert directory
    if not DIRECTORY.fullmatch(str(directory)):
        sys.exit(f"{directory} is not a directory of fscale")
    try:
        state = paths.state_dir()
        make_directory(state)
        with (state / LOCK_FILE).open("a+") as lock:
            _hold(lock, owner)
            print(HELD, flush=True)
            if seconds := sys.stdin.readline():
                lease = {"owner": owner, "until": time.time() + float(seconds)}
                _lease().write_text(json.dumps(lease))
                directory = None
                return
            _await_tasks(directory)
    finally:
        if directory:
            subprocess.run(["sh", KEXEC, "leave", directory], stdout=sys.stderr, check=False)


def _hold(lock: IO[str], owner: str) -> None:
    """Take the lock, and write down for whom and since when."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        sys.exit(f"it is in use: {lock.read(500).strip() or 'unknown owner'}")
    with contextlib.suppress(OSError, ValueError):
        lease = json.loads(_lease().read_text())
        if lease["owner"] != owner and time.time() < lease["until"]:
            sys.exit(f"it is in use: {lease['owner']} boots another kernel")
    _lease().unlink(missing_ok=True)
    lock.truncate(0)
    since = datetime.now().astimezone().isoformat(sep=" ", timespec="minutes")
    lock.write(f"by {owner} since {since} by its clock\n")
    lock.flush()


def _lease() -> Path:
    directory = paths.lasting_dir()
    make_directory(directory)
    return directory / LEASE_FILE


def _await_tasks(directory: Path) -> None:
    """Wait until the tasks have restored the machine; their standard input has ended, too."""
    time.sleep(0.1)
    with (directory / BUSY).open("w") as busy:
        fcntl.flock(busy, fcntl.LOCK_EX)


if __name__ == "__main__":
    main()
