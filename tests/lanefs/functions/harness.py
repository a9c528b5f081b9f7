# SPDX-License-Identifier: GPL-2.0-only
"""Runs function tests, each in a process and a directory of its own, with a time limit.

A test is a function of a `Place`. It returns when all is well, raises Failed with what is wrong, or
Skipped with what the file system or the kernel lacks.
"""

import ctypes
import errno
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

LIMIT = 300.0
libc = ctypes.CDLL(None, use_errno=True)
_tests: dict[str, Callable[["Place"], None]] = {}
_long: set[str] = set()
_portion = 1.0


class Failed(Exception):  # noqa: N818 - it says what happened
    """The file system did something wrong."""


class Skipped(Exception):  # noqa: N818
    """The file system cannot do it, and need not."""


@dataclass(frozen=True)
class Place:
    """Where a test works: an empty directory, and what is below it."""

    directory: Path
    device: str | None
    """None: the mount is not ours to change"""
    mount_point: Path
    filesystem: str = ""
    options: list[str] = field(default_factory=list)

    def remount(self, *options: str) -> None:
        """Change the options of the mount: `ro`, `rw`."""
        self.own()
        run("mount", "-o", ",".join(["remount", *options]), str(self.mount_point))

    def cycle(self, *options: str) -> None:
        """Unmount and mount again."""
        self.unmount()
        self.mount(*options)

    def unmount(self) -> None:
        """Unmount."""
        self.own()
        run("umount", str(self.mount_point))

    def mount(self, *options: str) -> None:
        """Mount with the configured options and these."""
        argv = ["mount", "-t", self.filesystem]
        if chosen := ",".join([*self.options, *options]):
            argv += ["-o", chosen]
        run(*argv, self.own(), str(self.mount_point))

    def data_moves(self) -> bool:
        """Whether data does not stay in its block, as in a log."""
        lines = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
        return any(line[1] == str(self.mount_point) and "victims=" in line[3] for line in lines)

    def in_place(self) -> None:
        """Skipped where data does not stay in its block."""
        if self.data_moves():
            raise Skipped("data moves")

    def own(self) -> str:
        """The device; Skipped when the mount is not ours."""
        if self.device is None:
            raise Skipped("the mount is not ours")
        return self.device

    def own_lanefs(self, why: str) -> None:
        """Skipped where the mount is not ours, or not lanefs, because of `why`."""
        self.own()
        if self.filesystem != "lanefs":
            raise Skipped(why)


def elsewhere(directory: Path) -> Place:
    """A place on whatever file system `directory` is on, which is not ours to change."""
    point = directory.absolute()
    while not point.is_mount():
        point = point.parent
    return Place(directory, None, point)


def run(*argv: str) -> str:
    """Run a command that must succeed; its output."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def test(function: Callable[[Place], None]) -> Callable[[Place], None]:
    """Register a test."""
    _tests[function.__name__] = function
    return function


def long_test(function: Callable[[Place], None]) -> Callable[[Place], None]:
    """Register a test that takes 1 s or more in a guest; a sample leaves it out."""
    _long.add(function.__name__)
    return test(function)


def shorten(portion: float) -> None:
    """Put load on for this portion of the time that tests ask for."""
    global _portion  # noqa: PLW0603
    _portion = portion


def load_ends(seconds: float) -> float:
    """When load that begins now for `seconds`, or their portion, ends; of `time.monotonic()`."""
    return time.monotonic() + seconds * _portion


def equal(found: object, right: object, what: str) -> None:
    """Fail unless the two are equal."""
    if found != right:
        raise Failed(f"{what}: {str(found)[:300]}, right is {str(right)[:300]}")


def check(condition: bool, what: str) -> None:
    """Fail with `what` unless the condition holds."""
    if not condition:
        raise Failed(what)


@contextmanager
def fails(code: int, what: str) -> Iterator[None]:
    """The block must raise OSError with this errno."""
    try:
        yield
    except OSError as error:
        if error.errno == code:
            return
        found = errno.errorcode.get(error.errno or 0, str(error))
        raise Failed(f"{what} gives {found}, right is {errno.errorcode[code]}") from None
    raise Failed(f"{what} succeeds, right is {errno.errorcode[code]}")


def called(result: int, what: str) -> int:
    """What a function of `libc` has returned; OSError when it failed, Skipped if there is none."""
    if result < 0:
        code = ctypes.get_errno()
        if code == errno.ENOSYS:
            raise Skipped(f"no {what}")
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


@contextmanager
def optional(what: str) -> Iterator[None]:
    """The block may raise EOPNOTSUPP, ENOSYS, ENOTTY or EINVAL: the test is skipped then."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOTTY, errno.EINVAL):
            raise Skipped(f"no {what} ({errno.errorcode[error.errno]})") from None
        raise


