# SPDX-License-Identifier: GPL-2.0-only
"""Warnings of a comparison: what both sides share or differ in, and may be taken for a change."""

from collections.abc import Iterable, Iterator

from fscale.analysis.compare.definition import notes
from fscale.analysis.compare.hosts import mixed_hosts, warn_of_unknown
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import Sides
from fscale.model import crew
from fscale.model.results import Cell

IDENTICAL = (
    "the sides are identical (an A/A run): whatever changes is noise, and `same` says nothing "
    "about a patch"
)
BETWEEN_BOOTS = (
    "the sides were measured in different boots: each boot places code and data elsewhere in "
    "memory, which changes the figures and counts as a change here, so more than 1% of such "
    "comparisons may raise a false alarm (`fscale ab` measures both sides in one boot, or, with "
    "kernels, boots for each repetition)"
)


def collect_warnings(sides: Sides, settings: Settings) -> list[str]:
    """Reasons to doubt the comparison, one sentence each.

    Raises:
        FscaleError: a difference between the runs makes their figures mean different things.
    """
    warnings = []
    base, new = sides.base_results, sides.new_results
    if not sides.interleaved:
        warnings.append(
            "the sides were not interleaved: if the machine changed between the two runs, that "
            "counts as a change (`fscale ab` avoids this)"
        )
        warnings += warn_of_unknown(sides, settings.allow_different)
        if between_boots(sides):
            warnings.append(BETWEEN_BOOTS)
        warnings += notes(
            *(base.run, new.run, sides.base_cells, sides.new_cells),
            *(settings.allow_different, mixed_hosts(sides)),
        )
        if sides.base_cells and sides.base_cells == sides.new_cells:
            warnings.append("both sides are the same measurements, so they cannot differ")
        if _differ("cpu_control", base.scored, new.scored):
            warnings.append(
                "unused CPUs were excluded by hotplug on one side and by affinity on the other"
            )
        if _differ("caches_dropped", base.scored, new.scored):
            warnings.append("caches were dropped before each cell on one side only")
    elif sides.identical:
        warnings.append(IDENTICAL)
    in_new = crew.sentences(new.run)
    warnings += [f"on both sides, {text}" for text in crew.sentences(base.run) if text in in_new]
    for name, cells in (("BASE", sides.base_cells), ("NEW", sides.new_cells)):
        scored = [c for c in cells if c.key.profile is None]
        wrong = sum(c.status != "ok" for c in scored)
        disturbed = sum(c.status == "ok" and c.disturbed is not None for c in scored)
        if wrong:
            warnings.append(f"{wrong} of {len(scored)} repetitions of {name} gave no value")
        if disturbed:
            warnings.append(
                f"other processes disturbed {disturbed} of {len(scored)} repetitions of {name}"
            )
    for name, results in {"BASE": base, "NEW": new}.items():
        if results.unreadable:
            warnings.append(
                f"{len(results.unreadable)} cell files of {name} cannot be read and are not used"
            )
        if results.run.state != "complete":
            warnings.append(f"the run of {name} is {results.run.state_shown}")
    guests = [r.run.machine.guest for r in (base, new) if r.run.machine.guest]
    labels = dict.fromkeys(str(guest.get("label")) for guest in guests)
    return warnings + [f"measured in a guest ({label})" for label in labels]


def between_boots(sides: Sides) -> bool | None:
    """Whether differences between boots count as a change.

    The rate of false alarms is known only for comparisons within a boot. None if a run does not
    record its boots. Interleaved sides share their boots, or each repetition is a boot of its own.
    """
    if sides.interleaved:
        return False
    base, new = (results.run.machine for results in (sides.base_results, sides.new_results))
    if base.host != new.host:
        return True
    if not base.boots or not new.boots:
        return None
    return len({*base.boots, *new.boots}) > 1


def _differ(field: str, base: Iterable[Cell], new: Iterable[Cell]) -> bool:
    """Whether cells of the same load and core count differ in a field where both record it."""
    sides = [
        {
            (cell.key.workload, cell.key.mode, cell.key.cores, value)
            for cell in _measured_cells(cells)
            if (value := getattr(cell, field)) is not None
        }
        for cells in (base, new)
    ]
    places = [{place[:3] for place in side} for side in sides]
    return any(place[:3] in places[0] & places[1] for place in sides[0] ^ sides[1])


def _measured_cells(cells: Iterable[Cell]) -> Iterator[Cell]:
    """The cells that were measured; others, and imported ones, may not tell their CPUs."""
    return (cell for cell in cells if cell.status == "ok" and cell.cpus)
