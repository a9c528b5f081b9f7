# SPDX-License-Identifier: GPL-2.0-only
"""The C core has layers: no file needs another that needs it."""

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from fscale.model import paths

CORE = paths.ROOT / "microbench/core"
INCLUDE = re.compile(r'^#include "(\w+)\.h"$', re.MULTILINE)


def needs(core: Path) -> dict[str, set[str]]:
    """Unit (its .c and .h together) -> the other units whose headers it includes."""
    found: dict[str, set[str]] = {}
    for file in core.glob("*.[ch]"):
        found.setdefault(file.stem, set()).update(INCLUDE.findall(file.read_text()))
    return {unit: others - {unit} for unit, others in found.items()}


def test_no_circles() -> None:
    graph = needs(CORE)
    assert {"main", "run", "bench", "workload", "shm"} <= set(graph)
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as circle:
        pytest.fail(" -> ".join(circle.args[1]))
    assert order.index("bench") < order.index("crew") < order.index("run")


def test_only_main_orchestrates() -> None:
    assert {unit for unit, others in needs(CORE).items() if "run" in others} == {"main"}
