# SPDX-License-Identifier: GPL-2.0-only
"""The machines of both sides: a difference between two machines must not be a verdict."""

from collections.abc import Sequence

from fscale.analysis.compare.pairs import match_cells
from fscale.analysis.compare.sides import Sides
from fscale.model.errors import FscaleError
from fscale.model.facts import Difference
from fscale.model.results import UNKNOWN

KEY = "machine.hosts"


def warn_of_unknown(sides: Sides, allow: Sequence[str]) -> list[str]:
    """A sentence if a side does not name its machine, which `allow` must then name.

    Raises:
        FscaleError: `allow` does not name it.
    """
    runs = {"BASE": sides.base_results.run, "NEW": sides.new_results.run}
    unknown = " and ".join(name for name, run in runs.items() if not run.machine.known)
    if not unknown:
        return []
    if not Difference(KEY, UNKNOWN, UNKNOWN).allowed(allow):
        raise FscaleError(
            f"the machine of {unknown} is not known, and a difference between two machines must "
            f"not be a verdict; import with --host NAME, or add --allow-different {KEY}"
        )
    return [f"the machine of {unknown} is not known: a difference may be that of two machines"]


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
