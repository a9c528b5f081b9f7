# SPDX-License-Identifier: GPL-2.0-only
"""What is tried on the test machine: each proof is a function of it that fails by an assertion."""

from collections.abc import Callable

from tests.ssh.box import Box
from tests.ssh.kernels import kernel
from tests.ssh.machine import steps

CELL = ["--workload", "MWCL", "--cores", "1", "--duration", "0.2", "--set", "warmup=0"]


def _ab(box: Box, name: str, base: str, new: str, *options: str) -> int:
    sides = ["--base", base, "--new", new, "--suite", "smoke", *CELL]
    return box.fscale("ab", *sides, *options, "--output", str(box.place / name))


def run(box: Box) -> None:
    """`doctor` and `run` under its own kernel."""
    assert box.fscale("doctor") == 0
    options = ["--fs", "tmpfs,ext4", "--repetitions", "1", "--output", str(box.place / "run")]
    assert box.fscale("run", "smoke", *CELL, *options) == 0


def same(box: Box) -> None:
    """The installed kernel against itself is not another one."""
    own = f"kernel:{box.own}"
    assert _ab(box, "same", own, own, "--fs", "tmpfs", "--max-minutes", "1") == 0
    judged = box.judgements(box.place / "same")
    assert judged and all(one["verdict"] in ("same", "undecided") for one in judged)


def found(box: Box) -> None:
    """A loop in ext4's creation of files, in a module of the same kernel, is found."""
    sides = kernel("none", steps()), kernel("create", steps())
    limits = ["--repetitions", "4", "--fdr", "0.1", "--metric", "throughput"]
    assert _ab(box, "found", *sides, "--fs", "ext4", *limits) == 1
    (one,) = box.judgements(box.place / "found")
    assert one["verdict"] == "slower"


PROOFS: dict[str, Callable[[Box], None]] = {"run": run, "same": same, "found": found}
