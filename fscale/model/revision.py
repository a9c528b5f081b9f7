# SPDX-License-Identifier: GPL-2.0-only
"""Which commit of fscale this is."""

import os
import subprocess

from fscale.model import paths


def revision() -> str | None:
    """The commit of this checkout, with `-dirty` when files differ from it.

    A guest has a copy without a history; its host says what it copied.
    """
    if told := os.environ.get("FSCALE_REVISION"):
        return told
    try:
        argv = ["git", "-C", str(paths.ROOT), "describe", "--always", "--dirty", "--abbrev=40"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
