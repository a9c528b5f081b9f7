# SPDX-License-Identifier: GPL-2.0-only
"""The shell completes commands, options, and the names of what is there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fscale.commands.options.completion import complete_workloads
from fscale.model import paths
from tests.support.runner import fake_bench


def completed(line: str) -> set[str]:
    """What bash is offered for the last word of a line, by the contract of typer's script."""
    words = line.split(" ")
    environment = {
        **os.environ,
        "PYTHONPATH": str(paths.ROOT),
        "_FSCALE_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    argv = [sys.executable, "-m", "fscale"]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_script_for_bash_asks_this_program() -> None:
    environment = {**os.environ, "PYTHONPATH": str(paths.ROOT), "_FSCALE_COMPLETE": "source_bash"}
    argv = [sys.executable, "-m", "fscale"]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert "_FSCALE_COMPLETE=complete_bash" in done.stdout


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("fscale his", {"history"}),
        ("fscale run smo", {"smoke"}),
        ("fscale run smoke --repe", {"--repetitions"}),
        ("fscale run smoke --fs ext4,bt", {"ext4,btrfs"}),
        ("fscale noise --fs xf", {"xfs"}),
        ("fscale ab --media nul", {"null_blk", "null_hdd", "null_ssd"}),
        ("fscale ab --suite smo", {"smoke"}),
        ("fscale run smoke --cores po", {"powers"}),
        ("fscale run smoke --set wor", {"workloads=", "workers_per_cpu="}),
    ],
)
def test_words_are_completed(line: str, offered: set[str]) -> None:
    assert completed(line) == offered


def test_workloads_are_those_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "BENCH", fake_bench(tmp_path))
    assert complete_workloads("MW") == ["MWCL"]
    assert complete_workloads("DRBL,exi") == ["DRBL,exim"]


@pytest.mark.parametrize(
    ("started", "slow"),
    [
        ("app(['--help'], standalone_mode=False)", {"pydantic", "numpy", "fscale.commands.run"}),
        ("app(['run', '--help'], standalone_mode=False)", {"scipy", "fscale.commands.compare"}),
        ("command_tree()", {"matplotlib", "pandas", "scipy.stats", "scipy.optimize"}),
        ("import fscale.runner.run, fscale.commands.options.ending", {"matplotlib", "pandas"}),
        ("import fscale.analysis.formats.tables", {"matplotlib", "pandas", "scipy"}),
        # In a guest, which has none of these, a run ends with it.
        ("import fscale.analysis.conclusion", {"matplotlib", "scipy", "jinja2"}),
    ],
)
def test_no_command_waits_for_what_only_some_need(started: str, slow: set[str]) -> None:
    """Completion and `--help` start the program, too: half a second each would be felt."""
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; from fscale.cli import *; {started}; print({slow} & sys.modules.keys())",
        ],
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.endswith("set()\n")
