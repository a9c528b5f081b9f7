# SPDX-License-Identifier: GPL-2.0-only
"""What has been run: one JSON object a line, by the sources of lanefs that it was run on."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from fscale.vm.kbuild import module_files


@dataclass(frozen=True)
class Record:
    """A slice that was run."""

    source: str
    """`source_hash` of what was tested"""
    slice: str
    argv: list[str]
    ok: bool
    seconds: float
    text: str
    """the end of what it said"""
    when: str
    """UTC, ISO 8601"""


def source_hash(lanefs: Path) -> str:
    """16 hexadecimal digits over the sources of the module and its tools, unit tests left out."""
    whole = hashlib.sha256()
    for path in module_files(lanefs):
        name = path.relative_to(lanefs)
        if name.parts[0] != "tests":
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            whole.update(f"{name} {content}\n".encode())
    return whole.hexdigest()[:16]


class State:
    """The records of a directory; new ones are appended."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "state.jsonl"
        directory.mkdir(parents=True, exist_ok=True)

    def records(self, source: str) -> dict[str, Record]:
        """The last record of each slice on these sources; a line that a crash cut off is none."""
        found = {}
        for line in self._lines():
            try:
                record = Record(**json.loads(line))
            except (json.JSONDecodeError, TypeError):
                continue
            if record.source == source:
                found[record.slice] = record
        return found

    def _lines(self) -> list[str]:
        return self._path.read_text().splitlines() if self._path.exists() else []

    def add(self, record: Record) -> None:
        """Append a record, on a line of its own even after one that was cut off."""
        cut = self._path.exists() and not self._path.read_text().endswith("\n")
        with self._path.open("a") as file:
            file.write("\n" * cut + json.dumps(asdict(record)) + "\n")
