# SPDX-License-Identifier: GPL-2.0-only
"""An option whose value names nothing, as one of an empty shell variable, is not ignored."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from fscale.cli import app
from fscale.model.errors import FscaleError

RUN = {"--workload", "--fs", "--media", "--mode"}
SIDES = ["--base", "ext4", "--new", "ext4:mount=commit=1"]
COMMANDS: dict[str, tuple[list[str], set[str]]] = {
    "run": (["run", "quick", "--dry-run"], RUN),
    "vm run": (["vm", "run", "quick", "--dry-run"], RUN),
    "vm exec": (["vm", "exec", "--dry-run"], {"--fs"}),
    "vm crash": (
        ["vm", "crash", "--fs", "ext4", "--dry-run"],
        {"--fs", "--fsck", "--mount-options"},
    ),
    "ab": (["ab", *SIDES, "--dry-run"], {"--workload", "--media", "--mode"}),
    "ab guests": (["ab", "--base", "kernel:6.1", "--new", "kernel:6.12", "--dry-run"], RUN),
    "noise": (["noise", "--fs", "ext4", "--dry-run"], {"--workload", "--media", "--mode", "--fs"}),
    "gate": (["gate", *SIDES, "--dry-run"], {"--workload"}),
    "simulate": (["simulate", "--dry-run"], {"--workload", "--fs", "--media", "--free"}),
    "commute": (["commute", "--dry-run"], {"--fs", "--kernel", "--calls"}),
}
CASES = [
    (command, option, value)
    for command, (_, options) in COMMANDS.items()
    for option in sorted(options)
    for value in ("", " ", ",")
    if (option, value) != ("--fsck", ",")
]


@pytest.mark.parametrize(("command", "option", "value"), CASES)
def test_a_value_that_names_nothing_is_refused(
    command: str, option: str, value: str, tmp_path: Path
) -> None:
    words = [*COMMANDS[command][0], "--output", str(tmp_path / "out"), option, value]
    words += ["--", "true"] if command == "vm exec" else []
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, FscaleError), done.output
    assert done.exception.code == 2
    assert not (tmp_path / "out").exists()


def test_no_profiler_is_a_choice(tmp_path: Path) -> None:
    """The suite's profiles can be left out."""
    words = ["run", "quick", "--dry-run", "--output", str(tmp_path / "out"), "--profile", ""]
    assert CliRunner().invoke(app, [*words, "--workload", "DRBL", "--cores", "1"]).exit_code == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--fs", "ext4", "--fsck", "fsck 'x"], "--fsck fsck 'x: No closing quotation"),
        (["--fs", "ext4:set=/sys/x=1"], "set= does not apply to a crash test"),
        (["--fs", "ext4:4"], "without partitions"),
    ],
)
def test_what_a_crash_test_cannot_do_is_refused(options: list[str], says: str) -> None:
    done = CliRunner().invoke(app, ["vm", "crash", "--dry-run", *options])
    assert isinstance(done.exception, FscaleError)
    assert says in str(done.exception)
