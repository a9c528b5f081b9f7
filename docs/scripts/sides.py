# SPDX-License-Identifier: GPL-2.0-only
"""Pages of simulated curves beside measured ones, for data of `pack_sides.py`."""

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from docs.scripts import table
from fscale.analysis import skill
from fscale.analysis.skill import Curve, Pair, Score

CONTROL = "control_syscall"
PRIMITIVE = "primitive_"
Curves = dict[tuple[str, str], Curve]
SIGNS = {1: "rises", 0: "flat", -1: "falls"}


def curves(cells: list[list[Any]]) -> tuple[Curves, Curve | None]:
    """The median rate of each curve, and that of the control; None if there is none."""
    rates: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for workload, filesystem, _, cores, _, rate, _ in cells:
        rates[workload, filesystem][cores].append(rate)
    made: Curves = {
        name: {cores: statistics.median(found) for cores, found in sorted(curve.items())}
        for name, curve in rates.items()
    }
    control = next((curve for (name, _), curve in made.items() if name == CONTROL), None)
    return {name: of for name, of in made.items() if not name[0].startswith("control_")}, control


def page(data: Mapping[str, Any], measured: Mapping[str, Any], source: str) -> str:
    """The whole page; `measured` is the data that `data` stands beside."""
    real, control = curves(measured["cells"])
    lines = [f"# {data['title']}", ""]
    for name, side in data["sides"].items():
        machine = side["machine"]
        which = "" if len(data["sides"]) == 1 else f", {name}"
        lines.append(
            f"- Simulated{which}: {machine['cpu']}; Linux {machine['kernel']}; one boot per point."
        )
        lines += [
            f"  - {run['started'].replace('T', ', ')}: `{run['command']}`" for run in side["runs"]
        ]
    lines += [
        f"- Measured: [{data['beside'].removesuffix('.json')}]"
        f"({data['beside'].removesuffix('.json')}.md), Linux {measured['machine']['kernel']}.",
        f"- Data: [{source}](data/{source}).",
        *(f"- {note}" for note in data.get("notes", [])),
        "",
    ]
    found = {name: curves(side["cells"]) for name, side in data["sides"].items()}
    if all(workload.startswith(PRIMITIVE) for workload, _ in next(iter(found.values()))[0]):
        return "\n".join([*lines, *_rates({n: c for n, (c, _) in found.items()}, real)]) + "\n"
    pairs = {name: skill.matched(made, real, (own, control)) for name, (made, own) in found.items()}
    two = {
        name: skill.speedups({n: curve[n] for n in (1, 2)}, control)[2]
        for name, curve in real.items()
        if {1, 2} <= curve.keys()
    }
    return "\n".join([*lines, *_scores(pairs, two), "", *_each(pairs)]) + "\n"


def _rates(made: Mapping[str, Curves], real: Curves) -> list[str]:
    """The rate of each primitive, simulated by measured, and the mean error."""
    counts = sorted({n for sides in made.values() for curve in sides.values() for n in curve})
    rows = []
    for name, simulated in made.items():
        ratios = {
            key: {n: rate / real[key][n] for n, rate in curve.items() if n in real.get(key, {})}
            for key, curve in sorted(simulated.items())
            if key in real
        }
        for (workload, _), curve in ratios.items():
            cells = [f"{curve[n]:.2f}" if n in curve else "" for n in counts]
            rows.append([workload, name, *cells])
        means = []
        for n in counts:
            logs = [abs(math.log(curve[n])) for curve in ratios.values() if n in curve]
            means.append(f"{math.exp(statistics.fmean(logs)):.2f}" if logs else "")
        rows.append(["mean factor", name, *means])
    return [
        "The table has the simulated rate divided by the measured one. The mean factor is "
        "geometric, whether the rate is too high or too low: 1.00 would be perfect.",
        "",
        *table(["Primitive", "Model", *(f"{n} core{'s' * (n > 1)}" for n in counts)], rows),
    ]


def _scores(pairs: Mapping[str, list[Pair]], two: Mapping[tuple[str, str], float]) -> list[str]:
    first = next(iter(pairs.values()))
    predictors = dict(pairs) | skill.trivial(first, two)
    rows = []
    for title, wanted in (("contended", True), ("others", False)):
        for name, made in predictors.items():
            chosen = [pair for pair in made if pair.contended == wanted]
            if chosen:
                rows.append(_score(title, name, skill.score(chosen)))
    most = max(first[0].measured)
    return [
        f"Speed-ups at {most} cores are divided by those of `{CONTROL}`, which shares nothing; "
        "where a side has no such curve it is taken to be linear. A curve is contended if its "
        f"measured speed-up is then below {skill.CONTENDED * most:.0f}. Errors are natural "
        "logarithms of predicted by measured; the median is without signs, and a signed mean "
        "above 0 means too much speed-up. The slope is taken from the core count before to "
        f"{most}. Amdahl's law goes through the measured one and two cores.",
        "",
        *table(
            [
                "Curves",
                "Predictor",
                "n",
                "Median error",
                "Signed mean",
                "Slope right",
                "Peak right",
            ],
            rows,
        ),
    ]


def _score(title: str, name: str, of: Score) -> list[str]:
    return [
        title,
        name,
        str(of.curves),
        f"{of.error:.2f}",
        f"{of.signed:+.2f}",
        f"{of.slopes} of {of.curves}",
        f"{of.peaks} of {of.curves}",
    ]


def _each(pairs: Mapping[str, list[Pair]]) -> list[str]:
    """A row for each curve: speed-ups by the control, and the ends of the curves."""
    names = list(pairs)
    by = [{(p.workload, p.filesystem): p for p in made} for made in pairs.values()]
    counts = sorted(by[0][next(iter(by[0]))].measured)[1:]
    head = ["Workload", "File system"]
    for n in counts:
        head += [f"{name} at {n}".capitalize() for name in ("measured", *names)]
    head += [f"Slope {name}" for name in ("measured", *names)]
    head += [f"Peak {name}" for name in ("measured", *names)]
    rows = []
    for key in sorted(set.intersection(*(set(found) for found in by))):
        real = by[0][key].measured
        row = list(key)
        for n in counts:
            row += [f"{real[n]:.2f}", *(f"{found[key].predicted[n]:.2f}" for found in by)]
        row += [SIGNS[skill.slope(real)]]
        row += [SIGNS[skill.slope(found[key].predicted)] for found in by]
        row += [str(skill.peak(real)), *(str(skill.peak(found[key].predicted)) for found in by)]
        rows.append(row)
    return table(head, rows)
