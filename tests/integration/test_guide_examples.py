# SPDX-License-Identifier: GPL-2.0-only
"""The examples of the guide work, and print lines like those that the pages show."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from fscale.model.errors import Exit
from fscale.model.paths import BENCH
from fscale.runner.profilers import usable
from fscale.system import powers
from tests.support.files import write_program
from tests.support.guide import Example, examples, page, same_shape
from tests.support.runner import command, environment

pytestmark = [
    pytest.mark.root,
    pytest.mark.live,
    pytest.mark.skipif(powers.no_mount() is not None, reason="mounts file systems: needs root"),
    pytest.mark.skipif(not BENCH.exists(), reason="the microbenchmark is not built"),
    pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="the examples have two cores"),
    pytest.mark.usefixtures("unchanged"),
]
# What was measured decides about these: a noisy machine may call the same file system slower.
JUDGES = ("bin/fscale ab ", "bin/fscale compare ")
WIDTH = 100


def run(example: Example, directory: Path) -> subprocess.CompletedProcess[str]:
    """A command as a reader types it, its two outputs as they come."""
    return subprocess.run(
        ["bash", "-c", example.command], cwd=directory, env=environment() | {"COLUMNS": str(WIDTH)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=200,
    )  # fmt: skip


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A directory with bin/fscale, which uses the tests' own state directory."""
    script = tmp_path / "bin" / "fscale"
    script.parent.mkdir()
    write_program(script, f'#!/bin/sh\nexec {shlex.join(command())} "$@"\n')
    return tmp_path


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "profilers"),
    [
        ("first-run.md", []),
        ("why-does-it-stop.md", ["locks", "cpu", "offcpu"]),
        ("did-my-patch-change-it.md", []),
    ],
)
def test_examples_print_what_the_page_shows(name: str, profilers: list[str], scratch: Path) -> None:
    _, lacking = usable(profilers)
    if lacking:
        pytest.skip("; ".join(f"{one}: {reason}" for one, reason in lacking.items()))
    for example in examples(page(name)):
        done = run(example, scratch)
        allowed = {Exit.GOOD, Exit.FAILED} if example.command.startswith(JUDGES) else {Exit.GOOD}
        assert done.returncode in allowed, done.stdout
        assert same_shape(example.shown, done.stdout.splitlines()), (
            f"{example.command}\n{done.stdout}\n--- the page shows\n" + "\n".join(example.shown)
        )
