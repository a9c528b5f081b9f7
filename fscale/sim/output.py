# SPDX-License-Identifier: GPL-2.0-only
"""Reads the output of the plugin: JSON lines, each complete or absent."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from fscale.model.errors import FscaleError

FORMAT = 1

Mode = Literal["fast", "ordered", "detailed"]


class _Lenient(BaseModel):
    """Only the named keys are used; other keys, which a newer plugin may add, are ignored."""

    model_config = ConfigDict(extra="ignore")


class Transfers(_Lenient):
    """Transfers of a line by kind; `remote` counts those of all kinds that left the socket."""

    memory: int
    unwritten: int = 0
    clean: int
    dirty: int
    upgrade: int
    remote: int
    free: int = 0


class PcOnLine(_Lenient):
    """An instruction that took a line: how often, and its wait in cycles.

    `va` is the last virtual address that it used, `words` its accesses that took a word of another
    core.
    """

    pc: str
    va: str | None = None
    reads: int
    writes: int
    stall: int
    words: int = 0


class PluginLine(Transfers):
    """A cache line by its physical address; `va` is the last virtual address used for it.

    For slab memory, `cache` is the slab cache's name; an object of `size` bytes begins at `object`.
    """

    pa: str
    va: str
    cache: str | None = None
    object: str = "0x0"
    size: int = 0
    stall: int
    queue: int
    spin: int = 0
    pcs: list[PcOnLine]


class Pc(_Lenient):
    """An instruction, summed over all lines."""

    pc: str
    transfers: int
    stall: int


class PluginWindow(_Lenient):
    """One window: sums over the cores with a worker of the point; times in cycles."""

    type: Literal["window"]
    point: int
    seed: int
    group: int
    window: int
    ns: float
    ops: int
    instructions: int
    cycles: int
    transfers: Transfers
    stall: int
    queue: int
    spin: int
    idle: int
    words: int | None = None
    active: int
    host_seconds: float
    cpu_seconds: float = 0
    lines: list[PluginLine]
    pcs: list[Pc]


class CallUser(_Lenient):
    """An instruction of a call that accessed a line."""

    pc: str
    write: bool


class ConflictLine(_Lenient):
    """A line that one call of a pair wrote and the other accessed.

    `bytes` has a bit for each byte that one wrote and the other accessed; with `layout` there is
    none, and it has those that were written. For slab memory, `cache`, `object` and `size` are as
    in PluginLine, of the first of these bytes.
    """

    va: str
    bytes: str
    layout: bool
    cache: str | None = None
    object: str = "0x0"
    size: int = 0
    a: list[CallUser]
    b: list[CallUser]


class Conflicts(_Lenient):
    """The conflicts of the pair of calls with a number; `lost`: accesses that found no room."""

    type: Literal["conflicts"]
    pair: int
    lost: int
    lines: list[ConflictLine]


class Code(_Lenient):
    """The instructions of each block in all windows of a point, by the block's address."""

    type: Literal["code"]
    point: int
    code: list[tuple[str, int]]


class ModeEnd(_Lenient):
    """The CPU seconds of QEMU, user and system, in a mode of the plugin that has ended.

    `point` is that of the windows; it is not set yet when the modes before the first ones end.
    """

    type: Literal["mode"]
    mode: Mode
    point: int
    cpu_seconds: float = 0


class Parameters(BaseModel):
    """The first line: all parameters of the plugin."""

    model_config = ConfigDict(extra="allow")
    type: Literal["parameters"]
    format: int


class Sign(_Lenient):
    """A heartbeat every five seconds while clocks are kept; `vcpu`: the CPU that runs next."""

    type: Literal["progress"]
    mode: Mode
    cycles: int
    instructions: int
    vcpu: int
    host_seconds: float


class Trouble(_Lenient):
    """The plugin gives up, with the reason."""

    type: Literal["error"]
    text: str


class Ended(_Lenient):
    """QEMU exits."""

    type: Literal["end"]


Record = Parameters | PluginWindow | Conflicts | Code | ModeEnd | Sign | Trouble | Ended
_RECORD: TypeAdapter[Record] = TypeAdapter(Annotated[Record, Field(discriminator="type")])


class Stream:
    """Reads a file that grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._rest = b""

    def read(self) -> Iterator[Record]:
        """The records since the last call.

        FscaleError if a line is not a record, or if the plugin has another format.
        """
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._position)
            text = file.read()
        self._position += len(text)
        *lines, self._rest = (self._rest + text).split(b"\n")
        for line in lines:
            yield parse(line)


def parse(line: bytes) -> Record:
    """One line of the plugin."""
    try:
        record = _RECORD.validate_json(line)
    except ValidationError as error:
        first: Any = error.errors()[0]
        raise FscaleError(
            f"the plugin wrote a line that is not a valid record ({first['msg']}): {line[:200]!r}"
        ) from None
    if isinstance(record, Parameters) and record.format != FORMAT:
        raise FscaleError(
            f"the plugin writes format {record.format}, but this fscale reads {FORMAT}; they "
            "are of different versions"
        )
    return record
