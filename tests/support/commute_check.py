# SPDX-License-Identifier: GPL-2.0-only
"""Executes tests on a file system of this machine, and compares them with the model."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from fscale.commute.generate import ORDERS, PairTest
from fscale.commute.script import outcome, renumbered, written
from fscale.model import paths
from fscale.model.errors import FscaleError
from fscale.system.programs import made


def differences(tests: Sequence[PairTest], directory: Path) -> dict[str, list[str]]:
    """The lines that differ from the model's, by the id of the test: `- model`, `+ system`.

    `directory` is empty. FscaleError if the interpreter fails.
    """
    given = "".join(f"{line}\n" for test in tests for line in written(test))
    ended = subprocess.run(
        [made(paths.INTERPRETER), "check", directory, "/dev/stdin"],
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    runs = [renumbered(run.splitlines()) for run in ended.stdout.split("test ")[1:]]
    if ended.returncode or len(runs) != len(ORDERS) * len(tests):
        raise FscaleError(f"the interpreter failed: {ended.stderr.strip()}")
    system = iter(runs)
    found: dict[str, list[str]] = {}
    for test in tests:
        for model in (outcome(test, order) for order in ORDERS):
            head, *got = next(system)
            if (lines := [f"test {head}", *got]) != model:
                found[test.id] = _unequal(model, lines)
    return found


def _unequal(model: Sequence[str], system: Sequence[str]) -> list[str]:
    return [
        model[0],
        *(f"- {line}" for line in model if line not in system),
        *(f"+ {line}" for line in system if line not in model),
    ]
