# SPDX-License-Identifier: GPL-2.0-only
"""Reads the file of a profile and checks the fields that readers rely on."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from fscale.analysis.reader import first_error
from fscale.model.files import Folder, parse_json, unpack


class _Memory(BaseModel):
    """The kernel's memory layout, from a lock profile."""

    direct_map: int
    page_array: int
    page_bits: int = Field(ge=0, le=32)
    page_size: int = Field(gt=0)


class _Profile(BaseModel):
    """The fields that are read; profiles have others as well, and may lack some of these."""

    output: str = ""
    event: str = ""
    comm: str = "fscale-run"
    named: bool = True
    pid: int | None = None
    cores: int = 1
    cpus: list[int] = []
    pmus: dict[str, str] = {}
    memory: _Memory | None = None
    image: tuple[int, int] | None = None
    kernel: str | None = None
    functions: dict[str, list[str]] = {}
    symbols: dict[str, str] = {}
    cache_structs: dict[str, str] = {}
    layouts: dict[str, list[tuple[int, str, Any]]] = {}


def load_profile(path: Path) -> dict[str, Any]:
    """A profile's content. Raises OSError or ValueError if it cannot be used."""
    return read_profile(Folder(path.parent), path.name)


def read_profile(folder: Folder, name: str) -> dict[str, Any]:
    """Like `load_profile`, for a file in a results directory."""
    data = parse_json(unpack(folder.read(name)))
    if not isinstance(data, dict):
        raise ValueError("it is not a profile (a JSON object)")
    try:
        return data | _Profile.model_validate(data).model_dump()
    except ValidationError as error:
        raise ValueError(first_error(error)) from None
