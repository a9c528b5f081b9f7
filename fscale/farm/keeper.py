# SPDX-License-Identifier: GPL-2.0-only
"""Holds the machine that ssh reached: `python3 -m fscale.farm.keeper DIRECTORY OWNER`.

Nobody else gets the machine while it runs. It runs until its standard input ends, which is so also
if the connection breaks or the other end is killed, or until no line came for SILENT_SECONDS, as
from a network that is dead. Then it leaves the machine as it was.

An empty line says that the other end lives. Another one says that a kernel is booted now, and for
how many seconds nobody else gets the machine. The keeper that runs after the boot ends that time.
"""

import contextlib
import fcntl
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import IO

from fscale.farm.errand import BUSY, UNWANTED
from fscale.model import paths
from fscale.model.files import printable
from fscale.system.executor import make_directory

HELD = "held"
"""what it prints once it holds the machine, with the directories that killed commands left"""
BOOTS = "boots another kernel"
DIRECTORY = re.compile(r"/var/tmp/fscale\.[A-Za-z0-9]{10}")
VISITS = "fscale.*"
"""the directories of visits in /var/tmp"""
SILENT_SECONDS = 120.0
TASK_SECONDS = 300.0
"""how long a task may take to restore the machine"""
POLL_SECONDS = 0.1
LOCK_FILE = "held"
LEASE_FILE = "lease"
VISIT_FILE = "visit"
KEXEC = Path(__file__).with_name("kexec.sh")


def main() -> None:
    """Hold the machine until standard input ends."""
    # The end of a connection may also come as these signals (KillUserProcesses of systemd-logind),
    # which must not end the clean-up.
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    directory = Path(sys.argv[1])
    leaves = False
    owner, *gone = map(printable, sys.argv[2:])
    if not DIRECTORY.fullmatch(str(directory)):
        sys.exit(f"{directory} is not a directory of fscale")
    try:
        state = paths.state_dir()
        make_directory(state)
        with (state / LOCK_FILE).open("a+") as lock:
            _hold(lock, owner, gone)
            leaves = True
            (directory / UNWANTED).unlink(missing_ok=True)  # of a visit that ended with the machine
            print(HELD, *_adopt(directory), *_remove_stale(directory), flush=True)
            if seconds := _read_line():
                lease = {"owner": owner, "boot": _boot(), "since": _up(), "seconds": float(seconds)}
                _lasting(LEASE_FILE).write_text(json.dumps(lease))
                leaves = False
                return
            (directory / UNWANTED).touch()
            _await_tasks(directory)
    finally:
        if leaves:
            _kexec("leave", directory, stdout=sys.stderr)


def _kexec(*arguments: str | Path, stdout: int | IO[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", KEXEC, *arguments], stdout=stdout, text=True, check=False)


def _adopt(directory: Path) -> list[str]:
    """Take over the directory of the last visit, if that did not end, and return its name."""
    last = _lasting(VISIT_FILE)
    other = last.read_text() if last.exists() else ""
    if other == str(directory):
        return []
    adopted = ""
    if DIRECTORY.fullmatch(other):
        adopted = _kexec("adopt", directory, other, stdout=subprocess.PIPE).stdout
    last.write_text(str(directory))
    return adopted.split()


def _remove_stale(directory: Path) -> list[str]:
    """Remove and return the directories of visits that a boot ended before they held the machine.

    Those that are younger than the boot may be of others, who are about to be refused.
    """
    booted = time.time() - _up()
    removed = []
    for other in Path("/var/tmp").glob(VISITS):
        ours = DIRECTORY.fullmatch(str(other)) and (other / "lib/fscale").is_dir()
        if ours and other != directory and other.lstat().st_mtime < booted:
            shutil.rmtree(other, ignore_errors=True)
            removed.append(str(other))
    return removed


def _read_line() -> str:
    """Wait for a line that is not empty; empty: the other end is gone."""
    line = ""
    while not line.endswith("\n"):
        ready, _, _ = select.select([0], [], [], SILENT_SECONDS)
        piece = os.read(0, 100) if ready else b""
        if not piece:
            return ""
        line = (line + piece.decode()).lstrip()
    return line


def _hold(lock: IO[str], owner: str, gone: Sequence[str]) -> None:
    """Take the lock, and write down for whom and since when. Leases of `gone` owners are void."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        sys.exit(f"it is in use: {lock.read(500).strip() or 'unknown owner'}")
    with contextlib.suppress(OSError, ValueError, KeyError):
        lease = json.loads(_lasting(LEASE_FILE).read_text())
        since = lease["since"] if lease["boot"] == _boot() else 0
        if lease["owner"] not in (owner, *gone) and _up() < since + lease["seconds"]:
            sys.exit(f"it is in use: {lease['owner']} {BOOTS}")
    _lasting(LEASE_FILE).unlink(missing_ok=True)
    lock.truncate(0)
    since = datetime.now().astimezone().isoformat(sep=" ", timespec="minutes")
    lock.write(f"by {owner} since {since} by its clock\n")
    lock.flush()


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _up() -> float:
    """Seconds since the boot; the clock of a machine may be wrong after one."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _lasting(name: str) -> Path:
    directory = paths.lasting_dir()
    make_directory(directory)
    return directory / name


def _await_tasks(directory: Path) -> None:
    """Wait until the tasks have restored the machine, or hang."""
    end = time.monotonic() + TASK_SECONDS
    with (directory / BUSY).open("w") as busy:
        while time.monotonic() < end:
            time.sleep(POLL_SECONDS)
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(busy, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return


if __name__ == "__main__":
    main()
