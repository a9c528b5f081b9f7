# SPDX-License-Identifier: GPL-2.0-only
"""Finds the commit of this checkout of fscale."""

import os
import subprocess

from fscale.model import paths


def revision() -> str | None:
    """Return the commit of this checkout, with `-dirty` if files differ; None if unknown.

    A guest has a copy without Git's history; its host passes the commit in FSCALE_REVISION.
    """
    if told := os.environ.get("FSCALE_REVISION"):
        return told
    try:
        argv = ["git", "-C", str(paths.ROOT), "describe", "--always", "--dirty", "--abbrev=40"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
