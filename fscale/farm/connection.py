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
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from fscale.farm.pipes import Tail
from fscale.model.errors import FscaleError, MissingTool
from fscale.model.files import printable
from fscale.system.executor import summarise_failure

READY = b"fscale-ready\n"
MOST_OUTPUT = 64 << 10
ANSWER_SECONDS = 120.0
"""how long a short command may take; a kernel that hangs may keep its connections"""
GRACE_SECONDS = 10.0
ENDED = 255
"""exit code of ssh itself"""
_OPTIONS = (
    *("-T", "-oBatchMode=yes", "-oConnectTimeout=15", "-oLogLevel=ERROR"),
    *("-oServerAliveInterval=10", "-oServerAliveCountMax=6"),
    *("-oClearAllForwardings=yes", "-oForwardX11=no", "-oPermitLocalCommand=no"),
    *("-oControlPersist=no", "-oRemoteCommand=none", "-oRequestTTY=no"),
)


class Lost(FscaleError):  # noqa: N818 - it says what happened
    """The connection does not exist any more."""


class Connection:
    """A connection to a machine. Its processes there lose their standard input when it ends."""

    def __init__(self, host: str, control: Path, master: subprocess.Popen[bytes]) -> None:
        self.host = host
        self._control = control
        self._master = master
        self._late = ""
        # Without its socket, ssh would make another connection.
        self._argv = ["ssh", *_OPTIONS, f"-oControlPath={control}", "-oProxyCommand=false", host]

    def start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a command there, with pipes as its standard input, output and error."""
        return _start([*self._argv, shlex.join(command)])

    @contextlib.contextmanager
    def limited(self, seconds: float) -> Iterator[None]:
        """End the connection if the `with` block takes longer, and so all that waits for it."""

        def end() -> None:
            self._late = f"{self.host} did not answer within {seconds:.0f} s"
            self._master.kill()
            self._control.unlink(missing_ok=True)

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def lost(self, text: str) -> Lost:
        """The error that says why the connection ended; `text`: what ssh said."""
        reason = self._late or text or "no reason given"
        return Lost(f"the connection to {self.host} ended: {reason}")

    def run(
        self,
        command: Sequence[str],
        write: Callable[[IO[bytes]], None] | None = None,
        seconds: float | None = None,
    ) -> str:
        """Run a command there, and return what it printed; `write` writes its standard input.

        `seconds`: how long it may take; None: ANSWER_SECONDS.

        Raises:
            Lost: the connection ended, or the command did not.
            FscaleError: the command failed; the text has what it printed to standard error.
        """
        with self.limited(seconds or ANSWER_SECONDS):
            return self._run(command, write)

    def _run(self, command: Sequence[str], write: Callable[[IO[bytes]], None] | None) -> str:
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
            raise self.lost(text)
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
    connection = Connection(host, control, master)
    try:
        with connection.limited(ANSWER_SECONDS):
            _await_ready(master.stdout, host, Tail(master.stderr))
        yield connection
    finally:
        master.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            master.wait(timeout=GRACE_SECONDS)
        master.kill()
        master.wait()
        shutil.rmtree(directory, ignore_errors=True)


def _await_ready(output: IO[bytes], host: str, errors: Tail) -> None:
    """Read the line that a shell prints which prints nothing else."""
    if (line := output.readline(4096)) == READY:
        return
    if line:
        said = printable(line.decode(errors="replace")).strip()
        raise FscaleError(
            f"the shell of {host} prints {said[:80]!r} before each command; let its start-up "
            "files, such as ~/.bashrc, print only when they are interactive"
        )
    reason = summarise_failure(errors.text(GRACE_SECONDS)).rstrip(".")
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
