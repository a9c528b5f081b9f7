# SPDX-License-Identifier: GPL-2.0-only
"""What a run found about scaling, in a sentence, for people who read nothing else."""

from collections import Counter
from collections.abc import Sequence

from fscale.analysis.compare.settings import DISTURBED_SHARE
from fscale.analysis.control import control_of
from fscale.analysis.curves import Page, arrange
from fscale.analysis.findings import CurveFinding, Scaling, findings
from fscale.analysis.reader import Results
from fscale.analysis.summary import summarise
from fscale.model.results import Cell
from fscale.model.topology import machine_layout
from fscale.model.words import plural

# What a curve does, and what several do; the worst first.
_VERBS = {
    Scaling.FALLS: ("falls", "fall"),
    Scaling.FLAT: ("shows no clear change", "show no clear change"),
    Scaling.PARTLY: ("stays well below linear", "stay well below linear"),
    Scaling.SCALES: ("scales", "scale"),
    Scaling.SUPERLINEAR: (
        "is faster than linear, which is doubtful",
        "are faster than linear, which is doubtful",
    ),
}
_GOOD = (Scaling.SCALES, Scaling.SUPERLINEAR)


def pages_of(results: Results) -> list[Page]:
    """The curves of a run, a page for each medium and I/O mode."""
    return arrange(
        summarise(results.scored),
        list(results.run.filesystems),
        results.descriptors,
        machine_layout(results.run.machine),
        {None: control_of(results)},
    )


def sentences(results: Results) -> list[str]:
    """One for each medium and I/O mode of a run: how many curves do what, and the worst one."""
    pages = pages_of(results)
    doubt = _doubt(results)
    several = len(pages) > 1
    return [f"{page.title}: {doubt}{of(page)}" if several else doubt + of(page) for page in pages]


def mostly_disturbed(cells: Sequence[Cell]) -> bool:
    """Whether so many repetitions were disturbed that it is said once, of all of them."""
    return _disturbed(cells) > DISTURBED_SHARE * len(cells)


def _disturbed(cells: Sequence[Cell]) -> int:
    return sum(cell.disturbed is not None for cell in cells)


def _doubt(results: Results) -> str:
    cells = results.scored
    if not mostly_disturbed(cells):
        return ""
    disturbed = _disturbed(cells)
    return f"doubtful, because other load disturbed {disturbed} of {len(cells)} repetitions: "


def of(page: Page) -> str:
    """How many curves of a page do what, and the worst one."""
    found = findings(page)
    if not found:
        return "no speed-up, because no curve has figures at its base and at more cores"
    worst = min(found, key=lambda one: (one.verdict in _GOOD, one.ratio.value / one.curve.linear))
    if len(found) == 1:
        return f"{_name(worst)} {_VERBS[worst.verdict][0]}: {_change(worst)}"
    counts = Counter(one.verdict for one in found)
    parts = [
        f"{counts[verdict]} {words[counts[verdict] > 1]}"
        for verdict, words in _VERBS.items()
        if counts[verdict]
    ]
    text = f"of {len(found)} curves up to {page.cores[-1]} cores, {', '.join(parts)}"
    if worst.verdict not in _GOOD:
        text += f"; lowest: {_name(worst)}, {_change(worst)}"
    return text


def _name(found: CurveFinding) -> str:
    return f"{found.panel.name} on {found.curve.name}"


def _change(found: CurveFinding) -> str:
    first, last = found.curve.points[0], found.curve.top
    return (
        f"{found.ratio.value:.3g} times the throughput of {plural(first.key.cores, 'core')} with "
        f"{last.key.cores}"
    )
