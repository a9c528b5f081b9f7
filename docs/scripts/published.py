# SPDX-License-Identifier: GPL-2.0-only
"""The page of published kernel changes beside their simulation, for data of `pack_published.py`."""

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from docs.scripts import table
from fscale.analysis.skill import amdahl
from fscale.model.simulation import HEAP

COMMAND = (
    "python -m tests.validation.published --source linux-7.2 --build kernels --output "
    "results/changes"
)
REVERTS = "../../tests/validation/reverts"
NOT_YET = "it was not run"
NEAR = 0.14
"""of a natural logarithm: a factor of 1.15"""
NOTHING = 0.02
"""A gain or loss below this is none."""
Rates = Mapping[int, list[float]]
"""cores -> operations per second of each boot"""


@dataclass(frozen=True)
class Row:
    """A change at a core count: throughput with it by that without it."""

    change: str
    cores: int
    published: tuple[float, float]
    predicted: float
    band: tuple[float, float]
    """what single boots allow"""
    from_two: float | None
    """by Amdahl's law through one and two simulated cores of each side"""

    def error(self, predicted: float) -> float:
        """The natural logarithm of a prediction by the nearest published value."""
        low, high = self.published
        return math.log(predicted / min(max(predicted, low), high))

    def verdict(self, predicted: float) -> str:
        """How a prediction is to the published values."""
        if abs(self.error(predicted)) <= NEAR:
            return "near"
        middle = math.sqrt(self.published[0] * self.published[1])
        if sign(predicted) != sign(middle):
            return "wrong sign" if sign(predicted) else "no gain"
        return "too much" if self.error(predicted) > 0 else "too little"


def sign(ratio: float) -> int:
    """1 for a gain, -1 for a loss, 0 for neither."""
    return (ratio > 1 + NOTHING) - (ratio < 1 - NOTHING)


def rows(data: Mapping[str, Any]) -> list[Row]:
    """A row for each published core count that both sides have."""
    rates: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for change, side, cores, _, rate, *_ in data["cells"]:
        rates[change, side][cores].append(rate)
    found = []
    for name, change in data["changes"].items():
        parent, child = rates[name, "parent"], rates[name, "child"]
        for cores, low, high in change["published"]:
            if cores in parent and cores in child:
                found.append(_row(name, cores, (low, high), parent, child))
    return found


def _row(
    change: str, cores: int, published: tuple[float, float], parent: Rates, child: Rates
) -> Row:
    before, after = parent[cores], child[cores]
    laws = [_law(side, cores) for side in (parent, child)]
    return Row(
        change,
        cores,
        published,
        statistics.median(after) / statistics.median(before),
        (min(after) / max(before), max(after) / min(before)),
        laws[1] / laws[0] if laws[0] and laws[1] else None,
    )


def _law(rates: Rates, cores: int) -> float | None:
    """The rate that Amdahl's law gives for `cores`; None without one and two cores."""
    if 1 not in rates or 2 not in rates:
        return None
    one, two = (statistics.median(rates[n]) for n in (1, 2))
    return one * amdahl({2: two / one})(cores)


def page(data: Mapping[str, Any], source: str) -> str:
    """The whole page."""
    made = rows(data)
    boots = sorted(
        {len([c for c in data["cells"] if c[:3] == [r.change, "child", r.cores]]) for r in made}
    )
    days = sorted({change["started"][:10] for change in data["changes"].values()})
    lines = [
        f"# {data['title']}",
        "",
        f"{_verdict(made)} {len(_missing(data, made))} published points were not simulated.",
        "",
        f"- Simulated: {data['machine'].removeprefix('all figures are simulated on ')}.",
        f"- Kernel: Linux {data['kernel']}, small configuration without Linux security modules and "
        f"audit; QEMU {data['qemu']}.",
        f"- {' and '.join(days)}: `{COMMAND} --changes {','.join(data['changes'])}`; "
        f"{' to '.join(map(str, boots))} boots per side and core count.",
        "- Registered: published values, workloads and core counts were committed in "
        f"[changes.toml]({REVERTS}/changes.toml) before a change was simulated.",
        f"- Data: [{source}](data/{source}).",
        "",
        f"Each change is in Linux 7.2. A patch of [tests/validation/reverts]({REVERTS}) undoes it "
        "and nothing else, which makes the parent. A figure is the throughput with the change "
        "divided by that without it. *Predicted* is the ratio of the medians, with what single "
        "boots allow in brackets. *Two cores* is what "
        "Amdahl's law makes of one and two simulated cores of each side. A prediction is *near* "
        "if it is within a factor of 1.15 of the published values.",
        "",
        *table(
            ["Change", "Cores", "Published", "Predicted", "Two cores", "Verdict"],
            [_told(row, data["changes"][row.change]) for row in made],
        ),
        "",
        "## Beside trivial predictors",
        "",
        "Errors are natural logarithms without signs, at all rows of the table; the sign is right "
        f"if both or neither gain more than {NOTHING:.0%}.",
        "",
        *table(
            ["Predictor", "n", "Near", "Sign right", "Median error", "Mean error"], _scores(made)
        ),
        "",
        *_not_simulated(data, made),
        "## The changes",
        "",
    ]
    for name, change in (*data["changes"].items(), *data["waiting"].items()):
        lines += _about(name, change, data["cells"])
    return "\n".join(lines) + "\n"


