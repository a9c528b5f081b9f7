# SPDX-License-Identifier: GPL-2.0-only
"""Tasks and cells for the tests of engines; nothing is measured."""

from pathlib import Path

from fscale.farm.objects import Cache, Objects
from fscale.farm.task import Task, identity
from fscale.model.results import Cell, CellKey
from tests.support import synthetic


def keys(count: int) -> list[CellKey]:
    return [
        synthetic.key(number, filesystem="tmpfs", medium="none") for number in range(1, count + 1)
    ]


def task(*of: CellKey, plan: str = "0" * 16, **fields: object) -> Task:
    whole = {"kind": "simulate", "identity": identity(), "plan": plan, "keys": list(of)}
    return Task.model_validate(whole | fields)


def cell(key: CellKey) -> Cell:
    """A cell that is a function of its key alone."""
    ops = float(int(key.id[-20:].encode().hex(), 16) % 100_000)
    return synthetic.bare_cell(key, ops)


def content(of: Cell) -> bytes:
    return of.model_dump_json(by_alias=True).encode()


def received(sent: Task, tmp_path: Path, objects: Objects) -> tuple[Task, Path]:
    """A task that a machine got as text, and the directory with its input files."""
    asked = Task.model_validate_json(sent.model_dump_json())
    assert asked.id == sent.id
    directory, cache = tmp_path / "there", Cache(tmp_path / "objects")
    for role, digest in asked.files.items():
        (directory / role).parent.mkdir(parents=True, exist_ok=True)
        (directory / role).unlink(missing_ok=True)
        (directory / role).symlink_to(cache.put(digest, objects.chunks(digest)))
    return asked, directory
