# SPDX-License-Identifier: GPL-2.0-only
"""Finds the commit of this checkout of fscale."""

import os
import subprocess

from fscale.model import paths

_OF_HOOKS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR")


def revision() -> str | None:
    """Return the commit of this checkout, with `-dirty` if files differ; None if unknown.

    A guest has a copy without Git's history; its host passes the commit in FSCALE_REVISION.
    """
    if told := os.environ.get("FSCALE_REVISION"):
        return told
    try:
        argv = ["git", "-C", str(paths.ROOT), "describe", "--always", "--dirty", "--abbrev=40"]
        # In a hook, or an `exec` of a rebase, these name the user's repository.
        env = {name: value for name, value in os.environ.items() if name not in _OF_HOOKS}
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True, env=env)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
