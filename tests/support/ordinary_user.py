# SPDX-License-Identifier: GPL-2.0-only
"""Runs a command as a user without privileges, also where root keeps the repository to itself."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from fscale.apps.namespace import private_mounts
from fscale.model.paths import ROOT

NOBODY = 65534


def run(
    argv: Sequence[object], tree: Path, directory: Path, env: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command in a directory of a tree that it needs, as nobody. Needs root."""
    words = [sys.executable, "-m", __name__, str(tree), str(directory), *map(str, argv)]
    env = env | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(words, env=env, capture_output=True, text=True, check=False)


def _closed(tree: Path) -> Path | None:
    """The topmost directory above that others may not enter."""
    return next((p for p in reversed(tree.parents) if not p.stat().st_mode & 0o001), None)


def _open_ways(trees: list[Path]) -> None:
    """Let everybody reach the trees, in a mount namespace of our own: no mode is changed.

    A directory on the way that others may not enter is covered with an empty one that they may,
    and the trees below it are mounted there where they were.
    """
    private_mounts()
    held = {tree: os.open(tree, os.O_PATH) for tree in trees}
    closed = {directory for tree in trees if (directory := _closed(tree))}
    for directory in closed:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", directory], check=True)
    for tree, descriptor in held.items():
        if closed.intersection(tree.parents):
            tree.mkdir(parents=True, exist_ok=True)
            source = f"/proc/{os.getpid()}/fd/{descriptor}"
            subprocess.run(["mount", "--no-canonicalize", "--bind", source, tree], check=True)


def _main(tree: str, directory: str, *argv: str) -> None:
    _open_ways([Path(name).resolve() for name in (ROOT, sys.prefix, sys.base_prefix, tree)])
    os.chdir(directory)
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    os.execv(argv[0], argv)


if __name__ == "__main__":
    _main(*sys.argv[1:])
