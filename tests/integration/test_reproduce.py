# SPDX-License-Identifier: GPL-2.0-only
"""`fscale reproduce` measures a claim in one run, which the same command resumes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fscale.model.errors import Exit
from fscale.model.paths import ROOT
from fscale.runner.selection import filesystem_of
from fscale.vm.rootfs import HOST_ONLY
from tests.support.runner import fscale
from tests.unit.commands.test_reproduce import OWN

pytestmark = pytest.mark.live


# What `vm exec` leaves out of a guest and a judgement needs.
JUDGING = ("matplotlib", "scipy", "pandas", "pyarrow", "PIL")


def claims(directory: Path) -> Path:
    """Claims about the file system of a directory, which take a moment to measure."""
    own = directory / "own.toml"
    own.write_text(
        OWN.replace("FS", filesystem_of(directory)).replace("duration = 1", "duration = 0.1")
    )
    return own


def test_what_was_measured_without_libraries_is_judged_elsewhere(tmp_path: Path) -> None:
    own, out = claims(tmp_path), tmp_path / "out"
    assert set(JUDGING) <= set(HOST_ONLY)
    missing = "".join(f"sys.modules[{name!r}] = None; " for name in JUDGING)
    words = ["reproduce", str(own), "--output", str(out), "--measure-only"]
    code = f"import sys; {missing}from fscale.__main__ import main; sys.argv[1:] = {words}; main()"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    assert not (out / "reproduced.html").exists()
    done = fscale("reproduce", own, "--run", out, "--json")
    (reads, _) = json.loads(done.stdout)
    assert reads["cores"] or "no figures" in reads["why"]
    assert (out / "reproduced.html").exists()


def test_a_claim_is_measured_and_resumed(tmp_path: Path) -> None:
    own, out = claims(tmp_path), tmp_path / "out"
    done = fscale("reproduce", own, "--output", out, "--json")
    assert done.returncode in (Exit.GOOD, Exit.FAILED, Exit.SKIPPED), done.stderr
    cells = sorted((out / "cells").iterdir())
    (reads, _) = json.loads(done.stdout)
    assert reads["cores"] or "no figures" in reads["why"]
    again = fscale("reproduce", own, "--output", out, "--json")
    # Cells that other load disturbed are measured again.
    assert "resuming: " in again.stderr
    assert sorted((out / "cells").iterdir()) == cells
    asked = [[one["claim"] for one in json.loads(run.stdout)] for run in (done, again)]
    assert asked[0] == asked[1]
