# SPDX-License-Identifier: GPL-2.0-only
"""The page of predicted curves: what predictors are worth, and what was registered."""

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

from docs.scripts import accuracy, evidence, table
from docs.scripts.accuracy import Coverage, Gain
from docs.scripts.evidence import Case
from docs.scripts.predictors import FROM_MORE, FROM_TWO, MEAN, SCALED, SIMULATED, Predictor
from fscale.analysis.prediction.rule import LEVEL

NEAR = 0.14
"""of a natural logarithm: a factor of 1.15"""
COUNTS = (8, 16)
HEAD = [
    *("Predictor", "Cores", "n", "Median", "Mean", "Within 1.15"),
    *("Gain over the simulator", "Gain over the mean"),
]
LEAD = (
    "On a machine that was not measured (one pair of machines), nothing here beats the simulator "
    "alone by more than its own error, and in the median Amdahl's law through two measured cores "
    "is as good. On the measured machine the simulated curve that is scaled to two cores beats "
    "both at 16 cores, and is as good as the universal scalability law through 1, 2, 4 and 8 "
    "measured cores. At 8 cores its gain over the geometric mean of the simulator and Amdahl's law "
    "is within its error. Beyond 16 cores nothing was judged."
)
METHOD = (
    "Errors are natural logarithms of predicted by measured speed-ups: 0.11 is a factor of 1.12. "
    "Rates are medians, and no speed-up is divided by a control. *Simulated, scaled* multiplies "
    "the simulated curve so that it meets the measured one at two cores (or at 4, or 8), and gives "
    "at most linear scaling. *Geometric mean* is of the simulated speed-up and of Amdahl's law "
    "through one and two measured cores. *Gain* is how much smaller errors are than those of "
    "another predictor; its interval is Student's 95% one over workloads. `python -m "
    "tests.validation.predicted` prints the same tables."
)
SEARCH = (
    "Some twenty rules were tried on these curves, and the scaled one was found after the "
    "curves had been seen. It is chosen again if the rule with the smallest mean error at 16 cores "
    "is taken from all other workloads: for {chosen} of {workloads} workloads on the measured "
    "machine, for {another} of {of_another} on another one."
)


def page(data: Mapping[str, Any], source: str) -> str:
    """The whole page."""
    rows = data["predictions"]
    curves = {(row[0], row[1], row[2]) for row in rows}
    lines = [
        f"# {data['title']}",
        "",
        LEAD,
        "",
        f"- Data: [{source}](data/{source}), registered on {data['registered']}.",
        f"- Rule: {data['rule']}",
        f"- Seen before the rule was chosen: {data['seen']}.",
        f"- {len(curves)} curves, on {', '.join(sorted({name for _, _, name in curves}))}.",
        "",
        "## What predictors are worth",
        "",
        METHOD,
        "",
        *tables(),
        "## Registered predictions",
        "",
        "Speed-ups of a machine that nobody has measured, with an interval that should hold "
        f"{LEVEL:.0%} of them. Curves begin with measurements of "
        + " and ".join(f"[{start}]({start}.md)" for start, _ in data["starts"])
        + ", and simulations of "
        + " and ".join(f"[{end}]({end}.md)" for _, end in data["starts"])
        + ". The last column says where the simulated and the measured two cores differ by more "
        "than in 95% of the record: there `fscale predict` says that it cannot tell.",
        "",
        *table(
            ["Workload", "File system", "Cores", "Speed-up", *_others(data), "Cannot tell"],
            map(_registered, rows),
        ),
    ]
    return "\n".join(lines) + "\n"


def tables() -> list[str]:
    """What predictors are worth, and how many intervals hold, as Markdown."""
    parts: list[str] = []
    for title, cases, predictors in _sets():
        parts += [f"### {title}", "", *table(HEAD, _scores(cases, predictors)), ""]
    sets = {"chosen": evidence.same_machine(), "another": evidence.of_another()}
    picks = {name: accuracy.chosen(cases, 16) for name, cases in sets.items()}
    counts = {name: list(of.values()).count(SCALED) for name, of in picks.items()}
    said = SEARCH.format(**counts, workloads=len(picks["chosen"]), of_another=len(picks["another"]))
    return [*parts, said, "", "### Intervals", "", *_coverage()]


