# SPDX-License-Identifier: GPL-2.0-only
"""A pytest plugin: a live test that failed while the machine stood still is tried again.

A virtual machine's CPUs can stand still for a second (the host resumes it, or takes its memory
away). What a live test says of rates, waits and windows then says nothing. So a watcher with
real-time priority sleeps on each CPU and notes when it was not woken in time. A live test that
failed, and in whose time such a gap lies, is tried again, at most twice, and named at the end. One
that failed without a gap has failed.

A watcher knows as well that its CPU went offline. Tests that run beside others fail all together
then: one of them takes from the others the CPUs that they count on, and belongs in
tests/integration.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

SLEEP = 0.02  # seconds
GAP = 0.1  # seconds that a wake-up may be late
TRIES = 3
PATIENCE = 60  # seconds


def watch(cpu: int, parent: int, beat: Path) -> None:
    """Print the beginning and end (CLOCK_MONOTONIC) of each gap on one CPU, while `parent` is.

    The file `beat` is touched at each wake-up, after what was to be printed; one beside it, with
    the suffix .offline, when the kernel has moved the watcher away, as it does with the tasks of a
    CPU that goes offline.
    """
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, [cpu])
    with contextlib.suppress(PermissionError):  # without root, load looks like a gap as well
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    last = time.monotonic()
    while os.getppid() == parent:
        now = time.monotonic()
        if os.sched_getaffinity(0) != {cpu}:
            beat.with_suffix(".offline").touch()
            with contextlib.suppress(OSError):  # it is offline still
                os.sched_setaffinity(0, [cpu])
        if now - last > SLEEP + GAP:
            print(last, now, flush=True)
        try:
            beat.write_text(str(now))
        except FileNotFoundError:  # the tests have ended, and this was about to be
            return
        last = now
        time.sleep(SLEEP)


class Stalls:
    """The gaps on all CPUs so far."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._gaps = directory / "gaps"
        self._beats = [directory / str(cpu) for cpu in _cpus()]
        self.again: list[str] = []

    @property
    def offline(self) -> list[int]:
        """The CPUs that went offline, so far."""
        return sorted(int(path.stem) for path in self.directory.glob("*.offline"))

    def wait(self) -> None:
        """Until all watchers have been awake after this call: what was before is noted then."""
        now = time.monotonic()
        while any(float(beat.read_text() or 0) < now for beat in self._beats):
            if time.monotonic() > now + PATIENCE:
                raise RuntimeError(f"a watcher has not been awake for {PATIENCE} s")
            time.sleep(SLEEP)

    def since(self, began: float) -> list[float]:
        """Lengths in seconds of the gaps that ended after `began` (CLOCK_MONOTONIC)."""
        self.wait()
        edges = [line.split() for line in self._gaps.read_text().splitlines()]
        return [float(end) - float(start) for start, end in edges if float(end) > began]


@contextlib.contextmanager
def watched() -> Iterator[Stalls]:
    """A watcher on each CPU."""
    with tempfile.TemporaryDirectory(prefix="fscale-stalls-", dir=_memory()) as name:
        directory = Path(name)
        stalls = Stalls(directory)
        with (directory / "gaps").open("ab") as output:
            watchers = []
            for cpu in _cpus():
                beat = directory / str(cpu)
                beat.touch()
                argv = [sys.executable, __file__, str(cpu), str(os.getpid()), str(beat)]
                watchers.append(subprocess.Popen(argv, stdout=output))
        try:
            stalls.wait()
            yield stalls
        finally:
            for watcher in watchers:
                watcher.kill()
                watcher.wait()


def _cpus() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def _memory() -> Path | None:
    """Where a watcher never waits for a disk."""
    shm = Path("/dev/shm")
    return shm if os.access(shm, os.W_OK) else None


_STALLS = pytest.StashKey[Stalls]()


def pytest_configure(config: pytest.Config) -> None:
    """Start the watchers; the workers of a session look at their controller's."""
    if hasattr(config, "workerinput"):
        config.stash[_STALLS] = Stalls(Path(config.workerinput["stalls"]))
    elif not config.option.collectonly:
        stack = contextlib.ExitStack()
        config.stash[_STALLS] = stack.enter_context(watched())
        config.add_cleanup(stack.close)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker where the watchers of its controller write."""
    node.workerinput["stalls"] = str(node.config.stash[_STALLS].directory)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a live test, again where it failed beside a gap."""
    if item.get_closest_marker("live") is None:
        return None
    stalls = item.config.stash[_STALLS]
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for left in reversed(range(TRIES)):
        began = time.monotonic()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if not any(report.failed for report in reports):
            break
        gaps = stalls.since(began)
        if not gaps or not left:
            break
        stalls.again.append(f"{item.nodeid}: the machine stood still for {max(gaps):.2f} s")
        item._initrequest()  # type: ignore[attr-defined] # it gets fixtures of its own again
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker hands over what it tried again; its controller fails if a CPU went offline."""
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["again"] = config.stash[_STALLS].again
    elif _beside_others(config) and config.stash[_STALLS].offline:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _beside_others(config: pytest.Config) -> bool:
    return bool(config.getoption("numprocesses", None))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take it; a worker that crashed has none."""
    node.config.stash[_STALLS].again += getattr(node, "workeroutput", {}).get("again", [])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Name what was tried again, and CPUs that went offline beside other tests."""
    stalls = config.stash.get(_STALLS, None)
    if stalls is None:
        return
    if _beside_others(config) and stalls.offline:
        terminalreporter.section("CPUs went offline while tests ran beside each other")
        terminalreporter.line(", ".join(map(str, stalls.offline)))
    if stalls.again:
        terminalreporter.section("failed while the machine stood still, and tried again")
        for line in stalls.again:
            terminalreporter.line(line)


if __name__ == "__main__":
    watch(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
