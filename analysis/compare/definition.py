# SPDX-License-Identifier: GPL-2.0-only
"""The definition of the cells of two runs: whether their figures mean the same.

docs/reference/comparison-outputs.md has the table of differences that are refused, reported or
ignored.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fscale.model import crew
from fscale.model.errors import FscaleError
from fscale.model.facts import (
    Difference,
    collect_facts,
    compare_values,
    find_rule,
    nearly_equal,
)
from fscale.model.mount import group
from fscale.model.results import Cell, Machine, Run

_USUAL = {f"suite.{key}": value for key, value in crew.DEFAULTS.items()}
_WORKERS = f"suite.{crew.WORKERS_PER_CPU}"
_INHERITED = "machine.inherited."
Points = set[tuple[str, str, str]]
"""workload, file system and medium"""


def meaning(run: Run, workload: str, filesystem: str, medium: str) -> dict[str, Any]:
    """The facts that define the figures of a point, by key, as far as the run records them."""
    facts = _facts_of(run, {(workload, filesystem, medium)})
    return {
        key: value
        for key, value in facts.items()
        # What a key means if it is absent is left out, so that digests from before there was such a
        # key stay valid.
        if find_rule(key).on_compare == "refuse"
        and (value or not key.endswith(".settings"))
        and _USUAL.get(key) != value
    }


def _facts_of(run: Run, points: Points) -> dict[str, Any]:
    """The facts of a run about the given points only."""
    workloads, filesystems, media = ({point[part] for point in points} for part in range(3))
    facts = collect_facts(
        run.model_copy(
            update={
                "workloads": [w for w in run.workloads if w["id"] in workloads],
                "filesystems": {n: fs for n, fs in run.filesystems.items() if n in filesystems},
                "media": {n: medium for n, medium in run.media.items() if n in media},
                "loads": {n: options for n, options in run.loads.items() if n in workloads},
            }
        )
    )
    # The points of a sweep of workers have their own number, by which they match.
    swept = isinstance(facts[_WORKERS], list)
    return {key: value for key, value in facts.items() if not (swept and key == _WORKERS)}


def digest(facts: dict[str, Any]) -> str:
    """The digest of a `meaning`: points with different digests do not share a history."""
    text = json.dumps(facts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def refuse_other_kind(base: Machine, new: Machine) -> None:
    """FscaleError if the sides were measured on different kinds of machine.

    Virtualised, emulated, counted and simulated figures share only their unit.
    """
    if base.kind != new.kind:
        raise FscaleError(
            f"BASE was measured {_kind(base)} and NEW {_kind(new)}, and such figures cannot be "
            "compared; measure both in the same way"
        )


def _kind(machine: Machine) -> str:
    return "on the machine itself" if machine.guest is None else f"in a guest ({machine.kind})"


def notes(
    base: Run,
    new: Run,
    base_cells: Sequence[Cell],
    new_cells: Sequence[Cell],
    allow: Sequence[str],
    more: Sequence[Difference] = (),
) -> list[str]:
    """The differences between two runs, and `more` differences, one sentence each.

    Raises:
        FscaleError: a difference makes the figures mean different things, and `allow` does not name
            it.
    """
    sides = [(base, base_cells), (new, new_cells)]
    ours, theirs = (_facts_of(run, _points(cells)) for run, cells in sides)
    if _tells_inherited(base) and _tells_inherited(new):
        for key in filter(_left_out_if_plain, ours.keys() ^ theirs.keys()):
            for facts in (ours, theirs):
                facts.setdefault(key, "plain")
    differing = list(_fact_differences(ours, theirs))
    reported = {one.key for one in differing}
    mounts = _mount_differences(base_cells, new_cells)
    differences = [
        *more,
        *(one for one in differing if one.refused or one.key.startswith("suite.")),
        *(one for one in mounts if one.key.replace(".effective", "") not in reported),
        *_geometry_differences(base_cells, new_cells),
        *(one for one in differing if not one.refused and not one.key.startswith("suite.")),
    ]
    if refused := [d for d in differences if d.refused and not d.allowed(allow)]:
        raise FscaleError(
            f"the figures of the two sides mean different things: {'; '.join(map(str, refused))}. "
            "Measure one side again like the other, or, if you want to judge this very difference, "
            f"add {' '.join(_allow_options(refused))}"
        )
    sentences = [f"the sides differ in {difference}" for difference in differences]
    if base.machine.simulated:
        sentences.insert(
            0, "both sides are simulated: counts per operation are more reliable than rates"
        )
    return sentences


def _tells_inherited(run: Run) -> bool:
    """Whether what a run does not name among `inherited` was plain, and not merely unrecorded."""
    return not run.imported and "inherited" in run.machine.model_fields_set


def _left_out_if_plain(key: str) -> bool:
    """Other keys, of limits, are absent only from runs of an older fscale."""
    return key.startswith(_INHERITED) and find_rule(key).on_resume == "refuse"


def _allow_options(refused: Iterable[Difference]) -> list[str]:
    """The options that allow the differences, quoted for a shell."""
    return [f"--allow-different {shlex.quote(difference.key)}" for difference in refused]


def _points(cells: Iterable[Cell]) -> Points:
    return {(c.key.workload, c.key.filesystem, c.key.medium) for c in cells}


def _fact_differences(ours: dict[str, Any], theirs: dict[str, Any]) -> Iterator[Difference]:
    """The differences in facts that both runs record; refused ones first, ignored ones left out."""
    rules = {key: find_rule(key).on_compare for key in ours.keys() & theirs.keys()}
    of_the_machine = ("machine.", "media.")
    for key in sorted(
        (key for key, then in rules.items() if then != "ignore"),
        key=lambda key: (rules[key] != "refuse", key.startswith(of_the_machine), key),
    ):
        if one := compare_values(key, ours[key], theirs[key]):
            yield one


def _mount_differences(
    base_cells: Sequence[Cell], new_cells: Sequence[Cell]
) -> Iterator[Difference]:
    """Differences between the effective mounts of equal points: defaults differ between kernels."""
    sides = [
        {(c.key.filesystem, c.key.medium): c.mount for c in cells if c.mount and c.status == "ok"}
        for cells in (base_cells, new_cells)
    ]
    for place in sorted(sides[0].keys() & sides[1].keys()):
        ours, theirs = sides[0][place], sides[1][place]
        key = f"filesystems.{place[0]}.effective.mount_options"
        # A size that is a share of memory is compared as that share.
        one, other = ([o for o in m.options if group(o) != "size"] for m in (ours, theirs))
        devices = (_device(ours.source), _device(theirs.source))
        yield from filter(
            None,
            (compare_values(key, one, other), compare_values(f"media.{place[1]}.source", *devices)),
        )


def _device(source: str) -> str:
    """The mounted device, without the number of a loop device, which is arbitrary."""
    return re.sub(r"^/dev/loop\d+", "/dev/loop", source)


def _geometry_differences(
    base_cells: Sequence[Cell], new_cells: Sequence[Cell]
) -> Iterator[Difference]:
    """Differences in what mkfs chose for equal points, each key of a file system once."""
    sides = [
        {(c.key.filesystem, c.key.medium, c.key.cores): c.geometry for c in cells if c.geometry}
        for cells in (base_cells, new_cells)
    ]
    differences: dict[str, Difference] = {}
    for place in sorted(sides[0].keys() & sides[1].keys()):
        ours, theirs = sides[0][place], sides[1][place]
        for name in sorted(ours.keys() & theirs.keys()):
            key = f"filesystems.{place[0]}.geometry.{name}"
            if not nearly_equal(ours[name], theirs[name]):
                differences.setdefault(key, Difference(key, ours[name], theirs[name]))
    yield from differences.values()
