# SPDX-License-Identifier: GPL-2.0-only
"""Formats figures and verdicts, in the same way for every output."""

import re
from collections.abc import Iterable, Sequence
from typing import get_args

from fscale.analysis.compare.model import (
    Comparison,
    Health,
    HealthKind,
    Judgement,
    LockFinding,
    Policy,
    Sample,
    Subject,
    Tally,
    Verdict,
)
from fscale.analysis.metrics import (
    COUNT,
    CPU_EFFICIENCY,
    DOUBLING,
    LATENCIES,
    NAMED,
    PEAK,
    PER_JOULE,
    SETTLED,
    SPEEDUP,
    THROUGHPUT,
)
from fscale.model.bench import Mode
from fscale.model.files import printable
from fscale.model.words import plural

UNITS: dict[str, str] = {
    THROUGHPUT: "ops/s",
    CPU_EFFICIENCY: "ops/CPU s",
    SETTLED: "ops/s",
    SPEEDUP: "x",
    DOUBLING: "x/doubling",
    PEAK: "cores",
    **{metric: metric for metric in NAMED},
    PER_JOULE: "ops/J",
}
HEALTH: tuple[HealthKind, ...] = ("broken", "lost", "mended")
ORDERS: dict[Policy, tuple[Verdict, ...]] = {
    "noisy": ("slower", "faster", "undecided", "same"),
    "counted": ("newly shared", "more", "less", "same"),
}


def ordered(comparison: Comparison) -> list[Judgement]:
    """The judgements, the most important verdicts first."""
    order = ORDERS[comparison.policy]
    return sorted(comparison.judgements, key=lambda j: order.index(j.verdict))


def conclusion(comparison: Comparison) -> str:
    """The answer in a sentence; what could not be decided is never an absence of regressions."""
    undecided, judged = comparison.count("undecided"), len(comparison.judgements)
    if comparison.regressed:
        return "found a regression"
    if not undecided:
        return "found no regression"
    if undecided == judged:
        return "could not judge whether there is a regression"
    return f"could not judge {undecided} of {judged} tests, and found no regression in the others"


def headline(comparison: Comparison) -> str:
    """The number of each kind: "1 broken, 2 slower, 1 faster, 3 undecided, 40 same"."""
    counts = {kind: len(comparison.of_kind(kind)) for kind in HEALTH}
    points = [f"{count} {kind}" for kind, count in counts.items() if count]
    verdicts = (f"{comparison.count(v)} {v}" for v in ORDERS[comparison.policy])
    return ", ".join([*points, *verdicts])


def health(point: Health) -> str:
    """Describe a point that is good on one side only."""
    sides = {name: _tally(side) for name, side in (("BASE", point.base), ("NEW", point.new))}
    tallies = "; ".join(f"{name}: {text}" for name, text in sides.items())
    return f"{point.kind}: {where(point.subject)} ({tallies}): {printable(point.reason)}"


def _tally(side: Tally) -> str:
    counts = {"good": side.good, "broken": side.broken, "unusable": side.unusable}
    return ", ".join(f"{n} {name}" for name, n in counts.items() if n) or "not measured"


def unit(judgement: Judgement) -> str:
    """The unit of the metric's values; latencies and fairness have the metric's name instead."""
    if judgement.metric.startswith(COUNT):
        return f"{judgement.metric.removeprefix(COUNT).replace('-', ' ')}/op"
    return UNITS[judgement.metric]


def number(value: float | None) -> str:
    """Four significant digits with a prefix: 4523000 -> "4.523M"."""
    if value is None:
        return "-"
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.4g}{prefix}"
    return f"{value:.4g}"


def seconds(value: float | None) -> str:
    """A latency in seconds with four significant digits: 4.523e-06 -> "4.523us"."""
    if value is None:
        return "-"
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= factor:
            return f"{value / factor:.4g}{unit}"
    return f"{value / 1e-9:.4g}ns"


def figure(metric: str, value: float | None) -> str:
    """A metric's value, with its unit if it is a time."""
    return seconds(value) if metric in LATENCIES else number(value)


def change(ratio: float | None) -> str:
    """A ratio as a change: 0.877 -> "-12.3%"."""
    if ratio is None:
        return "-"
    return f"{100 * (ratio - 1):+.1f}%" if ratio < 10 else f"x{ratio:.3g}"


def change_of(judgement: Judgement) -> str:
    """The change of a judgement; "-" if newly shared lines do not show in the sum of all lines."""
    if judgement.verdict == "newly shared" and judgement.bound is not None:
        base, new = judgement.base.values.values(), judgement.new.values.values()
        if min(new) - max(base) <= judgement.bound:
            return change(None)
    return change(judgement.ratio)


def interval(judgement: Judgement) -> str:
    """The interval of the change: "[-14.1%, -10.2%]"."""
    if judgement.low is None or judgement.high is None:
        return ""
    return f"[{change(judgement.low)}, {change(judgement.high)}]"


def estimate(ratio: float | None, low: float | None, high: float | None) -> str:
    """A change and its interval: "-12.3% [-14.1%, -10.2%]"; empty if it is not known."""
    if ratio is None or low is None or high is None:
        return ""
    return f"{change(ratio)} [{change(low)}, {change(high)}]"


def method(judgement: Judgement) -> str:
    """How it was measured: "in slices", "counted", or "whole repetitions"."""
    if judgement.metric.startswith(COUNT):
        return "counted"
    return "in slices" if judgement.pairs else "whole repetitions"


