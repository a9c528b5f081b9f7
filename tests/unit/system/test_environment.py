# SPDX-License-Identifier: GPL-2.0-only
"""What of a caller's environment reaches loads and tools."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fscale.model import paths
from fscale.model.errors import FscaleError
from fscale.runner.profilers.base import Tool
from fscale.system import environment
from fscale.system.executor import Executor

FALSE = """
from fscale.system.environment import undo_inherited
from fscale.system.executor import CommandFailed, Executor
undo_inherited()
try:
    Executor().run(["false"])
except CommandFailed:
    print("it failed")
"""


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "LD_AUDIT", "GLIBC_TUNABLES", "MALLOC_ARENA_MAX", "MKE2FS_CONFIG"]
)
def test_no_preload_and_no_allocator_reaches_a_load(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "")
    assert f"{name}=" not in Executor().run(["env"]).splitlines()
    assert environment.influential(os.environ) == [name]


def test_a_profiler_gets_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BPFTRACE_STRLEN", "7")
    tool = Tool(["true"], paths.ROOT / "log", BPFTRACE_MAX_MAP_KEYS="9")
    assert "BPFTRACE_STRLEN" not in tool._environment
    assert tool._environment["BPFTRACE_MAX_MAP_KEYS"] == "9"


@pytest.mark.parametrize("umask", [0o077, 0])
def test_a_load_has_a_plain_umask(umask: int) -> None:
    before = os.umask(umask)
    try:
        assert Executor().run(["sh", "-c", "umask"]) == "0022\n"
    finally:
        os.umask(before)


def test_an_ignored_sigchld_hides_no_failure() -> None:
    """The kernel would reap a child itself, and Python takes that for exit code 0."""
    argv = ["sh", "-c", f"trap '' CHLD; exec {sys.executable} -c \"$0\"", FALSE]
    done = subprocess.run(argv, cwd=paths.ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "it failed\n"


@pytest.mark.parametrize(
    ("directory", "variable"),
    [
        (lambda: paths.cache_dir("vm"), "XDG_CACHE_HOME"),
        (lambda: paths.config_dir("machines"), "XDG_CONFIG_HOME"),
        (paths.state_dir, "XDG_STATE_HOME"),
        (paths.lasting_dir, "XDG_STATE_HOME"),
    ],
)
def test_a_user_without_a_home_is_told_what_to_set(
    directory: Callable[[], Path], variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container may run a user that it does not know, and cron sets no HOME."""
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    monkeypatch.setattr(Path, "home", lambda: Path("~12345").expanduser())
    for name in (variable, "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(FscaleError, match=f"set {variable}, or HOME"):
        directory()


def test_an_empty_path_is_not_the_current_directory() -> None:
    code = "from fscale.model import paths; print(paths.TOOL_PATH.split(':'))"
    argv = [sys.executable, "-c", code]
    env = {**os.environ, "PATH": ""}
    done = subprocess.run(argv, cwd=paths.ROOT, env=env, capture_output=True, text=True, check=True)
    assert "''" not in done.stdout
    assert "/usr/bin" in done.stdout


@pytest.mark.parametrize("columns", ["0", "junk", "-5", "99999999", ""])
def test_a_width_that_is_none_hides_no_text(columns: str) -> None:
    code = (
        "import os; from fscale.system.environment import undo_inherited; undo_inherited(); "
        "from fscale.model.terminal import say; say('text' * 25); print(os.environ.get('COLUMNS'))"
    )
    argv = [sys.executable, "-c", code]
    env = {**os.environ, "COLUMNS": columns}
    done = subprocess.run(argv, cwd=paths.ROOT, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == f"{'text' * 25}\nNone\n"


def test_blocked_signals_and_soft_limits_are_undone() -> None:
    code = (
        "import signal; from fscale.system import environment as e; e.undo_inherited(); "
        "print(signal.pthread_sigmask(signal.SIG_BLOCK, ()), e.resource_limits())"
    )
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    try:
        argv = ["sh", "-c", f'ulimit -S -f 8; exec {sys.executable} -c "$0"', code]
        done = subprocess.run(argv, cwd=paths.ROOT, capture_output=True, text=True, check=True)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    assert done.stdout == "set() {}\n"
