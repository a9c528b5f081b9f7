# SPDX-License-Identifier: GPL-2.0-only
"""The packages as a user gets them: installed in minimal roots without the repository, and used."""

import os
import shutil
import subprocess
from pathlib import Path

from fscale.model import paths

# Where each kind is used. lanefs's module depends on the kernel alone, so also on the newest one.
SUITES = {
    "wheel": ("bookworm", "trixie"),
    "deb": ("bookworm", "trixie"),
    "dkms": ("bookworm", "trixie", "sid"),
}
HERE = Path(__file__).parent
_MADE = {
    "wheel": ("make wheel", "cp build/wheel/*.whl /shared"),
    "deb": (
        "make deb",
        "apt-get install -y -qq --no-install-recommends lintian >/dev/null",
        "lintian --fail-on error build/packages/*.deb",
        "cp build/packages/*.deb /shared",
    ),
    "dkms": (
        "apt-get update -qq",
        "apt-get build-dep -y -qq --no-install-recommends --indep-only ./ >/dev/null",
        "debian/rules binary-indep",
        "cp build/packages/lanefs-dkms_*.deb /shared",
    ),
}


def place(kind: str, suite: str) -> Path:
    """The directory that a root has as /shared."""
    return paths.ROOT / "build" / "packages" / suite / kind


def build(kind: str, suite: str) -> bool:
    """Build in a minimal root of a release, from what is committed."""
    shared = place(kind, suite)
    shutil.rmtree(shared, ignore_errors=True)
    shared.mkdir(parents=True)
    return _root(suite, shared, *_MADE[kind])


def use(kind: str, suite: str, *, everything: bool = False) -> bool:
    """Install what is in `place` in a minimal root, use it, and remove it: use.sh."""
    shared = place(kind, suite)
    shutil.copy(HERE / "use.sh", shared)
    return _root(suite, shared, f"bash /shared/use.sh {kind} {'all' if everything else ''}")


def _root(suite: str, shared: Path, *lines: str) -> bool:
    argv = [paths.ROOT / "setup" / "fresh-root.sh", *lines]
    environment = os.environ | {"SUITE": suite, "SHARED": str(shared)}
    return subprocess.run(argv, env=environment, check=False).returncode == 0
