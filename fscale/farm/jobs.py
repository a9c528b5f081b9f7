# SPDX-License-Identifier: GPL-2.0-only
"""Jobs of Slurm by its commands: submitted, listed and cancelled. Tried with Slurm 22.05."""

import re
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from fscale.farm.programs import PATIENCE, run
from fscale.model.errors import FscaleError, MissingTool
from fscale.system.executor import CommandFailed, which

TOOLS = ("sbatch", "squeue", "scancel", "sinfo", "scontrol")
NAME = "fscale"
_RUNNING = {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING"}
_RUNNING |= {"REQUEUED", "RESIZING", "STAGE_OUT", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"}
_LOST = {"NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REVOKED", "unknown to Slurm"}
_FORMAT = "JobArrayID:|,State:|,exit_code:|,NodeList:"


class Full(FscaleError):  # noqa: N818 - it says what happened
    """Slurm takes no more jobs until some have ended."""


@dataclass(frozen=True)
class SlurmLimits:
    """What Slurm takes at most."""

    jobs: int
    """half of those in its memory (MaxJobCount), where jobs stay for a while after their end"""
    array: int
    """elements of a job array (MaxArraySize - 1)"""


@dataclass(frozen=True)
class State:
    """A job's state."""

    name: str
    code: int = 0
    """exit code of its script, or 128 and the signal that ended it"""
    node: str = ""

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.name in _RUNNING

    @property
    def lost(self) -> bool:
        """Whether it ended for a reason outside itself, as with its node."""
        return self.name in _LOST


UNKNOWN = State("unknown to Slurm")
"""a job that ended more than MinJobAge seconds ago"""


def limits() -> SlurmLimits:
    """Ask Slurm for its limits.

    Raises:
        MissingTool: this machine has no Slurm.
        FscaleError: its controller does not answer.
    """
    if missing := [tool for tool in TOOLS if which(tool) is None]:
        raise MissingTool(f"{', '.join(missing)}: not installed; jobs of Slurm are submitted by it")
    text = run("scontrol", "show", "config")
    values = {k: int(v) for k, v in re.findall(r"^(Max\w+)\s*= (\d+)\b", text, re.MULTILINE)}
    return SlurmLimits(max(1, values["MaxJobCount"] // 2), max(1, values["MaxArraySize"] - 1))


def nodes(partition: str | None) -> int:
    """Return the number of nodes that are up in a partition; None: in Slurm's default partition."""
    argv = ["sinfo", "--noheader", "--responding", "--format=%P|%D|%t"]
    rows = [line.split("|") for line in run(*argv).splitlines()]
    chosen = set(partition.split(",")) if partition else None
    return sum(
        int(count)
        for name, count, state in rows
        if (name.rstrip("*") in chosen if chosen else name.endswith("*"))
        and re.match(r"idle|alloc|mix|comp|resv|plnd", state)
    )


def submit(
    script: Path, directory: Path, count: int, partition: str | None, node: str | None
) -> str:
    """Submit a job array and return its id.

    Element N runs `script DIRECTORY` on a node for itself, which is `node` if that is named, and
    prints to DIRECTORY/N.txt. Slurm does not requeue it: a job that crashes nodes would crash all.

    Raises:
        Full: Slurm has as many jobs as it takes.
        CommandFailed: Slurm refuses the job.
    """
    argv = [
        *("sbatch", "--parsable", f"--job-name={NAME}", f"--array=0-{count - 1}"),
        *("--nodes=1", "--ntasks=1", "--exclusive", "--no-requeue"),
        f"--output={directory}/%a.txt",
        *([f"--partition={partition}"] if partition else []),
        *([f"--nodelist={node}"] if node else []),
        *(str(script), str(directory)),
    ]
    try:
        submitted = run(*argv)
    except CommandFailed as error:
        if "temporarily unable" in str(error) or "limit" in str(error):
            raise Full(str(error)) from None
        raise
    # With several clusters it is ID;CLUSTER.
    return submitted.strip().partition(";")[0]


def states(arrays: Collection[str]) -> dict[str, State]:
    """Return the states of the elements of job arrays, by ARRAY_INDEX."""
    # Otherwise Slurm cuts a list of pending elements after 64 characters.
    whole = ["env", "SLURM_BITSTR_LEN=0", "squeue"]
    argv = [*whole, "--noheader", "--array", "--states=all", f"--name={NAME}"]
    return parse_states(run(*argv, f"--Format={_FORMAT}"), arrays)


def parse_states(text: str, arrays: Collection[str]) -> dict[str, State]:
    """Parse squeue's lines `ARRAY_INDEX|STATE|STATUS|NODE`; the status is that of wait(2)."""
    found = {}
    for line in text.splitlines():
        name, state, status, node = (part.strip() for part in line.split("|"))
        if name.partition("_")[0] in arrays:
            number = int(status)
            code = number >> 8 if number > 0xFF else number and 128 + (number & 0x7F)
            found[name] = State(state, code, node)
    return found


def cancel(arrays: Sequence[str]) -> dict[str, State]:
    """Cancel job arrays, wait until their jobs have ended, and return the jobs' states.

    Raises:
        FscaleError: they have not after PATIENCE seconds.
    """
    run("scancel", "--quiet", *arrays)
    end = time.monotonic() + PATIENCE
    while True:
        active = states(arrays)
        if not any(state.running for state in active.values()):
            return active
        if time.monotonic() > end:
            raise FscaleError(f"jobs {', '.join(arrays)} have not ended; see `squeue`")
        time.sleep(1)
