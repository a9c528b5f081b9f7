# SPDX-License-Identifier: GPL-2.0-only
"""Runs programs of the cluster's and the laboratory's managers on this machine."""

import os

from fscale.system.executor import Executor

PATIENCE = 300.0
"""seconds for a program: sbatch waits itself while Slurm is busy"""


class _Commands(Executor):
    """Runs them in the user's environment, which names their servers."""

    def environment(self) -> dict[str, str]:
        return {**os.environ, **super().environment()}


def run(*argv: str) -> str:
    """Run a program to its end, and return what it printed.

    Raises:
        CommandFailed: it is not installed, failed, or took longer than PATIENCE.
    """
    return _Commands().run(list(argv), timeout=PATIENCE)
