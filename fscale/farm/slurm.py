# SPDX-License-Identifier: GPL-2.0-only
"""The engine `slurm[:PARTITION]`: tasks are jobs of Slurm, each with a node for itself.

The nodes share the current directory with this machine, as jobs of Slurm do; tasks and their cells
lie in a directory of it while they run. Which jobs have ended Slurm says; whether a cell is there,
its file says.
"""

import contextlib
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fscale.farm import jobs
from fscale.farm.answer import MOST_TEXT, Answer, Header, Refused, check, read_files
from fscale.farm.engine import Say
from fscale.farm.objects import Objects
from fscale.farm.programs import PATIENCE
from fscale.farm.task import Task
from fscale.model import paths
from fscale.model.errors import Exit, FscaleError
from fscale.model.files import Folder, printable
from fscale.system.executor import CommandFailed, summarise_failure

POLL_SECONDS = 1.0
QUIET_SHARE = 4
"""times the seconds of a look at all jobs, until the next: with many, looks take long"""
ATTEMPTS = 2
"""A task that was on two nodes when these were lost is not given to a third."""
LATE_SECONDS = 10.0
"""after a job's end, until its files are seen here: NFS caches directories"""
_ON = re.compile(r"slurm(?::(?P<partition>[\w.,-]{1,200}))?")


@contextlib.contextmanager
def open_engine(on: str, say: Say) -> Iterator["Slurm"]:
    """Open the engine for a `--on` of the form slurm[:PARTITION]; see fscale.farm.engine.

    Raises:
        MissingTool: this machine has no Slurm.
        FscaleError: the option has another form, the partition has no node that is up, or the
            current directory cannot be written.
    """
    named = _ON.fullmatch(on)
    if named is None:
        raise FscaleError(f"--on {on}: not of the form slurm or slurm:PARTITION")
    limits = jobs.limits()
    nodes = jobs.nodes(named["partition"])
    if not nodes:
        where = f"partition {named['partition']}" if named["partition"] else "the partitions"
        raise FscaleError(f"--on {on}: {where} of Slurm has no node that is up; see `sinfo`")
    try:
        spool = Path(tempfile.mkdtemp(prefix=".fscale-slurm.", dir=Path.cwd()))
    except OSError as error:
        raise FscaleError(
            f"tasks lie in the current directory, which cannot be written: {error.strerror}; start "
            "fscale in a directory that you may write and that the nodes see"
        ) from None
    engine = Slurm(spool, named["partition"], nodes, limits, say)
    try:
        yield engine
    finally:
        try:
            engine.cancel()
        finally:
            shutil.rmtree(spool, ignore_errors=True)


_Waiting = tuple[Task, tuple[str, ...]]
"""a task, and what its earlier attempts said"""


@dataclass
class _Job:
    """A task that Slurm has got: element `index` of a job array."""

    task: Task
    place: Path
    """its task file, without the suffix; also the directory of its cells"""
    lost: tuple[str, ...] = ()
    """what earlier attempts said that ended with their nodes"""
    node: str = ""
    """where it was seen to run"""
    ended: float = 0
    """when it was seen to have ended, in seconds of the monotonic clock"""


