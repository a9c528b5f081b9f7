# SPDX-License-Identifier: GPL-2.0-only
"""What is read from the files of another program, and values that several programs share."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from fscale.model.bench import Descriptor
from fscale.model.results import UNKNOWN, Cell, CellKey, Machine

_LONGEST = 60  # characters of a name, which is part of a file name


def unknown_machine() -> Machine:
    """Make a machine of which nothing is known."""
    return Machine(
        hostname=UNKNOWN,
        kernel=UNKNOWN,
        kernel_cmdline="",
        architecture=UNKNOWN,
        cpu_model=UNKNOWN,
        memory_bytes=0,
        topology=[],
        cpu_order=[],
        governor=None,
        mitigations={},
        virtualization=None,
    )


@dataclass
class Reading:
    """The cells of some files, and as much about the run as the files tell.

    Each cell is repetition 1, and its key has all options of its workload: `run.read` counts the
    repetitions, and moves options that do not vary into the record of the run.
    """

    cells: list[Cell]
    left_out: list[str] = field(default_factory=list)
    """a sentence for each part of the files that is not imported"""
    notes: list[str] = field(default_factory=list)
    """a sentence for each reason to read the figures with care; the run has them as warnings"""
    started: str | None = None
    """ISO 8601; None if the files do not tell"""
    machine: Machine = field(default_factory=unknown_machine)
    workloads: list[Descriptor] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    """what the program was told about the whole run"""
    media: dict[str, dict[str, str]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    planned: int | None = None
    """cells that were to be measured; None: those that were"""
    complete: bool = True
    """whether the program came to its end"""


def make_cell(workload: str, cores: int, **given: Any) -> Cell:
    """Make a cell of which the place is not known.

    `given`: fields of the cell, and `duration`, `mode` and `options` of its key.
    """
    of_key = {name: given.pop(name) for name in ("mode", "options") if name in given}
    key = CellKey(
        workload=make_name(workload),
        filesystem=UNKNOWN,
        medium=UNKNOWN,
        cores=cores,
        repetition=1,
        duration=given.pop("duration", 1),
        **({"mode": "buffered"} | of_key),
    )
    return Cell(**({"id": key.id, "key": key, "status": "ok", "started": ""} | given))


def make_name(text: str) -> str:
    """Make a name of a command or a title: what cannot be in a file name becomes `_`."""
    return re.sub(r"[^\w.+@-]+", "_", text, flags=re.ASCII).strip("_")[:_LONGEST] or UNKNOWN


def drop_counts(counted: Iterable[tuple[str, int]]) -> dict[str, str]:
    """Map names that end with their own number of workers to what they have in common.

    `counted`: names with numbers of workers. `read-1` with 1 and `read-2` with 2 are two points of
    the curve `read`; a name that has several numbers, or has no such partner, remains as it is.
    """
    numbers: dict[str, set[int]] = defaultdict(set)
    for name, count in counted:
        numbers[name].add(count)
    stems: dict[str, list[str]] = defaultdict(list)
    for name, counts in numbers.items():
        match = re.fullmatch(rf"(.*[^\d\s_.-])[\s_.-]?{min(counts)}", name)
        if match and len(counts) == 1:
            stems[match[1]].append(name)
    dropped = {name: stem for stem, names in stems.items() if len(names) > 1 for name in names}
    return {name: dropped.get(name, name) for name in numbers}
