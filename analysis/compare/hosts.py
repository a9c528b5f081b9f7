# SPDX-License-Identifier: GPL-2.0-only
"""The machines of cells that a cluster measured: a difference between two must not be a verdict."""

from fscale.analysis.compare.pairs import match_cells
from fscale.analysis.compare.sides import Sides
from fscale.model.facts import Difference

KEY = "machine.hosts"


def mixed_hosts(sides: Sides) -> list[Difference]:
    """The machines of both sides if a point has several; none if each side has one machine.

    That the sides' machines differ is then a difference in `machine.hostname`.
    """
    results = (sides.base_results, sides.new_results)
    if not any(one.hosts for one in results):
        return []
    side_hosts: tuple[set[str], set[str]] = set(), set()
    most = 0
    for both in match_cells(sides.base_cells, sides.new_cells).values():
        point = set()
        for side, cells in enumerate(both):
            machine = results[side].run.machine.host
            hosts = {results[side].hosts.get(c.id, machine) for c in cells if c.status == "ok"}
            side_hosts[side].update(hosts)
            point |= hosts
        most = max(most, len(point))
    if max(map(len, side_hosts)) <= 1 or most <= 1:
        return []
    return [Difference(KEY, *map(sorted, side_hosts))]
