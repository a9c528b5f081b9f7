# SPDX-License-Identifier: GPL-2.0-only
"""Paths of the package's files, of the runner's state and of a user's cache."""

import hashlib
import os
from pathlib import Path

from fscale.model.errors import FscaleError

# All that is installed; beside it lies the rest of a clone, or other packages of Python.
PACKAGE = Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parent
IN_CLONE = (ROOT / "setup" / "install.sh").is_file()
CONFIGS = PACKAGE / "configs"
SUITES = CONFIGS / "suites"
FILESYSTEMS = CONFIGS / "filesystems"
MEDIA = CONFIGS / "media"
PAPERS = CONFIGS / "papers"
AGING = CONFIGS / "aging"
LOADS = CONFIGS / "loads"
TRACEFS = Path("/sys/kernel/tracing")

# On Debian, mkfs and losetup are not in the PATH of an ordinary user. An empty PATH would mean the
# current directory.
TOOL_PATH = os.pathsep.join(
    [os.environ.get("PATH") or os.defpath, "/usr/local/sbin", "/usr/sbin", "/sbin"]
)


def _of_user(variable: str, default: str) -> Path:
    """Return fscale's directory below that of a variable, or below a default in the home."""
    base = os.environ.get(variable)
    try:
        return (Path(base) if base else Path.home() / default) / "fscale"
    except RuntimeError:
        raise FscaleError(f"this user has no home directory; set {variable}, or HOME") from None


def cache_dir(of: str) -> Path:
    """Return the directory `of` in `$XDG_CACHE_HOME/fscale`, by default in `~/.cache/fscale`.

    Raises:
        FscaleError: the user has no home directory.
    """
    return _of_user("XDG_CACHE_HOME", ".cache") / of


def build_dir() -> Path:
    """Return the directory of compiled programs, one directory for each part.

    A package may contain it; a clone has `build`; else it is in the user's cache, apart for each
    place where fscale is installed.
    """
    if PREBUILT.is_dir():
        return PREBUILT
    if IN_CLONE:
        return ROOT / "build"
    try:
        return cache_dir("build") / hashlib.sha256(str(PACKAGE).encode()).hexdigest()[:16]
    except FscaleError:
        return Path("/nonexistent/.cache/fscale/build")  # which a message names, when it is needed


PREBUILT = PACKAGE / "build"
BUILD = build_dir()
BENCH = BUILD / "microbench" / "fscale-bench"
AGE = BUILD / "microbench" / "fscale-age"
LOCKS = BUILD / "lockprofile" / "fscale-locks"
PRIMITIVES = BUILD / "calibrate" / "fscale-primitives"
INTERPRETER = BUILD / "commute" / "fscale-commute"
SIMULATOR = BUILD / "sim" / "fscale-sim.so"
APPS = BUILD / "apps"


def config_dir(of: str) -> Path:
    """Return the directory `of` in `$XDG_CONFIG_HOME/fscale`, by default in `~/.config/fscale`.

    Raises:
        FscaleError: the user has no home directory.
    """
    return _of_user("XDG_CONFIG_HOME", ".config") / of


def package_files() -> list[Path]:
    """Return all files of the package, sorted, below PACKAGE.

    In a clone some directories of the package are links to directories beside it, into which
    `Path.rglob` does not descend.
    """
    return sorted(
        Path(directory, name)
        for directory, _, names in os.walk(PACKAGE, followlinks=True)
        for name in names
    )


def lasting_dir() -> Path:
    """Return the directory of what outlives a boot."""
    if os.geteuid() == 0:
        return Path("/var/lib/fscale")
    return _of_user("XDG_STATE_HOME", ".local/state") / os.uname().nodename


def state_dir() -> Path:
    """Return the directory of the journal of machine changes, the lock and the mount points.

    It does not depend on the run, so that the next run finds what an earlier one left behind. In a
    home, which machines may share, it is apart for each machine.
    """
    if os.geteuid() == 0 and os.access("/run", os.W_OK):
        return Path("/run/fscale")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.access(runtime, os.W_OK):
        return Path(runtime) / "fscale"
    return _of_user("XDG_STATE_HOME", ".local/state") / os.uname().nodename
