# SPDX-License-Identifier: GPL-2.0-only
"""What the plugin writes: JSON lines, each whole or not there yet."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from fscale.model.errors import FscaleError

FORMAT = 1


class _Lenient(BaseModel):
    """Keys that a newer plugin adds are no error: what is used here is named."""

    model_config = ConfigDict(extra="ignore")


class Transfers(_Lenient):
    """How often a line moved, by what it cost; `remote` are those of them that left the socket."""

    memory: int
    clean: int
    dirty: int
    upgrade: int
    remote: int
    free: int = 0


class PcOnLine(_Lenient):
    """An instruction that took a line: how often, and what it waited, in cycles.

    `va` is the address by which it did so last.
    """

    pc: str
    va: str | None = None
    reads: int
    writes: int
    stall: int


class Line(Transfers):
    """A cache line by its physical address; `va` is the last virtual one that it was used by.

    Of memory in a slab `cache` is its name, and an object of `size` bytes begins at `object`.
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
    """An instruction over all lines."""

    pc: str
    transfers: int
    stall: int


class Window(_Lenient):
    """One window: sums over the cores that did an operation in it; times in cycles."""

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
    active: int
    host_seconds: float
    lines: list[Line]
    pcs: list[Pc]


class Code(_Lenient):
    """How many instructions of all windows of a point are of which block, by its address."""

    type: Literal["code"]
    point: int
    code: list[tuple[str, int]]


class Parameters(BaseModel):
    """The first line: everything that the plugin was told."""

    model_config = ConfigDict(extra="allow")
    type: Literal["parameters"]
    format: int


class Sign(_Lenient):
    """A sign of life, every five seconds while clocks are kept; `vcpu`: whose turn it is."""

    type: Literal["progress"]
    mode: Literal["ordered", "detailed"]
    cycles: int
    instructions: int
    vcpu: int
    host_seconds: float


class Trouble(_Lenient):
    """The plugin gives up."""

    type: Literal["error"]
    text: str


class Ended(_Lenient):
    """QEMU exits."""

    type: Literal["end"]


Record = Parameters | Window | Code | Sign | Trouble | Ended
_RECORD: TypeAdapter[Record] = TypeAdapter(Annotated[Record, Field(discriminator="type")])


class Stream:
    """Reads a file that grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._rest = b""

    def read(self) -> Iterator[Record]:
        """The records that have come since the last call.

        FscaleError when a line is none, or of a plugin of another format.
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
            f"the plugin wrote what is no record ({first['msg']}): {line[:200]!r}"
        ) from None
    if isinstance(record, Parameters) and record.format != FORMAT:
        raise FscaleError(
            f"the plugin writes format {record.format}; this fscale reads {FORMAT}: make -C sim"
        )
    return record
