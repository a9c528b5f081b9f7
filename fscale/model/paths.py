# SPDX-License-Identifier: GPL-2.0-only
"""Paths of the repository's files, of the runner's state and of a user's cache."""

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parent
CONFIGS = PACKAGE / "configs"
SUITES = CONFIGS / "suites"
FILESYSTEMS = CONFIGS / "filesystems"
MEDIA = CONFIGS / "media"
LOADS = CONFIGS / "loads"
SCHEMAS = PACKAGE / "schemas"
BENCH = ROOT / "build" / "microbench" / "fscale-bench"
LOCKS = ROOT / "build" / "lockprofile" / "fscale-locks"
TRACEFS = Path("/sys/kernel/tracing")

# On Debian, mkfs and losetup are not in the PATH of an ordinary user.
TOOL_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])


def cache_dir(of: str) -> Path:
    """Return the directory `of` in `$XDG_CACHE_HOME/fscale`, by default in `~/.cache/fscale`.

    Raises:
        RuntimeError: the user has no home directory.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "fscale" / of


def state_dir() -> Path:
    """Return the directory of the journal of machine changes, the lock and the mount points.

    It does not depend on the run, so that the next run finds what an earlier one left behind.
    """
    if os.geteuid() == 0 and os.access("/run", os.W_OK):
        return Path("/run/fscale")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.access(runtime, os.W_OK):
        return Path(runtime) / "fscale"
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "fscale"
