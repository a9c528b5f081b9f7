# SPDX-License-Identifier: GPL-2.0-only
"""Boots guests one after another, and keeps what each found in the results directory."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from fscale.commute.conflicts import Conflict, lasting
from fscale.commute.generate import ORDERS, PairTest
from fscale.commute.guest import Guest, execute
from fscale.commute.matrix import Matrix, Pair, matrix
from fscale.commute.script import written
from fscale.model.errors import FscaleError
from fscale.model.files import write_named
from fscale.model.terminal import say

TESTS = "tests.jsonl"
MATRIX = "matrix.json"
BOOTS = "boots"


def begin(output: Path, tests: Sequence[PairTest]) -> None:
    """Write the tests. FscaleError if the directory has other ones."""
    text = "".join(f"{json.dumps({'id': t.id, 'lines': written(t)})}\n" for t in tests)
    path = output / TESTS
    if path.exists() and path.read_text() != text:
        raise FscaleError(f"{output} contains other tests; use another --output")
    (output / BOOTS).mkdir(parents=True, exist_ok=True)
    write_named(path, text)


def measure(
    guest: Guest,
    filesystem: str,
    tests: Sequence[PairTest],
    sizes: Mapping[Pair, int],
    boots: int,
    seed: int,
    cpu: int,
    output: Path,
) -> Matrix:
    """Boot a guest so often, unless `output` has the boot; the orders of the calls alternate.

    Raises:
        BootError, InterpreterError: a guest, or a test in it, failed.
    """
    found = []
    for number in range(boots):
        name = re.sub(r"[^\w.=,-]", "_", f"{filesystem}-{guest.kernel.release}-{number + 1}")
        path = output / BOOTS / f"{name}.jsonl"
        head = f"{json.dumps({'guest': guest.identity})}\n"
        if path.exists() and not path.read_text().startswith(head):
            raise FscaleError(
                f"{path} is of another kernel, module or program; use another --output"
            )
        if not path.exists():
            release = guest.kernel.release
            say(f"boot {number + 1} of {boots}: {filesystem} on {release}", error=True)
            conflicts = execute(guest, tests, ORDERS[number % 2], seed + number, cpu)
            write_named(path, "".join([head, *map(_line, tests, conflicts)]))
        found.append([_read(line) for line in path.read_text().splitlines()[1:]])
    kept = map(lasting, zip(*found, strict=True))
    counted = dict(zip(tests, kept, strict=True))
    return matrix(filesystem, guest.kernel.release, boots, counted, sizes)


def write(output: Path, found: Sequence[Matrix]) -> None:
    """Write all matrices."""
    text = json.dumps([one.as_json() for one in found], indent=1)
    write_named(output / MATRIX, f"{text}\n")


def _line(test: PairTest, conflicts: Sequence[Conflict]) -> str:
    return f"{json.dumps({'id': test.id, 'conflicts': list(map(asdict, conflicts))})}\n"


def _read(line: str) -> list[Conflict]:
    return [
        Conflict(one["object"], one["layout"], tuple(one["a"]), tuple(one["b"]))
        for one in json.loads(line)["conflicts"]
    ]
