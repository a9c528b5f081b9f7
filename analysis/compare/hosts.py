# SPDX-License-Identifier: GPL-2.0-only
"""The machines of cells that a cluster measured: a difference between two must not be a verdict."""

from collections import defaultdict

from pydantic import ValidationError

from fscale.analysis.compare.sides import Sides
from fscale.analysis.reader import Results
from fscale.farm.results import hosts
from fscale.model.errors import FscaleError
from fscale.model.facts import Difference
from fscale.model.store import Store

KEY = "machine.hosts"


def mixed_hosts(sides: Sides) -> list[Difference]:
    """The machines of both sides if a point has several; none if each side has one machine.

    Simulated cells depend on no machine: the guest's clock is simulated.

    Raises:
        FscaleError: a record of a side's tasks is not valid.
    """
    results = (sides.base_results, sides.new_results)
    if results[0].run.machine.simulated:
        return []
    known = [_hosts(one) for one in results]
    if not any(known):
        return []
    points: dict[str, set[str]] = defaultdict(set)
    side_hosts: tuple[set[str], set[str]] = set(), set()
    for side, cells in enumerate((sides.base_cells, sides.new_cells)):
        controller = results[side].run.machine.hostname
        for cell in cells:
            host = known[side].get(cell.id, controller)
            side_hosts[side].add(host)
            points[cell.key.point].add(host)
    if max(map(len, side_hosts)) == 1 or max(map(len, points.values())) == 1:
        return []
    return [Difference(KEY, *map(sorted, side_hosts))]


def _hosts(results: Results) -> dict[str, str]:
    try:
        return hosts(Store(results.path))
    except (OSError, ValidationError) as error:
        raise FscaleError(
            f"{results.path}/hosts says which machine measured a cell, and cannot be read: "
            f"{str(error).splitlines()[0]}"
        ) from None
