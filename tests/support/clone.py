# SPDX-License-Identifier: GPL-2.0-only
"""A copy of the clone that a test may change."""

import shutil
from pathlib import Path

from fscale.model import paths

# Directories at the top that are parts of the package by a link.
PARTS = tuple(sorted(path.name for path in paths.PACKAGE.iterdir() if path.is_symlink()))
CODE = ("bin", "build/microbench", "fscale", *PARTS)


def copy_clone(root: Path, *names: str) -> None:
    """Copy files and directories of the clone to `root`; links stay links."""
    for name in names:
        ignored = shutil.ignore_patterns("*.pyc")
        shutil.copytree(paths.ROOT / name, root / name, symlinks=True, ignore=ignored)
