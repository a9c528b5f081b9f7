# SPDX-License-Identifier: GPL-2.0-only
"""The payload: a Python with nothing else runs a task's command, and is the same fscale."""

import subprocess
import sys
import tarfile
from pathlib import Path

from fscale.farm.payload import write_payload
from fscale.farm.task import identity
from fscale.model.revision import revision

CODE = """
import fscale.farm.errand, fscale.farm.keeper, fscale.commands.cell
from fscale.farm.task import identity
from fscale.model import paths
print(identity())
print(paths.BENCH)
"""


def written(package: Path) -> dict[Path, int]:
    """When each file of compiled code was written."""
    return {path: path.stat().st_mtime_ns for path in package.rglob("*.pyc")}


def test_the_payload_is_all_that_a_machine_needs(tmp_path: Path) -> None:
    with (tmp_path / "payload").open("wb") as file:
        write_payload(file)
    there = tmp_path / "there"
    with tarfile.open(tmp_path / "payload") as archive:
        archive.extractall(there)
    compiled = written(there / "pydantic")
    environment = {"PYTHONPATH": str(there), "FSCALE_REVISION": revision() or "", "PATH": ""}
    # -S: without the packages of this Python.
    done = subprocess.run(
        [sys.executable, "-S", "-P", "-c", CODE],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr
    assert compiled and written(there / "pydantic") == compiled
    assert done.stdout.splitlines() == [
        identity(),
        str(there / "fscale/build/microbench/fscale-bench"),
    ]