def margins(comparison: Comparison) -> str:
    """The margins that were used, with how each was measured: "margin 2% in slices, 1% counted"."""
    used = sorted({(j.margin, _judged_as(j, comparison.policy)) for j in comparison.judgements})
    if not used:
        return f"margin {100 * comparison.settings.margin:.3g}%"
    text = "margin " + ", ".join(f"{100 * margin:.3g}% {how}" for margin, how in used)
    beyond = (
        "a change needs all boots of a side beyond all of the other's by the margin and twice the "
        "spread of a side's boots"
    )
    return f"{text}; {beyond}" if comparison.policy == "counted" else text


def rule(comparison: Comparison) -> str:
    """The rule of the verdicts: number of tests, margins, and error rate of the family."""
    if comparison.policy == "counted":
        return f"{comparison.tests} counts, {margins(comparison)}"
    rate = f"false discovery rate {100 * comparison.settings.fdr:.3g}%"
    return f"{comparison.tests} tests, {margins(comparison)}, {rate}"


def _judged_as(judgement: Judgement, policy: Policy) -> str:
    if policy == "noisy":
        return f"{'latency ' if judgement.metric in LATENCIES else ''}{method(judgement)}"
    return f"of {judgement.metric.removeprefix(COUNT).replace('-', ' ')}"


def measured(judgement: Judgement) -> str:
    """How many times each side was measured, and how: "6 pairs in slices"."""
    counts = (len(judgement.base.values), len(judgement.new.values))
    each = " and ".join(map(str, dict.fromkeys(counts)))
    if judgement.pairs:
        return f"{judgement.pairs} pairs {method(judgement)}"
    if judgement.bound is not None:
        return f"{each} boots, simulated"
    return f"{each}, {method(judgement)}"


def spread(side: Sample) -> str:
    """The robust deviation as the kernel test robot writes it: "± 3%"; empty when unknown."""
    return "" if side.cv is None else f"± {100 * side.cv:.0f}%"


def subject_text(judgement: Judgement) -> str:
    """The subject of a judgement in words."""
    return where(judgement.subject)


def judgement_line(judgement: Judgement) -> str:
    """A judgement in a line: subject, metric, both medians, change with its interval."""
    metric = judgement.metric
    base, new = (figure(metric, side.median) for side in (judgement.base, judgement.new))
    units = "" if metric in NAMED else f" {unit(judgement)}"
    return (
        f"{subject_text(judgement)}: {metric} {base} -> {new}{units}, "
        f"{change_of(judgement)} {interval(judgement)}"
    )


def short_filesystem(subject: Subject) -> str:
    """The file system without paths of programs and modules, which are shown with the sides.

    Runs of earlier versions have `bench=`.
    """
    return re.split(":(?:binary|bench|module)=", subject.filesystem)[0]


def where(subject: Subject, *, common: Sequence[str] = ()) -> str:
    """A subject in words: "MWCM, ext4 on ram, buffered, 2 cores".

    Medium and mode are left out where `common` has them.
    """
    cores = "/".join(map(str, subject.cores))
    noun = "core" if subject.cores == (1,) else "cores"
    options = "".join(f", {k}={v}" for k, v in subject.options)
    place = short_filesystem(subject)
    if subject.medium not in ("none", *common):
        place += f" on {subject.medium}"
    mode = "" if subject.mode in common else f", {subject.mode}"
    return f"{subject.workload}, {place}{mode}, {cores} {noun}{options}"


def place(common: Sequence[str]) -> str:
    """What all subjects have in common, as in their names."""
    return ", ".join(c if c in get_args(Mode) else f"on {c}" for c in common)


def in_common(subjects: Iterable[Subject]) -> list[str]:
    """Medium and mode, as far as all subjects have the same."""
    listed = list(subjects)
    kinds = ({s.medium for s in listed}, {s.mode for s in listed})
    return [kind.pop() for kind in kinds if len(kind) == 1 and kind != {"none"}]


def _in_slices(judgement: Judgement) -> str:
    if not judgement.blocks:  # counted, or of boots without a valid block
        return f"{judgement.pairs} pairs, deviation {judgement.between_pairs or 0:.1%} between them"
    return (
        f"{judgement.pairs} pairs of {judgement.blocks} blocks of "
        f"{1000 * (judgement.slice_seconds or 0):.0f} ms, "
        f"deviation {judgement.between_pairs or 0:.1%} between and "
        f"{judgement.within_pairs or 0:.1%} within pairs"
    )


def lock(found: LockFinding) -> str:
    """A lock that changed: "more contention: rename_lock, 34% -> 60% of the cores' time"."""
    return f"{found.kind}: {found.lock}, {lock_change(found)}"


def lock_change(found: LockFinding) -> str:
    """Its shares: "34% -> 60% of the cores' time"."""
    return f"{found.base_share:.0%} -> {found.share:.0%} of the cores' time"


def remark(judgement: Judgement, locks: Sequence[LockFinding] = ()) -> str:
    """Locks that changed, reason, repetitions still needed, method, outliers; may be empty."""
    parts = [lock(found) for found in locks]
    parts += [judgement.reason] if judgement.reason else []
    if judgement.verdict == "undecided" and judgement.more_repetitions:
        unit = "pair" if judgement.pairs else "repetition"
        parts.append(f"about {plural(judgement.more_repetitions, f'more {unit}')} would decide it")
    if judgement.pairs:
        parts.append(_in_slices(judgement))
    for name, side in (("BASE", judgement.base), ("NEW", judgement.new)):
        if side.outliers:
            shown = ", ".join(figure(judgement.metric, side.values[r]) for r in side.outliers)
            parts.append(f"outliers in {name}: {shown}")
        if side.unusable and judgement.verdict != "same":
            parts.append(f"{side.unusable} unusable repetitions in {name}")
    return "; ".join(parts)
