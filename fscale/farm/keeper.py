# SPDX-License-Identifier: GPL-2.0-only
"""Holds the machine that ssh reached: `python3 -m fscale.farm.keeper DIRECTORY OWNER`.

Nobody else gets the machine while it runs. It runs until its standard input ends, which is so also
if the connection breaks or the other end is killed. Then it removes the directory.
"""

import fcntl
import re
import shutil
import signal
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


def main() -> None:
    """Hold the machine until standard input ends."""
    # The end of a connection may also come as this signal, which must not end the clean-up.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    directory, owner = Path(sys.argv[1]), printable(sys.argv[2])
    if not DIRECTORY.fullmatch(str(directory)):
        sys.exit(f"{directory} is not a directory of fscale")
    try:
        state = paths.state_dir()
        make_directory(state)
        with (state / LOCK_FILE).open("a+") as lock:
            _hold(lock, owner)
            print(HELD, flush=True)
            sys.stdin.buffer.read()
            _await_tasks(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _hold(lock: IO[str], owner: str) -> None:
    """Take the lock, and write down for whom and since when."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        sys.exit(f"it is in use: {lock.read(500).strip() or 'unknown owner'}")
    lock.truncate(0)
    since = datetime.now().astimezone().isoformat(sep=" ", timespec="minutes")
    lock.write(f"by {owner} since {since} by its clock\n")
    lock.flush()


def _await_tasks(directory: Path) -> None:
    """Wait until the tasks have restored the machine; their standard input has ended, too."""
    time.sleep(0.1)
    with (directory / BUSY).open("w") as busy:
        fcntl.flock(busy, fcntl.LOCK_EX)


if __name__ == "__main__":
    main()