class Slurm:
    """See fscale.farm.engine.Engine."""

    shares_files = True

    def __init__(
        self, spool: Path, partition: str | None, nodes: int, limits: jobs.SlurmLimits, say: Say
    ) -> None:
        self.slots = nodes
        self._spool = spool
        self._partition = partition
        self._limits = limits
        self._say = say
        self._waiting: list[_Waiting] = []
        self._jobs: dict[str, _Job] = {}
        self._arrays: set[str] = set()
        self._batches = 0
        self._seen = time.monotonic()

    def submit(self, tasks: Sequence[Task], objects: Objects) -> None:
        """Hand tasks to Slurm, as many as it takes; the others follow when jobs end."""
        for digest, path in objects.paths.items():
            target = self._spool / "objects" / digest
            if not target.exists():
                target.parent.mkdir(exist_ok=True)
                shutil.copyfile(path, target)
        self._waiting += [(task, ()) for task in tasks]
        self._hand_over()

    def collect(self) -> Iterator[Answer]:
        """Yield an answer for each task; a task whose node was lost is submitted once more."""
        while self._jobs or self._waiting:
            began = time.monotonic()
            states = self._states()
            took = time.monotonic() - began
            if states is not None:
                for name, job in list(self._jobs.items()):
                    state = states.get(name, jobs.UNKNOWN)
                    job.node = state.node or job.node
                    if state.running:
                        job.ended = 0
                    elif answer := self._ended(name, job, state):
                        yield answer
                self._hand_over()
            if self._jobs:
                time.sleep(max(POLL_SECONDS, QUIET_SHARE * took))

    def _states(self) -> dict[str, jobs.State] | None:
        """The states of all jobs; None while Slurm's controller restarts."""
        try:
            states = jobs.states(self._arrays)
        except CommandFailed:
            if time.monotonic() - self._seen > PATIENCE:
                raise
            return None
        self._seen = time.monotonic()
        return states

    def cancel(self) -> list[Answer]:
        """See fscale.farm.engine.NodeEngine."""
        self._waiting.clear()
        if not self._jobs:
            return []
        self._say(f"cancelling {len(self._jobs)} jobs of Slurm")
        states = jobs.cancel(sorted({name.partition("_")[0] for name in self._jobs}))
        ended, self._jobs = self._jobs, {}
        answers = []
        for name, job in ended.items():
            state = states.get(name, jobs.UNKNOWN)
            job.node = state.node or job.node
            output = _JobOutput.of(job)
            if output.complete:
                answers.append(_answer(output, name, state))
        return answers

    def _hand_over(self) -> None:
        """Submit waiting tasks as job arrays, as large as Slurm takes them."""
        while self._waiting and (room := self._limits.jobs - len(self._jobs)) > 0:
            host = self._waiting[0][0].host
            size = min(room, self._limits.array, len(self._waiting))
            batch: list[_Waiting] = []
            rest: list[_Waiting] = []
            for one in self._waiting[:size]:
                (batch if one[0].host == host else rest).append(one)
            directory = self._spool / str(self._batches)
            directory.mkdir()
            for index, (task, _) in enumerate(batch):
                (directory / f"{index}.json").write_text(task.model_dump_json(by_alias=True))
            try:
                array = jobs.submit(self._script(), directory, len(batch), self._partition, host)
            except jobs.Full:
                shutil.rmtree(directory)
                if not self._jobs:  # what fills Slurm is not ours
                    raise
                return
            self._batches += 1
            self._arrays.add(array)
            for index, (task, lost) in enumerate(batch):
                self._jobs[f"{array}_{index}"] = _Job(task, directory / str(index), lost)
            self._waiting[:size] = rest

    def _script(self) -> Path:
        """The batch script of all jobs. Slurm's signals reach fscale, which replaces the shell."""
        script = self._spool / "job.sh"
        if not script.exists():
            fscale = shlex.join([sys.executable, "-P", "-m", "fscale", "cell"])
            place = '"$1/$SLURM_ARRAY_TASK_ID'
            script.write_text(
                "#!/bin/sh\n"
                f"export PYTHONPATH={shlex.quote(str(paths.ROOT))}\n"
                f'exec {fscale} {place}.json" --output {place}" '
                f"--objects {shlex.quote(str(self._spool / 'objects'))}\n"
            )
        return script

    def _ended(self, name: str, job: _Job, state: jobs.State) -> Answer | None:
        """The answer of a job that has ended; None if it is tried again, or looked at later."""
        output = _JobOutput.of(job)
        job.ended = job.ended or time.monotonic()
        late = time.monotonic() - job.ended > LATE_SECONDS
        lost = state.lost and state != jobs.UNKNOWN
        if not (output.complete or output.why or lost or state.code or late):
            return None
        del self._jobs[name]
        if state.lost and not output.complete:
            last = output.text.splitlines()[-1:] or ["a job that had not begun"]
            told = f"node {job.node or 'unknown'} did not come back; it was running {last[0]}"
            self._say(f"warning: {told}")
            attempts = (*job.lost, told)
            if len(attempts) < ATTEMPTS:
                self._waiting.append((job.task, attempts))
                return None
            output = replace(output, why="; ".join(attempts))
        return _answer(output, name, state)


@dataclass(frozen=True)
class _JobOutput:
    """What a job left: its files, or why they are not taken, and the end of its messages."""

    job: _Job
    files: Mapping[str, bytes]
    why: str
    text: str

    @classmethod
    def of(cls, job: _Job) -> "_JobOutput":
        """Read what a job left."""
        try:
            return cls(job, read_files(job.task, job.place), "", _messages(job))
        except OSError as error:
            return cls(job, {}, f"{error.filename}: {error.strerror}", _messages(job))

    @property
    def complete(self) -> bool:
        """Whether every cell of its task is there, or whatever else it was to store."""
        keys = self.job.task.keys
        return bool(self.files) and all(f"cells/{key.id}.json" in self.files for key in keys)


def _answer(output: _JobOutput, name: str, state: jobs.State) -> Answer:
    """The answer of a job that has ended, without files if these are refused."""
    text = output.why
    if not text and (state.code or not output.complete):
        last = summarise_failure(output.text) or "no message"
        text = f"its job {name} ended as {state.name} with exit code {state.code}: {last}"
    task = output.job.task
    header = Header(
        task=task.id,
        host=output.job.node or "unknown",
        code=state.code if output.complete else state.code or Exit.FAILED,
        text=(text or output.text)[-MOST_TEXT:],
    )
    try:
        return check(task, header, output.files)
    except Refused as error:
        refused = {"text": str(error), "code": Exit.FAILED}
        return check(task, header.model_copy(update=refused), {})


def _messages(job: _Job) -> str:
    """The end of what a job printed."""
    with contextlib.suppress(OSError):
        text = Folder(job.place.parent).read(f"{job.place.name}.txt").decode(errors="replace")
        return printable(text)[-MOST_TEXT:].strip()
    return ""
