# SPDX-License-Identifier: GPL-2.0-only
"""The files that a machine returns for a task. They are a stranger's: each is checked here.

On the wire: a line of JSON, the `Header`, and then the contents of its files, one after another.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from fscale.farm.task import Task
from fscale.model.bench import Plain, Strict
from fscale.model.catalogue import explain
from fscale.model.errors import Exit, FscaleError
from fscale.model.files import MAX_BYTES, Folder
from fscale.model.results import Cell, CellKey, Run

MOST_HEADER = 1 << 20
MOST_FILES = 4096
MOST_WHOLE = 256 << 20
"""bytes of an answer; a cell has 10 to 200 KB, its profiles up to some MB"""
MOST_TEXT = 64 << 10
_PROFILE = re.compile(r"[a-z0-9][a-z0-9_.-]{0,99}")


class Refused(FscaleError):  # noqa: N818 - it says what happened
    """An answer is not what was asked for; nothing of it is kept."""

    code = Exit.FAILED


class Named(Strict):
    """A file of an answer."""

    name: Plain
    size: int = Field(ge=0, le=MAX_BYTES)


class Header(Strict):
    """Who answers, and with what."""

    task: Plain
    host: Plain
    code: int = Field(description="exit code of `fscale cell`")
    text: str = Field(default="", max_length=MOST_TEXT, description="the end of its messages")
    lacks: list[Plain] = Field(
        default_factory=list, description="digests of files that the machine has not got"
    )
    files: list[Named] = Field(default_factory=list, max_length=MOST_FILES)


class Planned(Strict):
    """The answer of a machine that is asked what it would measure; tasks for the cells follow."""

    run: Run
    cells: list[CellKey]


PLANNED = "planned.json"


@dataclass(frozen=True)
class Answer:
    """A checked answer."""

    task: Task
    header: Header
    cells: list[Cell]
    profiles: Mapping[str, bytes]
    """by name below the results directory"""
    planned: Planned | None = None
    """of a task without cells"""


def read_files(task: Task, directory: Path) -> dict[str, bytes]:
    """Read the files of a task's cells from a results directory, without following links.

    Raises:
        OSError: one of them is a link, or larger than 16 MiB.
    """
    folder = Folder(directory)
    if not task.keys:
        return {PLANNED: folder.read(PLANNED)} if folder.exists(PLANNED) else {}
    found = {}
    for key in task.keys:
        for place in ("cells", f"profiles/{key.id}"):
            only = f"{key.id}.json" if place == "cells" else ""
            for name in folder.names(place, only):
                if not only or name == only:
                    found[f"{place}/{name}"] = folder.read(f"{place}/{name}")
    return found


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
        Refused: a name is not of a cell of the task, or a file is not a valid cell.
    """
    if header.task != task.id:
        raise Refused(f"the answer is for task {header.task[:60]}, not {task.id}")
    if not task.keys:
        return Answer(task, header, [], {}, _planned(files))
    cells = {f"cells/{key.id}.json": key for key in task.keys}
    own = {key.id for key in task.keys}
    found, profiles = [], {}
    for name, content in files.items():
        if key := cells.get(name):
            try:
                cell = Cell.model_validate_json(content)
            except ValidationError as error:
                raise Refused(f"{name} is not a valid cell: {explain(error)}") from None
            if cell.key != key or cell.id != key.id:
                raise Refused(f"{name} contains the cell {cell.id[:100]}")
            found.append(cell)
            continue
        folder, _, rest = name.partition("/")
        of, _, last = rest.partition("/")
        if folder != "profiles" or of not in own or not _PROFILE.fullmatch(last):
            raise Refused(f"{name[:100]} is not a file of this task")
        profiles[name] = content
    return Answer(task, header, found, profiles)


def _planned(files: Mapping[str, bytes]) -> Planned | None:
    if not files:
        return None
    if files.keys() != {PLANNED}:
        raise Refused(f"{min(files)[:100]} is not a plan")
    try:
        return Planned.model_validate_json(files[PLANNED])
    except ValidationError as error:
        raise Refused(f"{PLANNED} is not a valid plan: {explain(error)}") from None
