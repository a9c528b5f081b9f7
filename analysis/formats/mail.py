# SPDX-License-Identifier: GPL-2.0-only
"""The comparison as plain text for a mailing list: 72 columns, as the kernel test robot writes."""

import textwrap
from itertools import groupby

from fscale.analysis.compare import wording
from fscale.analysis.compare.model import WORSE, Comparison, Judgement, RunRef

WIDTH = 72
METHODS = {
    "whole repetitions": "Whole repetitions: ratio of medians with BCa intervals, exact rank "
    "tests; the unit is a repetition on a fresh file system.",
    "in slices": "In slices, both sides took turns: mean of the pairs' log ratios, Student's t; "
    "the unit is a pair of fresh file systems.",
    "counted": "Counts per operation do not depend on time.",
}
ALARMING = (*WORSE, "faster", "less")


def render(comparison: Comparison) -> str:
    """The whole text, with a final newline; only a long word of a command exceeds the width."""
    rule = "=" * WIDTH
    lines = [*_wrap(_opening(comparison)), ""]
    for point in comparison.health:
        lines += _wrap(wording.health(point), indent="    ")
    if comparison.health:
        lines.append("")
    lines += [*_side("base", comparison.base), *_side("new", comparison.new), ""]
    lines += [*_machine(comparison), ""]
    changed = [j for j in wording.ordered(comparison) if j.verdict in ALARMING]
    if changed:
        lines += [rule, *_table(changed), rule, ""]
    for lock in comparison.locks:
        lines += _wrap(
            f"{lock.kind}: {lock.lock} in {lock.subject.name}: {wording.lock_change(lock)}"
        )
    undecided = [j for j in comparison.judgements if j.verdict == "undecided"]
    if undecided:
        lines += ["Undecided:", *(line for j in undecided for line in _undecided(j)), ""]
    for name, missing in (("base", comparison.missing_in_base), ("new", comparison.missing_in_new)):
        if missing:
            lines += [*_wrap(f"Missing in {name}: {'; '.join(missing)}"), ""]
    for warning in comparison.warnings:
        lines += _wrap(f"Note: {warning}", indent="  ")
    lines += ["", *_wrap(_method(comparison)), "", *_reproduce(comparison)]
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


def _wrap(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent)


def _opening(comparison: Comparison) -> str:
    bad = [*comparison.of_kind("broken"), *comparison.of_kind("lost")]
    if bad:
        plural = "s" if len(bad) > 1 else ""
        return (
            f"fscale found {len(bad)} point{plural} that can be measured on the base side but not "
            f"on the new side: {wording.headline(comparison)}."
        )
    worse = [j for j in comparison.judgements if j.worse and j.ratio is not None]
    if not comparison.regressed:
        return f"fscale {wording.conclusion(comparison)}: {wording.headline(comparison)}."
    if not worse:
        return f"fscale noticed a regression: {wording.headline(comparison)}."
    worst = max(worse, key=lambda j: abs(j.ratio - 1) if j.ratio is not None else 0)
    return (
        f"fscale noticed a {wording.change(worst.ratio)} regression of {worst.metric} in "
        f"{wording.subject_text(worst)} ({wording.headline(comparison)})."
    )


def _side(name: str, ref: RunRef) -> list[str]:
    kernel = f"{ref.kernel} {ref.build}" if ref.build else ref.kernel
    return _wrap(f"  {name + ':':6}{ref.label} ({kernel}, {ref.machine})", indent="        ")


def _machine(comparison: Comparison) -> list[str]:
    named = dict.fromkeys(f"{ref.machine}, {ref.cpus}" for ref in (comparison.base, comparison.new))
    workloads = dict.fromkeys(j.subject.workload for j in comparison.judgements)
    return [
        *_wrap(f"testcase: {', '.join(workloads)}", indent="          "),
        *_wrap(f"test machine: {'; '.join(named)}", indent="              "),
    ]


def _reproduce(comparison: Comparison) -> list[str]:
    """The command lines; long ones are continued with backslashes."""
    commands = dict.fromkeys([*comparison.base.command, *comparison.new.command])
    lines: list[str] = []
    for command in commands:
        first, *rest = textwrap.wrap(
            command, WIDTH - 8, break_on_hyphens=False, break_long_words=False
        ) or [""]
        parts = [f"  {first}", *(f"      {part}" for part in rest)]
        lines += [*(f"{part} \\" for part in parts[:-1]), parts[-1]]
    return ["To reproduce:", *lines] if lines else []


def _table(judgements: list[Judgement]) -> list[str]:
    lines = [
        f"{'base':>17}  {'':8} {'new':>17}",
        f"{'-' * 17}  {'-' * 26}",
        f"{'%stddev':>17}  {'%change':>8} {'%stddev':>17}",
        f"{chr(92):>17}  {'|':>8} {chr(92):>17}",
    ]
    for name, group in groupby(judgements, key=wording.subject_text):
        lines += _wrap(name, indent="  ")
        for j in group:
            lines += [
                f"{wording.figure(j.metric, j.base.median):>10} {wording.spread(j.base):>6}  "
                f"{wording.change_of(j):>8} {wording.figure(j.metric, j.new.median):>10} "
                f"{wording.spread(j.new):>6}  {wording.unit(j)}"[:WIDTH],
                f"{'':19}{wording.interval(j)}  {j.verdict}",
            ]
    return lines


def _undecided(judgement: Judgement) -> list[str]:
    subject, change = wording.subject_text(judgement), wording.change(judgement.ratio)
    text = (
        f"  {subject}, {judgement.metric}: {change} {wording.interval(judgement)}: "
        f"{wording.remark(judgement)}"
    )
    return _wrap(text, indent="    ")


def _method(comparison: Comparison) -> str:
    ways = {wording.method(j) for j in comparison.judgements}
    sentences = [words for way, words in METHODS.items() if way in ways]
    return " ".join([*sentences, f"Judged by: {wording.rule(comparison)}."])
