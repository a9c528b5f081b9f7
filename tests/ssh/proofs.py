# SPDX-License-Identifier: GPL-2.0-only
"""What is tried on the test machine: each proof is a function of it that fails by an assertion."""

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from fscale.ab.loop import judge_cells
from fscale.ab.record import Looks
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.analysis.metrics import THROUGHPUT
from fscale.model.errors import Exit
from fscale.model.results import Cell
from tests.ssh.box import JUDGED, Box
from tests.ssh.kernels import kernel
from tests.ssh.laboratory import laboratory
from tests.ssh.machine import steps

MOMENTS = int(os.environ.get("FSCALE_KILLS", "20"))
LONGEST = 200.0
COMMITS, PLANTED = 8, 5
BOOTS, SPLITS = 10, 400
# Two boots a side are too few for a verdict, and each more takes minutes.
FEW = ["--repetitions", "4", *JUDGED]
CELL = ["--workload", "MWCL", "--cores", "1", "--duration", "0.2", "--set", "warmup=0"]


def _ab(box: Box, name: str, base: str, new: str, *options: str) -> list[str]:
    sides = ["--base", base, "--new", new, "--suite", "smoke", *CELL]
    return ["ab", *sides, *options, "--output", str(box.place / name)]


def _own(box: Box, name: str) -> list[str]:
    """The installed kernel against itself."""
    own = f"kernel:{box.own}"
    return _ab(box, name, own, own, "--fs", "tmpfs", *FEW)


def run(box: Box) -> None:
    """`doctor` and `run` under its own kernel."""
    assert box.fscale("doctor") == 0
    options = ["--fs", "tmpfs,ext4", "--repetitions", "1", "--output", str(box.place / "run")]
    assert box.fscale("run", "smoke", *CELL, *options) == 0


def same(box: Box) -> None:
    """The installed kernel against itself is not another one."""
    assert box.fscale(*_own(box, "same")) == 0
    judged = box.judgements(box.place / "same")
    assert judged and all(one["verdict"] in ("same", "undecided") for one in judged)


def found(box: Box) -> None:
    """A loop in ext4's creation of files, in a module of the same kernel, is found."""
    sides = kernel("none", steps()), kernel("create", steps())
    assert box.fscale(*_ab(box, "found", *sides, "--fs", "ext4", *FEW)) == 1
    (one,) = box.judgements(box.place / "found")
    assert one["verdict"] == "slower"


def where(box: Box) -> None:
    """Profiles under both kernels name the lock that is held during that loop."""
    outputs = []
    for plant in ("none", "create"):
        outputs.append(str(box.place / f"where-{plant}"))
        cell = ["--workload", "MWCM", "--cores", "2", "--duration", "2", "--repetitions", "6"]
        named = kernel(plant, steps()).removeprefix("kernel:")
        options = ["--fs", "ext4", "--kernel", named, "--profile", "locks", "--output", outputs[-1]]
        assert box.fscale("run", "smoke", *cell, *options) == 0
    locks = box.compared(*outputs)["locks"]
    print(json.dumps(locks), flush=True)
    assert any("i_rwsem" in one["lock"] and one["share"] > one["base_share"] for one in locks)


def _broken(plant: str, told: str, *options: str) -> Callable[[Box], None]:
    def proof(box: Box) -> None:
        sides = kernel("none", steps()), kernel(plant, steps())
        control = ["--reset-command", box.reset, "--console-command", box.console]
        control += ["--boot-timeout", "180"]
        assert box.fscale(*_ab(box, plant, *sides, "--fs", "ext4", *FEW, *control, *options)) == 1
        text = "".join(log.read_text() for log in (box.place / plant / "boots").glob("B*.log"))
        assert told in text, text

    proof.__doc__ = f"The kernel `{plant}` is told as what it is, and the other one is measured."
    return proof


def killed(box: Box) -> None:
    """Killed and interrupted at random moments, it resumes; `restore` brings the machine back.

    The loop is found as in a comparison that nobody interrupted.
    """
    argv: list[str] = []
    sides = kernel("none", steps()), kernel("create", steps())
    for number in range(MOMENTS):
        # It would be over after some more.
        argv = _ab(box, f"killed-{number // 2}", *sides, "--fs", "ext4", *FEW)
        process, seconds = box.start(*argv), random.uniform(0, LONGEST)
        time.sleep(seconds)
        process.send_signal((signal.SIGKILL, signal.SIGINT)[number % 2])
        code = process.wait()
        print(f"ab: exit code {code} by a signal at {seconds:.0f} s", flush=True)
        assert code in (-signal.SIGKILL, Exit.INTERRUPTED)
        assert box.fscale("restore", "--wait", "1200") == 0
        box.check_left_alone()
    assert box.fscale(*argv) == 1
    (one,) = box.judgements(Path(argv[-1]))
    assert one["verdict"] == "slower"


def cut(box: Box) -> None:
    """Connections that end in a cell and between boots cost a repetition."""
    process = box.start(*_own(box, "cut"))
    for moment in ("farm.errand", "kexec.sh load"):
        seen = f"pgrep -f '[f]scale/{moment}|[f]scale.{moment}'"
        # A load takes less than a second.
        box.ask(f"until {seen}; do sleep 0.1; done; pkill -KILL -f 'sshd: root'")
    assert process.wait() == 0
    box.judgements(box.place / "cut")


def other_user(box: Box) -> None:
    """An ordinary user with sudo, behind a jump host, boots kernels."""
    assert box.fscale(*_own(box, "other-user"), on="ssh:testbox-user") == 0
    box.judgements(box.place / "other-user")


