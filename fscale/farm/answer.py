# SPDX-License-Identifier: GPL-2.0-only
"""The files that a machine returns for a task. They are a stranger's: each is checked here.

On the wire: a line of JSON, the `Header`, and then the contents of its files, one after another.
"""

import errno
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from pydantic import Field, ValidationError

from fscale.farm.task import Kind, Task
from fscale.model.bench import Plain, Strict
from fscale.model.catalogue import explain
from fscale.model.errors import Exit, FscaleError
from fscale.model.files import MAX_BYTES, Folder
from fscale.model.results import Cell, CellKey, Run
from fscale.model.store import AB_FILE, RUN_FILE

PLANNED = "planned.json"
MOST_HEADER = 1 << 20
MOST_FILES = 4096
CRASH_FILE = "crash.json"
REPORT_FILE = "report.json"
CONFLICTS_FILE = "conflicts.jsonl"
MOST_OF_A_RUN = 16_384
"""files of a comparison, which has two for each repetition of each point"""
MOST_WHOLE = 256 << 20
"""bytes of an answer; a cell has 10 to 200 KB, its profiles up to some MB"""
MOST_TEXT = 64 << 10
# Files of tasks without keys.
_WHOLE: dict[Kind, tuple[str, ...]] = {
    "simulate": (),
    "commute": (CONFLICTS_FILE,),
    "guest": (RUN_FILE, CRASH_FILE),
    "run": (PLANNED,),
    "ab": (RUN_FILE, AB_FILE),
    "doctor": (REPORT_FILE,),
    "restore": (REPORT_FILE,),
}
_WITH_CELLS = ("guest", "ab")
"""kinds of tasks that find out which cells they measure"""
# The largest file of an answer; all tests of btrfs have some 11 MB of conflicts.
_LARGEST: dict[Kind, int] = {"commute": MOST_WHOLE}
_PROFILE = re.compile(r"[a-z0-9][a-z0-9_.-]{0,99}")


_M = TypeVar("_M", bound=Strict)


class Refused(FscaleError):  # noqa: N818 - it says what happened
    """An answer is not what was asked for; nothing of it is kept."""

    code = Exit.FAILED


class Named(Strict):
    """A file of an answer."""

    name: Plain
    size: int = Field(ge=0, le=MOST_WHOLE)


class Header(Strict):
    """Who answers, and with what."""

    task: Plain
    host: Plain
    code: int = Field(description="exit code of `fscale cell`")
    text: str = Field(default="", max_length=MOST_TEXT, description="the end of its messages")
    files: list[Named] = Field(default_factory=list, max_length=MOST_FILES)


class Planned(Strict):
    """The answer of a machine that is asked what it would measure; tasks for the cells follow."""

    run: Run
    cells: list[CellKey]


@dataclass(frozen=True)
class Answer:
    """A checked answer."""

    task: Task
    header: Header
    cells: list[Cell]
    profiles: Mapping[str, bytes]
    """by name below the results directory"""
    planned: Planned | None = None
    """of a task that only plans"""
    run: Run | None = None
    """of a task that measures a run of its own, such as a comparison"""
    record: bytes | None = None
    """the AB_FILE of a comparison, the CRASH_FILE of a guest, a CONFLICTS_FILE or a REPORT_FILE;
    who knows its fields checks it"""

    @property
    def complete(self) -> bool:
        """Whether the task did all that it was to do."""
        if not self.task.keys:
            return self.header.code == Exit.GOOD
        return len(self.cells) == len(self.task.keys)


def read_files(task: Task, directory: Path) -> dict[str, bytes]:
    """Read the files of a task's cells from a results directory, without following links.

    Raises:
        OSError: one of them is a link or too large, or all are too many or too large.
    """
    folder = Folder(directory)
    contents: dict[str, bytes] = {}
    size, most = 0, MOST_FILES if task.keys else MOST_OF_A_RUN
    for name in _names(task, folder):
        contents[name] = folder.read(name, _LARGEST.get(task.kind, MAX_BYTES))
        size += len(contents[name])
        if size > MOST_WHOLE or len(contents) > most:
            raise OSError(errno.EFBIG, "the files of a task are too many or too large", name)
    return contents


