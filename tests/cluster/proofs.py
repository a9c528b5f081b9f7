# SPDX-License-Identifier: GPL-2.0-only
"""What must be so of fscale on Slurm; each proof returns what it found, or raises.

Both nodes are this one machine: the machine's lock lets one of them measure at a time, and a job
that starts while the other node's cell has a CPU offline never gets that CPU. So suites over both
nodes use all CPUs.
"""

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from fscale.farm.results import hosts
from fscale.model import paths
from fscale.model.errors import Exit
from fscale.model.results import Cell
from fscale.model.store import Store
from tests.cluster.slurm import EPILOG_FILE, Node, call, wait_for

Nodes = Mapping[str, Node]

FSCALE = str(paths.ROOT / "bin" / "fscale")
EPILOG = f"""\
#!/bin/sh
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin exec {FSCALE} restore --wait 300
"""
ON = ("--wait", "300", "--on", "slurm")
CPUS = str(os.cpu_count())
SUITE = ("run", "quick", "--set=control=0", "--fs=tmpfs", "--workload=MWCL")
ENDS = 600
"""seconds in which every call must end"""
_STARTED: list[subprocess.Popen[str]] = []
_HERE = Path("/root/proofs")
_STATE = Path("/run/fscale")
_ONLINE = Path("/sys/devices/system/cpu/online")


@contextlib.contextmanager
def directory(name: str) -> Iterator[Path]:
    """An empty current directory, which all nodes see; nothing of the engine stays in it."""
    place = _HERE / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    os.chdir(place)
    try:
        yield place
    finally:
        for process in _STARTED:
            if process.poll() is None:  # a proof failed
                process.terminate()
                process.wait(ENDS)
        _STARTED.clear()
    left = [path.name for path in place.iterdir() if path.name.startswith(".")]
    assert not left, left
    assert not jobs(), jobs()


