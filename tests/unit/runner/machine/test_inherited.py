# SPDX-License-Identifier: GPL-2.0-only
"""What a run got from its caller is recorded, told, and compared."""

import ast
import resource
import subprocess
import sys

import pytest

from fscale.model import paths
from fscale.model.facts import find_rule
from fscale.runner.machine import inherited
from tests.support.synthetic import machine

READ = "from fscale.runner.machine import inherited; print(inherited.read())"


@pytest.mark.parametrize(
    ("by", "name", "value"),
    [
        (["nice", "-n", "7"], "nice", "7"),
        (["chrt", "--batch", "0"], "scheduling", "SCHED_BATCH"),
        (["setarch", "-R"], "personality", "00040000"),
        (["prlimit", "--fsize=1073741824"], "file size limit", "1073741824"),
        (["prlimit", "--stack=16777216:"], "stack size", "16777216"),
        (["ionice", "-c", "idle"], "io_priority", "idle"),
        (["ionice", "-c", "best-effort", "-n", "7"], "io_priority", "best-effort: prio 7"),
    ],
)
def test_recorded(by: list[str], name: str, value: str) -> None:
    argv = [*by, sys.executable, "-c", READ]
    done = subprocess.run(argv, cwd=paths.ROOT, capture_output=True, text=True, check=True)
    assert f"{name!r}: {value!r}" in done.stdout


def test_of_a_plain_shell_nothing() -> None:
    argv = ["prlimit", "--stack=8388608:", sys.executable, "-c", READ]
    done = subprocess.run(argv, cwd=paths.ROOT, capture_output=True, text=True, check=True)
    assert not {"stack size", "io_priority", "timer_slack", "memory_nodes"} & set(
        ast.literal_eval(done.stdout)
    )


def test_soft_limits_are_recorded_told_only_by_compare() -> None:
    found = inherited.read()
    assert found["most open files"] == str(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    limits = {name: value for name, value in found.items() if name.startswith("most ")}
    assert len(limits) == 3
    assert not inherited.warnings(machine(2, inherited=limits), {})
    rule = find_rule("machine.inherited.most open files")
    assert (rule.on_resume, rule.on_compare) == ("ignore", "note")


def test_told_and_compared() -> None:
    odd = machine(2, inherited={"nice": "7", "seccomp": "2"})
    first, second = inherited.warnings(odd, {"LD_PRELOAD": "libeatmydata.so", "EDITOR": "vi"})
    assert "nice 7" in first and "seccomp" not in first
    assert second.startswith("LD_PRELOAD: ")
    assert not inherited.warnings(machine(2), {"EDITOR": "vi"})
    rule = find_rule("machine.inherited.nice")
    assert (rule.on_resume, rule.on_compare) == ("refuse", "note")