def _names(task: Task, folder: Folder) -> Iterator[str]:
    """The names of a task's files below its results directory."""
    if not task.keys:
        yield from (name for name in _WHOLE[task.kind] if folder.exists(name))
        if task.kind in _WITH_CELLS:
            yield from (f"cells/{name}" for name in folder.names("cells", ".json"))
    for key in task.keys:
        if folder.exists(cell := f"cells/{key.id}.json"):
            yield cell
        profiles = f"profiles/{key.id}"
        yield from (f"{profiles}/{name}" for name in folder.names(profiles, ""))


def pack(header: Header, files: Mapping[str, bytes]) -> bytes:
    """Make an answer of a header and the files, whose names and sizes it takes over."""
    named = [Named(name=name, size=len(content)) for name, content in files.items()]
    first = header.model_copy(update={"files": named}).model_dump_json()
    return b"".join([first.encode(), b"\n", *files.values()])


def unpack(answer: bytes) -> tuple[Header, dict[str, bytes]]:
    """Split an answer.

    Raises:
        Refused: it is too large, or not built as `pack` does.
    """
    if len(answer) > MOST_WHOLE:
        raise Refused(f"the answer has {len(answer)} bytes; at most {MOST_WHOLE} are accepted")
    end = answer.find(b"\n", 0, MOST_HEADER)
    if end < 0:
        raise Refused("the answer has no header")
    try:
        header = Header.model_validate_json(answer[:end])
    except ValidationError as error:
        raise Refused(f"the answer's header is not valid: {explain(error)}") from None
    files, at = {}, end + 1
    for named in header.files:
        files[named.name] = answer[at : at + named.size]
        at += named.size
    if at != len(answer) or len(files) != len(header.files):
        raise Refused("the answer's files do not have the sizes and names of its header")
    return header, files


def check(task: Task, header: Header, files: Mapping[str, bytes]) -> Answer:
    """Check that files are those of the task's cells, and nothing else.

    Raises:
        Refused: a name is not of a cell of the task, or a file is too large or not a valid cell.
    """
    if header.task != task.id:
        raise Refused(f"the answer is for task {header.task[:60]}, not {task.id}")
    if any(len(content) > _LARGEST.get(task.kind, MAX_BYTES) for content in files.values()):
        raise Refused(f"a file of task {task.id} is too large")
    if not task.keys:
        return _whole(task, header, files)
    cells = {f"cells/{key.id}.json": key for key in task.keys}
    planned = {key.id for key in task.keys}
    measured, profiles = [], {}
    for name, content in files.items():
        if key := cells.get(name):
            cell = _valid(Cell, name, content)
            if cell.key != key or cell.id != key.id:
                raise Refused(f"{name} contains the cell {cell.id[:100]}")
            measured.append(cell)
            continue
        folder, _, rest = name.partition("/")
        of, _, last = rest.partition("/")
        if folder != "profiles" or of not in planned or not _PROFILE.fullmatch(last):
            raise Refused(f"{name[:100]} is not a file of this task")
        profiles[name] = content
    return Answer(task, header, measured, profiles)


def _whole(task: Task, header: Header, files: Mapping[str, bytes]) -> Answer:
    """Check the files of a task without keys."""
    answer = Answer(task, header, [], {})
    for name, content in files.items():
        folder, _, last = name.partition("/")
        if folder == "cells" and task.kind in _WITH_CELLS:
            cell = _valid(Cell, name, content)
            if cell.id != cell.key.id or last != f"{cell.id}.json":
                raise Refused(f"{name[:100]} contains the cell {cell.id[:100]}")
            answer.cells.append(cell)
        elif name not in _WHOLE[task.kind]:
            raise Refused(f"{name[:100]} is not a file of this task")
        elif name == PLANNED:
            answer = replace(answer, planned=_valid(Planned, name, content))
        elif name == RUN_FILE:
            answer = replace(answer, run=_valid(Run, name, content))
        else:
            answer = replace(answer, record=content)
    return answer


def _valid(kind: type[_M], name: str, content: bytes) -> _M:
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        raise Refused(f"{name[:100]} is not valid: {explain(error)}") from None
