# SPDX-License-Identifier: GPL-2.0-only
"""What is tried on the test machine: each proof is a function of it that fails by an assertion."""

import random
import signal
import time
from collections.abc import Callable

from tests.ssh.box import Box
from tests.ssh.kernels import kernel
from tests.ssh.machine import steps

MOMENTS = 5
LONGEST = 300.0
# Two boots a side are too few for a verdict, and each more takes minutes.
FEW = ["--repetitions", "4", "--fdr", "0.1", "--metric", "throughput"]
CELL = ["--workload", "MWCL", "--cores", "1", "--duration", "0.2", "--set", "warmup=0"]


def _ab(box: Box, name: str, base: str, new: str, *options: str) -> list[str]:
    sides = ["--base", base, "--new", new, "--suite", "smoke", *CELL]
    return ["ab", *sides, *options, "--output", str(box.place / name)]


def run(box: Box) -> None:
    """`doctor` and `run` under its own kernel."""
    assert box.fscale("doctor") == 0
    options = ["--fs", "tmpfs,ext4", "--repetitions", "1", "--output", str(box.place / "run")]
    assert box.fscale("run", "smoke", *CELL, *options) == 0


def same(box: Box) -> None:
    """The installed kernel against itself is not another one."""
    own = f"kernel:{box.own}"
    assert box.fscale(*_ab(box, "same", own, own, "--fs", "tmpfs", *FEW)) == 0
    judged = box.judgements(box.place / "same")
    assert judged and all(one["verdict"] in ("same", "undecided") for one in judged)


def found(box: Box) -> None:
    """A loop in ext4's creation of files, in a module of the same kernel, is found."""
    sides = kernel("none", steps()), kernel("create", steps())
    assert box.fscale(*_ab(box, "found", *sides, "--fs", "ext4", *FEW)) == 1
    (one,) = box.judgements(box.place / "found")
    assert one["verdict"] == "slower"


def _broken(plant: str, told: str) -> Callable[[Box], None]:
    def proof(box: Box) -> None:
        sides = kernel("none", steps()), kernel(plant, steps())
        control = ["--reset-command", box.reset, "--console-command", box.console]
        assert box.fscale(*_ab(box, plant, *sides, "--fs", "ext4", *FEW, *control)) == 1
        text = "".join(log.read_text() for log in (box.place / plant / "boots").glob("B*.log"))
        assert told in text, text

    proof.__doc__ = f"The kernel `{plant}` is told as what it is, and the other one is measured."
    return proof


def killed(box: Box) -> None:
    """Killed and interrupted at random moments, it resumes; `restore` brings the machine back."""
    own = f"kernel:{box.own}"
    argv = _ab(box, "killed", own, own, "--fs", "tmpfs", *FEW)
    for number in range(MOMENTS):
        process, seconds = box.start(*argv), random.uniform(0, LONGEST)
        time.sleep(seconds)
        process.send_signal((signal.SIGKILL, signal.SIGINT)[number % 2])
        print(f"ab: exit code {process.wait()} by a signal at {seconds:.0f} s", flush=True)
        assert box.fscale("restore") == 0
        box.check_left_alone()
    assert box.fscale(*argv) == 0
    box.judgements(box.place / "killed")


def cut(box: Box) -> None:
    """Connections that end in a cell and between boots cost a repetition."""
    own = f"kernel:{box.own}"
    process = box.start(*_ab(box, "cut", own, own, "--fs", "tmpfs", *FEW))
    for moment in ("farm.errand", "kexec.sh load"):
        while not box.ask(f"pgrep -f '[f]scale/{moment}|[f]scale.{moment}'"):
            time.sleep(1)
        box.ask("pkill -KILL -f 'sshd: root'")
    assert process.wait() == 0
    box.judgements(box.place / "cut")


PROOFS: dict[str, Callable[[Box], None]] = {
    "run": run,
    "same": same,
    "found": found,
    "panic": _broken("panic", "came back with its own kernel"),
    "hang": _broken("hang", "panicked or hung"),
    "mute": _broken("mute", "was reset"),
    "cut": cut,
    "killed": killed,
}
