# SPDX-License-Identifier: GPL-2.0-only
"""The long proofs are run by hand, months apart: each still finds what it imports."""

import importlib

import pytest

from fscale.model import paths

SCRIPTS = sorted((paths.ROOT / "tests" / "validation").glob("[!_]*.py"))


@pytest.mark.parametrize("script", [path.stem for path in SCRIPTS])
def test_a_proof_can_be_started(script: str) -> None:
    importlib.import_module(f"tests.validation.{script}")
