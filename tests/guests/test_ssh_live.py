# SPDX-License-Identifier: GPL-2.0-only
"""Kernels that an emulated machine boots over ssh; tests.ssh has the proofs."""

import subprocess
import sys

import pytest

from fscale.model import paths
from tests.ssh.laboratory import missing
from tests.ssh.proofs import PROOFS


@pytest.mark.guest
@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("proof", PROOFS)
def test_a_machine_boots_kernels(proof: str) -> None:
    if proof == "labgrid" and missing():
        pytest.skip(f"not installed: {', '.join(missing())}")
    subprocess.run([sys.executable, "-m", "tests.ssh", proof], cwd=paths.ROOT, check=True)
