# SPDX-License-Identifier: GPL-2.0-only
"""Where things are: the repository's own files, and the runner's state on the machine."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"
SUITES = CONFIGS / "suites"
FILESYSTEMS = CONFIGS / "filesystems"
MEDIA = CONFIGS / "media"
SCHEMAS = ROOT / "docs" / "schemas"
BENCH = ROOT / "build" / "microbench" / "fscale-bench"
LOCKS = ROOT / "build" / "lockprofile" / "fscale-locks"
TRACEFS = Path("/sys/kernel/tracing")

# Debian keeps mkfs and losetup outside an ordinary user's PATH.
TOOL_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])


def state_dir() -> Path:
    """The directory of the journal, the lock and the mount points.

    It does not depend on the run, so that the next start finds what an earlier run left behind.
    """
    if os.geteuid() == 0 and os.access("/run", os.W_OK):
        return Path("/run/fscale")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.access(runtime, os.W_OK):
        return Path(runtime) / "fscale"
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "fscale"
