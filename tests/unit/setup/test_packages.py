# SPDX-License-Identifier: GPL-2.0-only
"""The Makefile's commands install what they call."""

import os
import subprocess
from pathlib import Path

from fscale.model.paths import ROOT
from tests.support.files import write_program


def recipe(target: str, path: str = os.environ["PATH"]) -> list[str]:
    """The commands of a target of the Makefile, which are not run."""
    argv = ["make", "--no-print-directory", "-n", "-C", str(ROOT), target]
    env = os.environ | {"PATH": path}
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env=env)
    return done.stdout.splitlines()


def test_the_report_is_of_the_run_that_was_measured(tmp_path: Path) -> None:
    # Each call of this one is a second later, as on a slow machine.
    clock = tmp_path / "date"
    write_program(clock, f'#!/bin/sh\necho >>"{tmp_path}/calls"; wc -l <"{tmp_path}/calls"\n')
    commands = recipe("run", f"{tmp_path}:{os.environ['PATH']}")
    names = [word for line in commands for word in line.split() if "results/quick-" in word]
    assert len(names) == 2
    assert len(set(names)) == 1


def test_check_installs_the_linter_before_it_runs() -> None:
    commands = recipe("check")
    lists = [word for line in commands for word in line.split() if word.startswith("setup/pack")]
    packages = [line.split() for name in lists for line in (ROOT / name).read_text().splitlines()]
    assert "shellcheck" in [words[0] for words in packages if words]
    words = [Path(line.split()[0]).name for line in commands]
    assert words.index("install.sh") < words.index("shellcheck")


def test_a_clone_below_a_blank_is_refused_in_one_sentence(tmp_path: Path) -> None:
    clone = tmp_path / "my clone"
    clone.mkdir()
    (clone / "Makefile").write_text((ROOT / "Makefile").read_text())
    argv = ["make", "-C", str(clone), "help"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode
    assert [line for line in done.stderr.splitlines() if "move the clone" in line]
    assert not done.stdout.count("make run")
