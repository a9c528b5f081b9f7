# SPDX-License-Identifier: GPL-2.0-only
"""Stores answers in a results directory, and records which machine measured what."""

from pydantic import Field

from fscale.farm.answer import Answer
from fscale.model.bench import Plain, Strict
from fscale.model.store import Store

FOLDER = "hosts"


class Record(Strict):
    """`hosts/<id>.json`: which machine measured a cell."""

    cell: Plain = Field(description="its id")
    host: Plain
    task: Plain = Field(description="id of the task that the cell was part of")
    files: dict[str, str] = Field(description="role of an input file -> its SHA-256")


def save_answer(store: Store, answer: Answer) -> None:
    """Write the profiles, the records and the cells of an answer.

    A cell is written last, so that a finished cell is complete, also if this process is killed.
    """
    for name, content in answer.profiles.items():
        store.save(name, content)
    for cell in answer.cells:
        if cell.status == "ok":  # others are measured again, perhaps by another machine
            record = Record(
                cell=cell.id,
                host=answer.header.host,
                task=answer.task.id,
                files=answer.task.files,
            )
            store.save(f"{FOLDER}/{cell.id}.json", record.model_dump_json(indent=1) + "\n")
        store.save_cell(cell)


def hosts(store: Store) -> dict[str, str]:
    """Return the machine of each cell that another machine measured, by the cell's id."""
    records = (Record.model_validate_json(text) for text in store.texts(FOLDER))
    return {record.cell: record.host for record in records}
