# SPDX-License-Identifier: GPL-2.0-only
"""Runs a task on the machine that ssh reached: `python3 -m fscale.farm.errand DIRECTORY`.

Standard input has the task in one line. It stays open as long as the task is wanted: when it ends,
because somebody cancelled the task or the connection broke, or when the visit ends, the task is
terminated and so restores the machine. The answer (`fscale.farm.answer`) goes to standard output,
messages to standard error.
"""

import fcntl
import os
import select
import shutil
import signal
import sys
from pathlib import Path

from fscale.farm.answer import Header, pack, read_files
from fscale.farm.leash import run_leashed
from fscale.farm.task import Task
from fscale.model.errors import Exit

PROGRAM = ("python3", "-P", "-m", "fscale")
BUSY = "busy"
"""a file that every task locks while it runs"""
UNWANTED = "unwanted"
"""a file that the keeper makes when the visit ends"""


def main() -> None:
    """Run the task, and answer it."""
    # The end of a connection may also come as these signals, which must not end the clean-up. The
    # task must not ignore the one that terminates it.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: None)
    directory = Path(sys.argv[1])
    wire = _read_line()
    task = Task.model_validate_json(wire)
    path, spool = directory / f"{task.id}.json", directory / task.id
    header = Header(task=task.id, host=os.uname().nodename, code=Exit.USAGE)
    with (directory / BUSY).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        try:
            shutil.rmtree(spool, ignore_errors=True)  # of a task that ended with the machine
            spool.mkdir()
            path.write_bytes(wire)
            argv = [*PROGRAM, "cell", str(path), "--output", str(spool)]
            argv += ["--objects", str(directory / "objects")]
            end = directory / UNWANTED
            header.code = run_leashed(argv, sys.stderr.buffer, lambda: _ended() or end.exists())
            answer = pack(header, read_files(task, spool))
        except OSError as error:
            header.text = f"{error.filename}: {error.strerror}"
            answer = pack(header, {})
        finally:
            shutil.rmtree(spool, ignore_errors=True)
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()


def _read_line() -> bytes:
    """Read a line without reading ahead, so that `_ended` sees what follows."""
    line = b""
    while not line.endswith(b"\n") and (part := os.read(0, 1)):
        line += part
    return line


def _ended() -> bool:
    """Whether standard input has ended; nothing follows the task on it."""
    return bool(select.select([0], [], [], 0)[0])


if __name__ == "__main__":
    main()