def _missing(
    data: Mapping[str, Any], made: list[Row]
) -> list[tuple[str, Mapping[str, Any], list[Any]]]:
    """Names, changes and published values of the points without a simulated one."""
    done = {(row.change, row.cores) for row in made}
    return [
        (name, change, point)
        for name, change in (*data["changes"].items(), *data["waiting"].items())
        for point in change["published"]
        if (name, point[0]) not in done
    ]


def _not_simulated(data: Mapping[str, Any], made: list[Row]) -> list[str]:
    """The points without a simulated one, and the command for those that have a patch."""
    missing = _missing(data, made)
    if not missing:
        return []
    points = [
        [one["title"], str(cores), _range(low, high), one.get("not_simulated", NOT_YET)]
        for _, one, (cores, low, high) in missing
    ]
    names = dict.fromkeys(name for name, one, _ in missing if "not_simulated" not in one)
    command = f"`{COMMAND} --changes {','.join(names)}` simulates those that have a patch."
    head = ["Change", "Cores", "Published", "Not simulated because"]
    return ["## Not simulated", "", *([command, ""] if names else []), *table(head, points), ""]


def _told(row: Row, change: Mapping[str, Any]) -> list[str]:
    published = _range(*row.published)
    predicted = f"{row.predicted:.2f} ({row.band[0]:.2f} to {row.band[1]:.2f})"
    two = f"{row.from_two:.2f}" if row.from_two else ""
    verdict = row.verdict(row.predicted)
    return [change["title"], str(row.cores), published, predicted, two, verdict]


def _range(low: float, high: float) -> str:
    return " to ".join(dict.fromkeys((f"{low:.2f}", f"{high:.2f}")))


def _predictors(made: list[Row]) -> dict[str, list[tuple[Row, float]]]:
    """The ratios that each predictor gives; the simulator's come first."""
    return {
        "the simulator": [(row, row.predicted) for row in made],
        "no change": [(row, 1.0) for row in made],
        "Amdahl's law, two simulated cores": [
            (row, row.from_two) for row in made if row.from_two is not None
        ],
    }


def _verdict(made: list[Row]) -> str:
    """Whether the simulator beats the trivial predictors, by median errors and point by point."""
    (_, own), *others = _predictors(made).items()
    error = statistics.median(abs(row.error(value)) for row, value in own)
    texts = []
    for name, told in others:
        if told:
            theirs = statistics.median(abs(row.error(value)) for row, value in told)
            nearer = sum(abs(r.error(r.predicted)) < abs(r.error(value)) for r, value in told)
            verb = "beats" if error < theirs else "does not beat"
            texts.append(
                f'It {verb} "{name}", which errs by {math.exp(theirs):.2f}, and is nearer than '
                f"that at {nearer} of {len(told)} points."
            )
    changes = len({row.change for row in made})
    return (
        f"At the {len(made)} points of {changes} simulated changes the simulator errs by a factor "
        f"of {math.exp(error):.2f} in the median. {' '.join(texts)}"
    )


def _scores(made: list[Row]) -> list[list[str]]:
    return [_score(name, told) for name, told in _predictors(made).items() if told]


def _score(name: str, told: list[tuple[Row, float]]) -> list[str]:
    errors = [abs(row.error(predicted)) for row, predicted in told]
    right = [
        sign(predicted) == sign(math.sqrt(row.published[0] * row.published[1]))
        for row, predicted in told
    ]
    return [
        name,
        str(len(told)),
        str(sum(error <= NEAR for error in errors)),
        str(sum(right)),
        f"{statistics.median(errors):.2f}",
        f"{statistics.fmean(errors):.2f}",
    ]


def _line(thing: str) -> str:
    """An object by its name; heap memory of a kernel without type information has none."""
    return "a line" if thing.startswith(HEAP) else f"`{thing.partition(', ')[0]}`"


def _about(name: str, change: Mapping[str, Any], cells: list[list[Any]]) -> list[str]:
    most = max((cell[2] for cell in cells if cell[0] == name), default=0)
    hot = {
        side: next((c for c in cells if c[:3] == [name, side, most]), None)
        for side in ("parent", "child")
    }
    waits = [
        f"{side}: {cell[7]:.0%}, {_line(cell[5])} that `{cell[6]}` waits for"
        for side, cell in hot.items()
        if cell and cell[5]
    ]
    patch = f"; `{change.get('patch', name)}.patch`" if "workload" in change else ""
    quote = f': "{said}"' if (said := change.get("quote")) else ""
    return [
        f"**{change['title']}** (*{change['subject']}*, in Linux {change['release']}{patch})",
        "",
        f"- Published: [{change['benchmark']}]({change['source']}){quote}.",
        *([_simulation(change)] if "workload" in change else []),
        *([f"- Most of the cores' time at {most} cores: {'; '.join(waits)}."] if waits else []),
        "",
    ]


def _simulation(change: Mapping[str, Any]) -> str:
    options = "".join(f", {option}" for option in change.get("options", ()))
    where = change.get("filesystem", "tmpfs")
    return f"- Simulated: {change['workload']}{options} on {where}: {change['differs']}."
