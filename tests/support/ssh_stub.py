# SPDX-License-Identifier: GPL-2.0-only
"""Stands for OpenSSH's `ssh`: the other machine is this one, with programs of its own.

The directory SSH_STUB has in `bin` what that machine finds first, and in files what happens:
`refused`: what ssh says instead of connecting; `cut`: while it exists, connections break;
`profile`: what a shell runs first. A line of `processes` has the process group of a command.
"""

import contextlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

PLACE = Path(os.environ["SSH_STUB"])


def relay(source: int, target: int) -> None:
    """Copy until the end, which is passed on."""
    try:
        while piece := os.read(source, 1 << 16):
            while piece:
                piece = piece[os.write(target, piece) :]
    except OSError:
        pass
    os.close(target)
    os.close(source)


def main() -> int:
    options = [word for word in sys.argv[1:] if word.startswith("-")]
    host, command = sys.argv[1 + len(options) :]
    with (PLACE / "log").open("a") as log:
        log.write(f"{host}: {command[:80]!r}\n")
    if (PLACE / "refused").exists():
        print((PLACE / "refused").read_text(), file=sys.stderr)
        return 255
    (control,) = (Path(o.partition("=")[2]) for o in options if o.startswith("-oControlPath="))
    master = "-oControlMaster=yes" in options
    if master:
        control.touch()
    elif not control.exists():
        print("no connection, and the proxy command is false", file=sys.stderr)
        return 255
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, "PATH": f"{PLACE / 'bin'}:{os.environ['PATH']}"}
    if (PLACE / "profile").exists():
        command = f"{(PLACE / 'profile').read_text()}\n{command}"
    child = subprocess.Popen(
        ["sh", "-c", command], env=environment, start_new_session=True, **pipes
    )
    with (PLACE / "processes").open("a") as processes:
        processes.write(f"{child.pid}\n")
    assert child.stdin and child.stdout and child.stderr
    to_child = os.dup(child.stdin.fileno())
    child.stdin.close()
    ends = [(child.stdout.fileno(), 1), (child.stderr.fileno(), 2)]
    readers = [threading.Thread(target=relay, args=end, daemon=True) for end in ends]
    threading.Thread(target=relay, args=(0, to_child), daemon=True).start()
    for reader in readers:
        reader.start()
    while child.poll() is None:
        if (PLACE / "cut").exists() or not (master or control.exists()):
            control.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # closed, if the command ended just now
                os.write(2, b"connection reset by the test\n")
            os._exit(255)
        time.sleep(0.01)
    for reader in readers:
        reader.join()
    if master:
        control.unlink(missing_ok=True)
    return 255 if child.returncode < 0 else child.returncode


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
