# SPDX-License-Identifier: GPL-2.0-only
"""Runs commands on another machine by OpenSSH, over one connection.

The user's configuration, agent, jump hosts and known hosts count. No password is asked for, and an
unknown host key is refused unless that configuration accepts it. What the machine prints is read up
to a limit, and nothing of it is executed.
"""

import contextlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from fscale.farm.pipes import Tail
from fscale.model.errors import FscaleError, MissingTool
from fscale.model.files import printable
from fscale.system.executor import summarise_failure

READY = b"fscale-ready\n"
MOST_OUTPUT = 64 << 10
ENDED = 255
"""exit code of ssh itself"""
_OPTIONS = (
    *("-T", "-oBatchMode=yes", "-oConnectTimeout=15", "-oLogLevel=ERROR"),
    *("-oServerAliveInterval=10", "-oServerAliveCountMax=6"),
    *("-oClearAllForwardings=yes", "-oForwardX11=no", "-oPermitLocalCommand=no"),
    *("-oRemoteCommand=none", "-oRequestTTY=no"),
)


class Lost(FscaleError):  # noqa: N818 - it says what happened
    """The connection does not exist any more."""


class Connection:
    """A connection to a machine. Its processes there lose their standard input when it ends."""

    def __init__(self, host: str, control: Path) -> None:
        self.host = host
        # Without its socket, ssh would make another connection.
        self._argv = ["ssh", *_OPTIONS, f"-oControlPath={control}", "-oProxyCommand=false", host]

    def start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a command there, with pipes as its standard input, output and error."""
        return _start([*self._argv, shlex.join(command)])

    def run(self, command: Sequence[str], write: Callable[[IO[bytes]], None] | None = None) -> str:
        """Run a command there, and return what it printed; `write` writes its standard input.

        Raises:
            Lost: the connection ended.
            FscaleError: the command failed; the text has what it printed to standard error.
        """
        process = self.start(command)
        assert process.stdin and process.stdout and process.stderr
        try:
            errors = Tail(process.stderr)
            with contextlib.suppress(BrokenPipeError), process.stdin as file:
                if write:
                    write(file)
            output = process.stdout.read(MOST_OUTPUT + 1)
        except BaseException:
            process.kill()
            process.wait()
            raise
        process.stdout.close()
        if len(output) > MOST_OUTPUT:
            process.kill()
        code, text = process.wait(), errors.text()
        if len(output) > MOST_OUTPUT:
            raise FscaleError(f"{self.host} printed more than {MOST_OUTPUT} bytes; nothing is used")
        if code == ENDED:
            raise Lost(f"the connection to {self.host} ended: {text or 'no reason given'}")
        if code:
            raise FscaleError(f"{self.host}: {summarise_failure(text) or f'exit code {code}'}")
        return printable(output.decode(errors="replace"))


@contextlib.contextmanager
def connected(host: str) -> Iterator[Connection]:
    """Connect to a machine, whose name is as in `ssh NAME`.

    Raises:
        MissingTool: this machine has no OpenSSH client.
        FscaleError: the machine cannot be reached, or refuses the user; the text has ssh's reason.
    """
    if shutil.which("ssh") is None:  # the user's, wherever it is
        raise MissingTool("ssh is not installed; apt-get install openssh-client")
    # The path of a socket has at most 107 bytes.
    directory = Path(tempfile.mkdtemp(prefix="fscale-ssh-", dir="/tmp"))
    control = directory / "control"
    argv = ["ssh", *_OPTIONS, "-oControlMaster=yes", f"-oControlPath={control}", host]
    master = _start([*argv, f"echo {READY.decode().strip()} && exec cat"])
    assert master.stdin and master.stdout and master.stderr
    try:
        errors = Tail(master.stderr)
        _await_ready(master.stdout, host, errors)
        yield Connection(host, control)
    finally:
        master.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            master.wait(timeout=10)
        master.kill()
        master.wait()
        shutil.rmtree(directory, ignore_errors=True)


def _await_ready(output: IO[bytes], host: str, errors: Tail) -> None:
    """Read what a shell may print when it starts, until the line that follows."""
    read = 0
    while line := output.readline(4096):
        read += len(line)
        if line == READY:
            return
        if read > MOST_OUTPUT:
            break
    said = errors.text() if read <= MOST_OUTPUT else "its shell prints a lot"
    reason = summarise_failure(said).rstrip(".")
    raise FscaleError(f"cannot connect to {host}: {reason or 'no reason given'}; try `ssh {host}`")


def _start(argv: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start ssh, which Ctrl-C at the terminal does not reach."""
    return subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=dict(os.environ),
    )
