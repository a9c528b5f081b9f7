# SPDX-License-Identifier: GPL-2.0-only
"""Stores answers in a results directory, and records which machine measured what."""

from typing import Any

from pydantic import Field

from fscale.farm.answer import Answer
from fscale.model.bench import Plain, Strict
from fscale.model.store import Store

FOLDER = "tasks"


class Record(Strict):
    """`tasks/<id>.json`: who measured the cells of a task."""

    host: Plain
    cells: list[Plain] = Field(description="ids of those that are finished")
    files: dict[str, str] = Field(description="role of an input file -> its SHA-256")


def keep(store: Store, answer: Answer) -> None:
    """Write the profiles, the cells and the record of an answer.

    A cell is written after its profiles, so that a finished cell is complete.
    """
    for name, content in answer.profiles.items():
        store.save(name, content)
    for cell in answer.cells:
        store.save_cell(cell)
    # Others are measured again, perhaps by another machine.
    ids = [cell.id for cell in answer.cells if cell.status == "ok"]
    record = Record(host=answer.header.host, cells=ids, files=answer.task.files)
    store.save(f"{FOLDER}/{answer.task.id}.json", record.model_dump_json(indent=1) + "\n")


def hosts(store: Store) -> dict[str, str]:
    """Return the machine of each cell that another machine measured, by the cell's id."""
    found: dict[str, Any] = {}
    for record in store.texts(FOLDER):
        read = Record.model_validate_json(record)
        found |= dict.fromkeys(read.cells, read.host)
    return found
