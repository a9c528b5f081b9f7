# SPDX-License-Identifier: GPL-2.0-only
"""What the gate's validation plants in lanefs fits its sources."""

import subprocess
from pathlib import Path

import pytest

from fscale.model.paths import ROOT

PLANTS = sorted((ROOT / "tests" / "validation" / "plants").glob("*.patch"))
OF_LANEFS = [plant for plant in PLANTS if "a/lanefs/" in plant.read_text()]


@pytest.mark.parametrize("plant", OF_LANEFS, ids=lambda plant: plant.stem)
def test_a_plant_applies(plant: Path) -> None:
    argv = ["git", "apply", "--check", str(plant)]
    done = subprocess.run(argv, cwd=ROOT / "fscale", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_there_are_some() -> None:
    assert len(OF_LANEFS) >= 2
