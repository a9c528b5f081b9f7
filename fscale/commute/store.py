# SPDX-License-Identifier: GPL-2.0-only
"""The results directory: the tests, the conflicts that each boot found, and the matrices."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from pydantic import Field, ValidationError

from fscale.analysis.members import NamedRun
from fscale.commute.conflicts import Conflict
from fscale.commute.generate import PairTest
from fscale.commute.matrix import Matrices, Matrix
from fscale.commute.script import written
from fscale.model.bench import Strict
from fscale.model.catalogue import explain
from fscale.model.errors import FscaleError
from fscale.model.files import Folder
from fscale.model.store import MATRIX_FILE
from fscale.runner.guard import check_output

TESTS = "tests.jsonl"
# All tests on btrfs have some 11 MB of conflicts.
LARGEST = 256 << 20


class BootHead(Strict):
    """The first line of a boot's file: what the conflicts depend on besides the tests."""

    guest: str
    order: str
    seed: int


class _Written(Strict):
    """A line of tests.jsonl."""

    id: str = Field(pattern=r"^\w+-\w+-\d+$")
    lines: list[str]


class _Found(Strict):
    """Another line of a boot's file."""

    id: str
    conflicts: list[Conflict]


def boot_name(filesystem: str, kernel: str, number: int) -> str:
    """The name of a boot's file in the results directory; `number` counts from 1."""
    name = re.sub(r"[^\w.=,-]", "_", f"{filesystem}-{kernel}-{number}")
    return f"boots/{name}.jsonl"


Found = Mapping[str, Sequence[Conflict]]
"""the conflicts of a boot, by the id of the test"""


def parse_boot(content: bytes) -> tuple[BootHead, Found]:
    """The head and the conflicts in a boot's file. Raises ValidationError."""
    head, *lines = content.splitlines() or [b""]
    found = [_Found.model_validate_json(line) for line in lines]
    return BootHead.model_validate_json(head), {one.id: one.conflicts for one in found}


class Store:
    """Reads and writes the files; each is complete or absent.

    Raises:
        FscaleError: in all methods that read, if a file cannot be read or is damaged.
        OSError: in those that write.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._folder = Folder(directory)

    def check(self, tests: Sequence[PairTest]) -> None:
        """FscaleError if the directory has other tests, or other files."""
        check_output(self.directory, TESTS)
        if self._read(TESTS) not in (None, _text(tests).encode()):
            raise FscaleError(
                f"{self.directory} contains other tests; give their --calls, --each and --seed, or "
                "another --output"
            )

    def save_tests(self, tests: Sequence[PairTest]) -> None:
        """Write the tests."""
        self._folder.write(TESTS, _text(tests), sync=True)

    def save_boot(self, name: str, head: BootHead, found: Found) -> None:
        """Write the conflicts of a boot."""
        lines = [
            json.dumps({"id": test, "conflicts": list(map(asdict, conflicts))})
            for test, conflicts in found.items()
        ]
        text = "\n".join([head.model_dump_json(), *lines, ""])
        self._folder.write(name, text, sync=True)

    def load_boot(self, name: str) -> tuple[BootHead, Found] | None:
        """The head and the conflicts of a boot; None if there is no such boot."""
        if (content := self._read(name)) is None:
            return None
        try:
            return parse_boot(content)
        except ValidationError as error:
            raise self._damaged(name, error) from None

    def load_tests(self) -> dict[str, list[str]]:
        """The lines of each test by its id. FscaleError also if there are none."""
        try:
            read = [_Written.model_validate_json(line) for line in self._need(TESTS).splitlines()]
        except ValidationError as error:
            raise self._damaged(TESTS, error) from None
        return {one.id: one.lines for one in read}

    def load_matrices(self) -> list[Matrix]:
        """What is in matrix.json. FscaleError also if there is none."""
        try:
            return Matrices.model_validate_json(self._need(MATRIX_FILE)).matrices
        except ValidationError as error:
            raise self._damaged(MATRIX_FILE, error) from None

    def save_matrices(self, matrices: Matrices) -> None:
        """Write matrix.json."""
        self._folder.write(MATRIX_FILE, matrices.text(), sync=True)

    def _damaged(self, name: str, error: ValidationError) -> FscaleError:
        return FscaleError(
            f"{self.directory / name} is damaged: {explain(error)}; remove it, or use another "
            "directory"
        )

    def _need(self, name: str) -> bytes:
        if (content := self._read(name)) is None:
            raise FscaleError(
                f"{self.directory} has no {name}; give a directory of `fscale commute` that is "
                "finished"
            )
        return content

    def _read(self, name: str) -> bytes | None:
        try:
            return self._folder.read(name, LARGEST)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FscaleError(f"{self.directory / name} cannot be read: {error.strerror}") from None


def open_named(results: Sequence[NamedRun]) -> dict[str, Store]:
    """Results by their labels, or else by the names of their directories.

    Raises:
        FscaleError: two have one name.
    """
    stores = {one.label or one.path.resolve().name: Store(one.path) for one in results}
    if len(stores) < len(results):
        raise FscaleError("several results have one name; give each as DIR=LABEL")
    return stores


def _text(tests: Sequence[PairTest]) -> str:
    return "".join(f"{json.dumps({'id': t.id, 'lines': written(t)})}\n" for t in tests)