def start(*arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start fscale; its messages are collected."""
    process = subprocess.Popen(
        [FSCALE, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    _STARTED.append(process)
    return process


def finish(process: subprocess.Popen[str], code: int) -> str:
    """Wait for the end of fscale, check its exit code, and return its messages."""
    out, messages = process.communicate(timeout=ENDS)
    assert process.returncode == code, (process.returncode, out, messages)
    return messages


def fscale(*arguments: str, code: int, environment: Mapping[str, str] | None = None) -> str:
    """Run fscale, check its exit code, and return its messages."""
    return finish(start(*arguments, environment=environment), code)


def jobs() -> list[str]:
    """The jobs of Slurm that have not ended."""
    return call("squeue", "--noheader", "--array", "--format=%i %T %N").splitlines()


def cells(output: str) -> list[Cell]:
    """The cells of a run; none before the first."""
    return Store(Path(output)).cells()


def _written(output: str) -> dict[str, int]:
    return {p.name: p.stat().st_mtime_ns for p in (Path(output) / "cells").iterdir()}


def _good(output: str) -> dict[str, str]:
    """The finished cells of a run, as text, by their ids."""
    return {c.id: c.model_dump_json() for c in cells(output) if c.status == "ok"}


def _machine(output: str) -> str:
    """The machine that a run records."""
    run = Store(Path(output)).load_run()
    assert run
    return run.machine.hostname


def _restored() -> bool:
    """Whether all CPUs are online and no change of the machine is left to be undone."""
    everything = f"0-{int(CPUS) - 1}" if int(CPUS) > 1 else "0"
    return _ONLINE.read_text().strip() == everything and not (_STATE / "journal").exists()


def suite(nodes: Nodes) -> str:
    """A suite over two nodes; the same command again measures nothing anew."""
    with directory("suite"):
        command = [*SUITE, "--fs=tmpfs,ext4", "--workload=MWCL,DRBL", f"--cores={CPUS}"]
        command += ["--repetitions=3", "--duration=0.3", "--output=r"]
        fscale(*command, *ON, code=Exit.GOOD)
        found = cells("r")
        assert len(found) == 12, len(found)
        assert all(cell.status == "ok" for cell in found)
        who = Counter(hosts(Store(Path("r"))).values())
        assert who.keys() == nodes.keys(), who
        assert who.total() == len(found), who
        before = _written("r")
        fscale(*command, *ON, code=Exit.GOOD)
        assert _written("r") == before
    return f"{len(found)} cells, {dict(who)}"


def codes(nodes: Nodes) -> str:
    """Exit codes are those of the same command on this machine."""
    del nodes
    told = []
    with directory("codes"):
        for name, changed in {
            "good": ("--cores=1",),
            "too many cores": ("--cores=4096",),
            "no such workload": ("--cores=1", "--workload=NONE"),
            "mkfs is missing": ("--cores=1", "--fs=f2fs"),
            "a mount option fails": ("--cores=1", "--fs=ext4:mount=nonsense"),
        }.items():
            both = []
            for where, more in {"here": ("--wait=300",), "there": ON}.items():
                output = f"--output={name.replace(' ', '-')}-{where}"
                process = start(
                    *(*SUITE, "--repetitions=1", "--duration=0.2", *changed, output, *more)
                )
                process.communicate(timeout=ENDS)
                both.append(process.returncode)
            assert both[0] == both[1], (name, both)
            told.append(f"{name} {both[0]}")
    assert {"0", "1", "2", "77"} <= {text[-2:].strip() for text in told}, told
    return ", ".join(told)


def pair(nodes: Nodes) -> str:
    """A comparison stays on its node, also when it is resumed; verdicts are those of here."""
    del nodes
    sides = ("ab", "--base=tmpfs", "--new=tmpfs", "--workload=DRBL", "--cores=1", "--whole")
    short = ("--duration=0.2", "--repetitions=8", "--max-minutes=5")
    with directory("pair"):
        fscale(*sides, *short, "--wait=300", "--output=here", code=Exit.GOOD)
        fscale(*sides, *short, *ON, "--output=there", code=Exit.GOOD)
        names = [{cell.id for cell in cells(run)} for run in ("here", "there")]
        assert names[0] == names[1], names
        slower = ("ab", "--base=tmpfs", "--new=ext4:mount=sync", "--workload=MWCL", "--cores=1")
        told = []
        for where, more in {"here-slow": ("--wait=300",), "there-slow": ON}.items():
            process = start(*slower, "--whole", *short, f"--output={where}", "--json", *more)
            out, messages = process.communicate(timeout=ENDS)
            assert process.returncode == Exit.FAILED, messages
            judged = json.loads(out)["judgements"]
            told.append({one["metric"]: one["verdict"] for one in judged})
        assert told[0]["throughput"] == told[1]["throughput"] == "slower", told
        process = start(*sides, *short, *ON, "--output=cut")
        wait_for("pairs", lambda: len(list(Path.cwd().glob(".fscale-slurm.*/0/0/cells/*"))) > 4)
        process.send_signal(signal.SIGINT)
        finish(process, Exit.INTERRUPTED)
        kept = _good("cut")
        first = _machine("cut")
        assert len(kept) >= 4, kept
        fscale(*sides, *short, *ON, "--output=cut", code=Exit.GOOD)
        assert _machine("cut") == first
        assert kept.items() <= _good("cut").items()
        assert len(cells("cut")) == 16
    return f"on {first}, {len(kept)} of 16 cells before Ctrl-C; verdicts {told[1]}"


def lost_node(nodes: Nodes) -> str:
    """A node is killed while it measures: its cell goes to the other, and no other cell does."""
    with directory("lost-node"):
        process = start(
            *(*SUITE, f"--cores={CPUS}", "--repetitions=6", "--duration=2", "--output=r", *ON)
        )
        name = _first_node()
        began = time.monotonic()
        nodes[name].kill()
        at_death = _good("r")
        messages = finish(process, Exit.GOOD)
        seconds = time.monotonic() - began
        assert f"node {name} did not come back; it was running " in messages, messages
        found = _good("r")
        assert len(found) == 6, len(found)
        assert at_death.items() <= found.items()
        who = Counter(hosts(Store(Path("r"))).values())
        nodes[name].start()
        wait_for(f"{name} idle", lambda: nodes[name].state == "idle")
    told = next(line for line in messages.splitlines() if "did not come back" in line)
    return f"all cells {seconds:.1f} s after its death, {dict(who)}; {told}"


def lost_slurmd(nodes: Nodes) -> str:
    """Only slurmd of a node is killed, and its step goes on: no cell is there twice."""
    with directory("lost-slurmd"):
        process = start(
            *(*SUITE, f"--cores={CPUS}", "--repetitions=4", "--duration=2", "--output=r", *ON)
        )
        name = _first_node()
        nodes[name].kill_slurmd()
        finish(process, Exit.GOOD)
        found = cells("r")
        assert sorted(cell.key.repetition for cell in found) == [1, 2, 3, 4], found
        assert all(cell.status == "ok" for cell in found)
        who = Counter(hosts(Store(Path("r"))).values())
        assert who.total() == len(found), who
        nodes[name].kill()
        nodes[name].start()
        wait_for(f"{name} idle", lambda: nodes[name].state == "idle")
    return f"{name} of {dict(who)}"


def time_limit(nodes: Nodes) -> str:
    """A job past its time limit ends as interrupted, and the machine is restored."""
    del nodes
    command = [*SUITE, "--workload=DRBL", "--cores=1", "--repetitions=1", "--duration=200", *ON]
    limit = {"SBATCH_TIMELIMIT": "1"}
    with directory("time-limit"):
        for output in ("first", "second", "third"):
            began = time.monotonic()
            fscale(*command, f"--output={output}", code=Exit.FAILED, environment=limit)
            seconds = time.monotonic() - began
            (cell,) = cells(output)
            if cell.commands:  # else another run of this machine had it for a minute
                break
        assert cell.status == "interrupted", cell.reason
        assert cell.reason
        assert "TIMEOUT" in cell.reason, cell.reason
        assert _restored()
    return f"after {seconds:.0f} s: {cell.reason}"


def epilog(nodes: Nodes) -> str:
    """fscale is killed while a CPU is offline: Slurm's epilog restores the machine."""
    del nodes
    with directory("epilog"):
        process = start(
            *(*SUITE, "--cores=1", "--repetitions=1", "--duration=30", "--output=r", *ON)
        )
        _first_node()  # which holds the lock of this machine
        assert _ONLINE.read_text().strip() == "0"
        (victim,) = _cell_processes()
        os.kill(victim, signal.SIGKILL)
        killed = time.monotonic()
        finish(process, Exit.FAILED)
        wait_for("all restored", _restored)
        seconds = time.monotonic() - killed
        (cell,) = cells("r")
        assert cell.status == "error", cell.status
    return f"restored {seconds:.1f} s after the kill: {cell.reason}"


def ctrl_c(nodes: Nodes) -> str:
    """Ctrl-C cancels the jobs, and the same command resumes the run."""
    del nodes
    with directory("ctrl-c"):
        command = [*SUITE, f"--cores={CPUS}", "--repetitions=5", "--duration=1", "--output=r"]
        process = start(*command, *ON)
        wait_for("a cell", lambda: Path("r/cells").exists() and bool(_written("r")))
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        finish(process, Exit.INTERRUPTED)
        seconds = time.monotonic() - began
        assert not jobs(), jobs()
        assert _restored()
        before = _good("r")
        assert before
        fscale(*command, *ON, code=Exit.GOOD)
        after = _good("r")
        assert before.items() <= after.items()
        assert len(after) == 5
    return f"{seconds:.1f} s until all jobs had ended; {len(before)} of 5 cells were kept"


def _first_node() -> str:
    """Wait until the load of a cell runs; return its node."""
    found: list[str] = []

    def look() -> bool:
        found[:] = _measuring()
        return bool(found)

    wait_for("a cell that is measured", look, ENDS)
    return found[0]


def _measuring() -> list[str]:
    """The nodes with a job whose load has been started."""
    found = []
    for line in jobs():
        name, state, node = [*line.split(), ""][:3]
        index = name.partition("_")[2]
        texts = Path.cwd().glob(f".fscale-slurm.*/*/{index}.txt")
        if state == "RUNNING" and any("fscale-bench" in one.read_text() for one in texts):
            found.append(node)
    return found


def _cell_processes() -> list[int]:
    """The ids of processes `fscale cell`, in this namespace."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if words[1:5] == [b"-P", b"-m", b"fscale", b"cell"]:
                found.append(int(path.parent.name))
    return found


def empty(count: int, nodes: Nodes) -> str:
    """What `count` cells cost that do nothing, without an epilog."""
    del nodes
    before = EPILOG_FILE.read_text()
    EPILOG_FILE.write_text("#!/bin/sh\n")
    try:
        argv = (sys.executable, "-m", "tests.cluster.scale", str(count))
        return subprocess.run(
            argv, check=True, stdout=subprocess.PIPE, text=True, cwd=paths.ROOT
        ).stdout.strip()
    finally:
        EPILOG_FILE.write_text(before)


PROOFS: dict[str, Callable[[Nodes], str]] = {
    "suite": suite,
    "pair": pair,
    "codes": codes,
    "lost-node": lost_node,
    "lost-slurmd": lost_slurmd,
    "time-limit": time_limit,
    "epilog": epilog,
    "ctrl-c": ctrl_c,
}
SCALE: dict[str, Callable[[Nodes], str]] = {
    f"empty-{count}": functools.partial(empty, count) for count in (100, 1000, 10_000)
}
"""not proofs, and longer"""