def _sets() -> list[tuple[str, list[Case], dict[str, Predictor]]]:
    without = {name: one for name, one in FROM_TWO.items() if name != SCALED}
    flat = {name: one for name, one in FROM_MORE.items() if not name.startswith(SCALED)}
    return [
        ("More cores of the measured machine", evidence.same_machine(), FROM_TWO | FROM_MORE),
        ("Another machine than the measured one", evidence.of_another(), FROM_TWO),
        (
            "More cores, simulated with that machine's own latencies (no two cores simulated)",
            evidence.calibrated(),
            without | flat,
        ),
    ]


def _scores(cases: Sequence[Case], predictors: Mapping[str, Predictor]) -> list[list[str]]:
    rows = []
    for cores in COUNTS:
        others = {name: accuracy.errors(cases, FROM_TWO[name], cores) for name in (SIMULATED, MEAN)}
        for name, predictor in predictors.items():
            if cores == 8 and name.endswith("8"):
                continue
            found = accuracy.errors(cases, predictor, cores)
            sizes = [abs(error) for error in found.values()]
            row = [name, str(cores), str(len(sizes)), f"{statistics.median(sizes):.2f}"]
            row += [f"{statistics.fmean(sizes):.2f}", str(sum(size <= NEAR for size in sizes))]
            gains = [
                "" if name == other else _gain(accuracy.gain(found, over))
                for other, over in others.items()
            ]
            rows.append([*row, *gains])
    return rows


def _gain(of: Gain) -> str:
    return f"{of.mean:+.2f} ({of.low:+.2f} to {of.high:+.2f})"


def _coverage() -> list[str]:
    """How many intervals hold the truth, each taken from other curves."""
    rows = []
    doubts = []
    for title, cases in (
        ("the measured machine", evidence.same_machine()),
        ("another machine", evidence.of_another()),
    ):
        doubts.append(f"{accuracy.doubt(cases, FROM_TWO[SCALED], 16):.2f} on {title}")
        for cores in COUNTS:
            found = accuracy.errors(cases, FROM_TWO[SCALED], cores)
            held = _held(accuracy.left_out(found))
            rows.append([title, str(cores), "all other workloads", *held])
    sets = {"FxMark's": evidence.fxmark(), "the twenty": evidence.held_out()}
    for (of, cases), (others, before) in permutations(sets.items(), 2):
        for cores in COUNTS:
            found, known = (accuracy.errors(c, FROM_TWO[SCALED], cores) for c in (cases, before))
            held = _held(accuracy.transferred(found, known))
            rows.append([f"the measured machine, {of}", str(cores), others, *held])
    head = ["Intervals of", "Cores", "From errors on", "n", "Held", "Share", "Factor"]
    return [
        f"Intervals should hold {LEVEL:.0%} of the curves. The factor is an interval's upper end "
        "by the prediction. A *misfit* is the difference between the simulated and the measured "
        "two cores, and `fscale predict` says that it cannot tell where it is larger than 95% of "
        "those here. It warns of few errors: the rank correlation of both at 16 cores is "
        f"{' and '.join(doubts)} (Spearman).",
        "",
        *table(head, rows),
        "",
    ]


def _held(of: Coverage) -> list[str]:
    share = f"{of.held / of.curves:.0%}"
    return [str(of.curves), str(of.held), share, f"{math.exp(of.width):.2f}"]


def _others(data: Mapping[str, Any]) -> list[str]:
    return [name.capitalize() for name in data["others"]]


def _registered(row: Sequence[Any]) -> list[str]:
    _, workload, filesystem, cores, value, low, high, *others, doubtful = row
    told = f"{value:.3g} ({low:.3g} to {high:.3g})"
    return [
        workload,
        filesystem,
        str(cores),
        told,
        *(f"{other:.3g}" for other in others),
        "yes" if doubtful else "",
    ]


def judged(
    data: Mapping[str, Any], measured: Mapping[tuple[str, str, int], float]
) -> dict[str, list[float]]:
    """The errors of the registered predictions that were measured, by predictor.

    `measured` has speed-ups by workload, file system and cores. The last entry, `held`, has 1 for
    each interval that holds the measured speed-up, and 0 for each that does not.
    """
    found: dict[str, list[float]] = defaultdict(list)
    for _, workload, filesystem, cores, value, low, high, *others, _ in data["predictions"]:
        truth = measured.get((workload, filesystem, cores))
        if truth is None:
            continue
        for name, predicted in zip([SCALED, *data["others"]], [value, *others], strict=True):
            found[name].append(math.log(predicted / truth))
        found["held"].append(float(low <= truth <= high))
    return found
