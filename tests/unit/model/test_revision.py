# SPDX-License-Identifier: GPL-2.0-only
"""The revision that a run records."""

import subprocess
from pathlib import Path

import pytest

from fscale.model.revision import revision


def test_a_hook_of_another_repository_does_not_change_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git names that repository to its hooks, and to commands of a rebase."""
    monkeypatch.delenv("FSCALE_REVISION", raising=False)
    here = revision()
    if here is None:
        pytest.skip("this is no clone")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    assert revision() == here