@contextmanager
def optional_elsewhere(place: Place, what: str) -> Iterator[None]:
    """The same, but lanefs must have it."""
    if place.filesystem == "lanefs":
        yield
        return
    with optional(what):
        yield


@contextmanager
def opened(path: Path | str, flags: int = os.O_RDONLY) -> Iterator[int]:
    """A descriptor."""
    fd = os.open(path, flags)
    try:
        yield fd
    finally:
        os.close(fd)


def open_direct(path: Path, flags: int) -> int:
    """A descriptor for direct I/O; Skipped where there is none (tmpfs before Linux 6.6)."""
    with optional("O_DIRECT"):
        return os.open(path, flags | os.O_DIRECT)


def children(count: int, work: Callable[[int], None], seconds: float = 120) -> None:
    """Run `work(n)` in `count` processes at once; Failed with what the first failing one said."""
    running: dict[int, int] = {}
    for number in range(count):
        pid = os.fork()
        if pid == 0:
            _limit(seconds)
            _leave(lambda n=number: work(n))  # type: ignore[misc]
        running[pid] = number
    failed = []
    while running:
        pid, status = os.wait()
        number = running.pop(pid)
        if status:
            failed.append(f"process {number} ended with {os.waitstatus_to_exitcode(status)}")
    if failed:
        raise Failed("; ".join(failed))


def _limit(seconds: float) -> None:
    """End this process after a time, whatever its parent does with the signal."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(seconds))


def _leave(work: Callable[[], None]) -> None:
    """End this process with the outcome of `work`: exit code 0, 1 or 77, the reason on fd 1."""
    code, text = 0, ""
    try:
        work()
    except Skipped as error:
        code, text = 77, str(error)
    except Failed as error:
        code, text = 1, str(error)
    except BaseException:
        code, text = 1, traceback.format_exc(limit=-3)
    if text:
        os.write(1, f"{text}\n".encode(errors="replace"))
    os._exit(code)


@dataclass(frozen=True)
class Verdict:
    """How a test ended."""

    name: str
    status: str
    """ok, failed, skipped"""
    text: str
    seconds: float


def names() -> list[str]:
    """All tests."""
    return list(_tests)


def short_names() -> list[str]:
    """The tests of a sample."""
    return [name for name in _tests if name not in _long]


def one(name: str, place: Place, limit: float = LIMIT) -> Verdict:
    """Run a test in a directory of its own, which is removed."""
    started = time.monotonic()
    place.directory.mkdir()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        os.dup2(write, 1)
        os.dup2(write, 2)
        os.setsid()
        _limit(limit)
        _leave(lambda: _tests[name](place))
    os.close(write)
    with os.fdopen(read, errors="replace") as output:
        text = output.read().strip()
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - started
    if code == -signal.SIGALRM:
        text = f"no end after {limit:.0f} s; {text}"
    elif code < 0:
        text = f"signal {-code}; {text}"
    kind = {0: "ok", 77: "skipped"}.get(code, "failed")
    # A test that failed may have left the mount read-only, or none at all, or a full disk.
    try:
        if kind == "failed" and place.device is not None:
            subprocess.run(["umount", str(place.mount_point)], capture_output=True, check=False)
            place.mount()
        run("rm", "-rf", str(place.directory))
    except Failed as error:
        kind, text = "failed", f"{text}\nafter it: {error}".strip()
    return Verdict(name, kind, text, round(seconds, 2))


def all_of(chosen: list[str], place: Place) -> list[Verdict]:
    """Run tests in directories below the place's, one after the other; each verdict is printed."""
    verdicts = []
    for name in chosen or names():
        here = Place(
            place.directory / name, place.device, place.mount_point, place.filesystem, place.options
        )
        verdict = one(name, here)
        verdicts.append(verdict)
        text = f": {verdict.text}" if verdict.text else ""
        print(f"{verdict.status:8}{name} ({verdict.seconds} s){text}", flush=True)
        sys.stdout.flush()
    return verdicts
