# SPDX-License-Identifier: GPL-2.0-only
"""The journal of machine changes, and the lock that allows one run at a time on a machine.

The journal is a file of JSON lines: `{"seq": 3, "do": {...}}` is on disk before change 3 is made,
and `{"seq": 3, "undone": true}` follows once it is undone. An undo is idempotent, so the loss of
the last line is harmless. The file is removed when nothing is left to undo.
"""

import contextlib
import fcntl
import json
import os
import shlex
import textwrap
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Annotated

from pydantic import Field, TypeAdapter, ValidationError

from fscale.model.errors import FscaleError
from fscale.model.files import printable
from fscale.model.terminal import say
from fscale.runner.machine.affinity import Affinity
from fscale.runner.machine.changes import (
    Cgroup,
    Change,
    CpuOffline,
    KernelFile,
    LoopDevice,
    Module,
    Mount,
    NullBlock,
    Partitions,
    RunProcesses,
    TempDir,
)
from fscale.system.executor import Executor, make_directory

AnyChange = Annotated[
    Affinity
    | CpuOffline
    | Mount
    | LoopDevice
    | Partitions
    | TempDir
    | Cgroup
    | RunProcesses
    | Module
    | NullBlock
    | KernelFile,
    Field(discriminator="kind"),
]
_CHANGES: TypeAdapter[AnyChange] = TypeAdapter(AnyChange)
_MOST = 300  # characters in which a change is told by its fields

_COMMAND = 120  # characters of the command line that holds the machine


def _nothing() -> contextlib.AbstractContextManager[object]:
    return contextlib.nullcontext()


@contextlib.contextmanager
def exclusive(state: Path, wait: float = 0) -> Iterator[None]:
    """Hold the lock of the machine.

    Raises:
        FscaleError: another run still holds it after `wait` seconds.
    """
    make_directory(state)
    # Loads of other users reach their mount points through it, also where an earlier version made
    # it with a strict umask.
    state.chmod(0o755)
    with _appended(state / "lock") as file:
        deadline = time.monotonic() + wait
        free = _locked(file)
        if not free and wait:
            say(f"waiting up to {wait:g} s for {_holder(file)}", error=True)
        while not free:
            if time.monotonic() >= deadline:
                raise FscaleError(
                    f"{_holder(file)} is running on this machine; wait for it (--wait SECONDS), or "
                    "stop it with Ctrl-C or SIGTERM"
                )
            time.sleep(0.1)
            free = _locked(file)
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _holder(file: IO[str]) -> str:
    """Name the process that holds the lock, its user, since when it does, and its command line."""
    file.seek(0)
    about = [f"pid {file.read().strip() or 'unknown'}"]
    process = Path("/proc", about[0].removeprefix("pid "))
    with contextlib.suppress(OSError, KeyError):  # it has ended, or its user has no name
        about.append(f"user {process.owner()}")
    since = datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime)
    text = f"another fscale ({', '.join(about)}, since {since:%d %b %H:%M:%S}"
    with contextlib.suppress(OSError):
        text += f": {textwrap.shorten(_command(process), _COMMAND)}"
    return f"{text})"


def _command(process: Path) -> str:
    """The command line of a process, without what Python was started with."""
    words = (process / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
    names = [word.rpartition("/")[2] for word in words]
    start = names.index("fscale") + 1 if "fscale" in names else 1
    return printable(shlex.join(words[start:]))


def _appended(path: Path) -> IO[str]:
    """Open a file to append to. Only its owner can change it, whatever the umask."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644), "a+")


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Journal:
    """Records changes before making them, and undoes them in reverse order.

    `shield` wraps every change and every undo: the runner defers signals there. A signal halfway
    through a change would undo it before the command that makes it has ended, and a second Ctrl-C
    would prevent the machine from being restored.
    """

    def __init__(
        self,
        path: Path,
        do: Executor,
        shield: Callable[[], contextlib.AbstractContextManager[object]] = _nothing,
    ) -> None:
        self.path = path
        self.do = do
        self._shield = shield
        self._file: IO[str] | None = None
        self._open: dict[int, Change] = {}
        self.next = 1  # the number of the next change
        self.warnings: list[str] = []
        """what could not be restored, where that is no failure"""

    def apply(self, change: Change) -> int:
        """Record a change, make it, and return its number for `undo`."""
        number = self.next
        self.next += 1
        with self._shield():
            if not self.do.dry:
                self._write({"seq": number, "do": change.model_dump(mode="json")})
            self._open[number] = change
            change.apply(self.do)
        return number

    def undo(self, number: int) -> None:
        """Undo one change.

        Raises:
            NotUndone: this failed; the change stays in the journal.
        """
        with self._shield():
            setting = self._open[number]
            setting.undo(self.do)
            self.warnings += setting.unrestored
            del self._open[number]
            if not self.do.dry:
                self._write({"seq": number, "undone": True})

    @contextlib.contextmanager
    def change(self, change: Change) -> Iterator[None]:
        """Apply the change inside the `with` block, and undo it at the end."""
        number = self.next
        try:
            self.apply(change)
            yield
        finally:
            if number in self._open:
                self.undo(number)

    def undo_all(self) -> list[str]:
        """Undo all remaining changes, newest first, and return the failures.

        Processes are killed before anything else.
        """
        failures = []
        with self._shield():
            for change in self._open.values():
                if isinstance(change, RunProcesses | Cgroup) and not self.do.dry:
                    change.kill()
            for number in sorted(self._open, reverse=True):
                try:
                    self.undo(number)
                except (FscaleError, OSError) as error:
                    failures.append(str(error))
            if not self._open:
                self.close()
                if not self.do.dry:
                    self.path.unlink(missing_ok=True)
        return failures

    def close(self) -> None:
        """Close the file without removing it."""
        if self._file:
            self._file.close()
            self._file = None

    def _write(self, record: dict[str, object]) -> None:
        if self._file is None:
            make_directory(self.path.parent)
            self._file = _appended(self.path)
            directory = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def load(self) -> list[Change]:
        """Read the changes that an earlier run left, so that `undo_all` undoes them.

        Raises:
            FscaleError: the journal is damaged.
        """
        try:
            text = self.path.read_text()
        except FileNotFoundError:
            return []
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            # A crash interrupted the write of the last line, so its change was never made.
            os.truncate(self.path, len(whole.encode()))
        for line in whole.splitlines():
            try:
                record = json.loads(line)
                if "do" in record:
                    self._open[record["seq"]] = _CHANGES.validate_python(record["do"])
                else:
                    self._open.pop(record["seq"], None)
            except (ValueError, KeyError, ValidationError) as error:
                raise FscaleError(
                    f"{self.path} is damaged ({error}); restore the machine by hand (bring CPUs "
                    f"online, remove mounts and loop devices of {self.path.parent}), then remove "
                    "this file"
                ) from None
            self.next = max(self.next, record["seq"] + 1)
        return list(self._open.values())


def recover(state: Path) -> tuple[list[str], list[str]]:
    """Undo what an earlier run left behind; the caller holds the lock.

    Returns the changes that the run left, and the failures of undoing them.
    """
    journal = Journal(state / "journal", Executor())
    left = journal.load()
    what = [
        f"{s.__class__.__name__} {text if len(text) <= _MOST else s.show()}"
        for s in reversed(left)
        for text in [s.model_dump_json(exclude={"kind"})]
    ]
    failures = journal.undo_all()
    for text in journal.warnings:
        say(f"warning: {text}", error=True)
    return what, failures
