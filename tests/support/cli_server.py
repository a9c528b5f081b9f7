# SPDX-License-Identifier: GPL-2.0-only
"""Command lines of fscale in children of a process that has imported it: a start costs a second.

Each command line has a process of its own, forked from a server that runs none itself and has
nothing but the imports of fscale: what one leaves in memory, the next does not find. The server
ends with the process that made it.
"""

import atexit
import gc
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

from fscale.model import paths

_LENGTH = 1 << 20  # bytes of a request, at most
# What commands import only once they need it.
_LATE = (
    "scipy.stats",
    "fscale.analysis.formats.comparison",
    "fscale.analysis.report.comparison_page",
)


class CliServer:
    """Starts command lines of fscale with one state directory.

    What fscale reads of its environment when it is imported is that of `environ`. `main` runs a
    command line.
    """

    def __init__(
        self, state: Path, environ: Mapping[str, str], main: str = "fscale.cli:main"
    ) -> None:
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            argv = [sys.executable, "-m", __name__, str(theirs.fileno()), str(state), main]
            self._process = subprocess.Popen(
                argv, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=environ,
                cwd=paths.ROOT,
            )  # fmt: skip
        atexit.register(self.close)

    def close(self) -> None:
        """End it."""
        self.socket.shutdown(socket.SHUT_RDWR)
        self._process.wait()

    def run(
        self, words: list[str], environ: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a command line to its end; TimeoutExpired, once the process is killed."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            code = ask(self.socket, words, environ, (out.fileno(), err.fileno()), timeout)
            out.seek(0)
            err.seek(0)
            said = out.read().decode(), err.read().decode()
        return subprocess.CompletedProcess(["fscale", *words], code, *said)


def ask(
    server: socket.socket,
    words: list[str],
    environ: Mapping[str, str],
    streams: tuple[int, int],
    timeout: float | None = None,
) -> int:
    """Have a command line run by a server; its exit code, as of subprocess.

    `streams` are its standard output and standard error. Raises TimeoutExpired after `timeout`
    seconds, once the process is killed.
    """
    request = json.dumps([str(Path.cwd()), dict(environ), words]).encode()
    socket.send_fds(server, [request], list(streams))
    pid = int(server.recv(64))
    try:
        server.settimeout(timeout)
        return int(server.recv(64))
    except TimeoutError:
        os.kill(pid, signal.SIGKILL)
        server.settimeout(None)
        server.recv(64)
        raise subprocess.TimeoutExpired(words, timeout or 0) from None
    finally:
        server.settimeout(None)


def serve(theirs: socket.socket, state: Path, name: str) -> None:
    """Run one command line after the other, until nobody asks any more."""
    paths.state_dir = lambda: state
    main = pkgutil.resolve_name(name)  # what it imports may keep the name of `state_dir`
    pkgutil.resolve_name("fscale.cli:command_tree")()
    for late in _LATE:
        pkgutil.resolve_name(late)
    gc.freeze()  # else a child's first collection copies all of it

    while True:
        request, fds, _, _ = socket.recv_fds(theirs, _LENGTH, 2)
        if not request:
            return
        pid = os.fork()
        if pid == 0:
            theirs.close()
            for stream, fd in enumerate(fds, 1):
                os.dup2(fd, stream)
                os.close(fd)
            directory, environ, words = json.loads(request)
            os.chdir(directory)
            os.environ.clear()
            os.environ.update(environ)
            sys.argv = [str(paths.ROOT / "fscale" / "__main__.py"), *words]
            _run(main)
        for fd in fds:
            os.close(fd)
        theirs.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        theirs.send(str(os.waitstatus_to_exitcode(status)).encode())


def _run(main: Callable[[], None]) -> NoReturn:
    """Run a command line and end the process, which never takes all of its modules to pieces."""
    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2]), sys.argv[3])