def refusals(box: Box) -> None:
    """An unknown host key and a full disk are refused; a clock that is a year late is not."""
    options = [*CELL, "--fs", "tmpfs", "--repetitions", "1", "--output"]
    name = str(box.place / "unknown")
    assert "key" in box.refused("run", "smoke", *options, name, on="ssh:testbox-unknown")
    box.ask("fallocate -l $(($(df --output=avail -B1 /var/tmp | tail -1) - 4000000)) /root/full")
    assert "space" in box.refused("run", "smoke", *options, str(box.place / "full"))
    box.ask("rm /root/full; date -s '1 year ago'")
    assert box.fscale("run", "smoke", *options, str(box.place / "late")) == 0
    box.ask(f"date -s @{time.time():.0f}")


def bisected(box: Box) -> None:
    """The planted commit of eight is found."""
    repository = box.place / "repository"
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b"]
    repository.mkdir()
    subprocess.run([*git, "init", "-q"], check=True)
    for number in range(COMMITS):
        plant = "create" if number >= PLANTED else "none"
        made = kernel(plant, steps()).partition(":modules=")[2]
        (repository / "build").write_text(f"ln -sfn {made} made # {number}\n")
        subprocess.run([*git, "add", "build"], check=True)
        subprocess.run([*git, "commit", "-qm", str(number)], check=True)
    base = "ext4:" + kernel("none", steps())
    new = f"ext4:kernel={repository}/made/bzImage:modules={repository}/made"
    sides = ["--base", base.replace("kernel:", "kernel=", 1), "--new", new]
    # The plant takes nine tenths; who looks for less needs more boots. A cell of a fifth of a
    # second says how busy this machine was.
    words = [*sides, "--suite", "smoke", *CELL, "--duration", "2", *JUDGED, "--margin", "0.5"]
    words += ["--output", str(box.place / "bisected")]
    assert box.bisect(repository, "bisect", *words, "--", "sh", "build") == 0
    log = [*git, "log", "-1", "--format=%s", "refs/bisect/bad"]
    bad = subprocess.run(log, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert int(bad) == PLANTED, bad


def variance(box: Box) -> None:
    """How much boots of one kernel differ, and how often halves of them are called different."""
    output = box.place / "variance"
    own = f"tmpfs:kernel={box.own}"
    words = ["--suite", "smoke", *CELL, "--repetitions", str(BOOTS)]
    words += ["--max-minutes", "60", "--output", str(output)]
    assert box.fscale("noise", "--fs", own, *words) in (0, 1)
    sides = open_sides(output, None)
    boots = [*sides.base_cells, *sides.new_cells]
    print(f"{len(boots)} boots: {sorted(cell.ops_per_second for cell in boots)} per second")
    found = Counter(_halves(boots, seed) for seed in range(SPLITS))
    print(f"of {SPLITS} splits: {dict(found)}", flush=True)
    assert found["slower"] + found["faster"] <= 0.05 * SPLITS


def _halves(boots: list[Cell], seed: int) -> str:
    """The verdict on a random half of the boots against the other."""
    mixed = random.Random(seed).sample(boots, len(boots))
    cells = [
        cell.model_copy(update={"key": cell.key.model_copy(update=place)})
        for cell, place in zip(mixed, _places(len(mixed)), strict=True)
    ]
    (judged,) = judge_cells(cells, Settings(metrics=(THROUGHPUT,)), Looks())
    return judged.verdict


def _places(count: int) -> list[dict[str, object]]:
    return [{"side": "AB"[n % 2], "repetition": n // 2 + 1} for n in range(count)]


def in_laboratory(box: Box) -> None:
    """A place of labgrid: its power resets a kernel that hangs, and its console explains it."""
    sides = kernel("none", steps()), kernel("hang", steps())
    argv = _ab(box, "labgrid", *sides, "--fs", "ext4", *FEW, "--media", "brd")
    with laboratory(box) as place:
        assert box.fscale("doctor", on=place) == 0
        assert box.fscale(*argv, "--boot-timeout", "180", on=place) == 1
    text = "".join(log.read_text() for log in (box.place / "labgrid/boots").glob("B*.log"))
    assert "panicked or hung" in text and "console:" in text, text


def left_alone(box: Box) -> None:
    """Killed while a kernel boots, and given up: a timer there leaves that kernel."""
    console = box.place / "console"
    began = console.stat().st_size
    process = box.start(*_own(box, "left"))
    while b"kexec_core: Starting new kernel" not in console.read_bytes()[began:]:
        time.sleep(0.1)
    process.kill()
    process.wait()
    end = time.monotonic() + 3600
    while "oops=panic" in (line := box.ask("cat /proc/cmdline")) or not line:
        assert time.monotonic() < end
        time.sleep(20)
    print(f"the machine was given up {time.monotonic() - end + 3600:.0f} s ago", flush=True)


PROOFS: dict[str, Callable[[Box], None]] = {
    "run": run,
    "same": same,
    "found": found,
    "where": where,
    "panic": _broken("panic", "came back with its own kernel"),
    "hang": _broken("hang", "panicked or hung", "--media", "brd"),
    "mute": _broken("mute", "was reset"),
    "labgrid": in_laboratory,
    "left": left_alone,
    "refusals": refusals,
    "user": other_user,
    "bisect": bisected,
    "variance": variance,
    "cut": cut,
    "killed": killed,
}
