# SPDX-License-Identifier: GPL-2.0-only
"""The answer of a comparison in a sentence, for people who read nothing else."""

from collections import Counter
from collections.abc import Sequence
from math import log

from fscale.analysis.compare import wording
from fscale.analysis.compare.model import WORSE, Comparison, Judgement, Subject
from fscale.analysis.metrics import COUNT, THROUGHPUT
from fscale.model.words import plural


def sentence(comparison: Comparison) -> str:
    """What changed, most important first, then what is undecided, why, and what would decide it."""
    parts = [
        *_unhealthy(comparison),
        *_changed(comparison, [j for j in comparison.judgements if j.worse]),
        *_changed(
            comparison, [j for j in comparison.judgements if j.verdict in ("faster", "less")]
        ),
    ]
    broken = {one.subject for kind in ("broken", "lost") for one in comparison.of_kind(kind)}
    measured = [j for j in comparison.judgements if j.subject not in broken]
    undecided = [j for j in measured if j.verdict == "undecided"]
    open_points = _undecided(undecided, len(measured)) if undecided else ""
    if 2 * len(undecided) > len(measured) and not comparison.regressed:
        return "; ".join([f"could not judge: {open_points}", *parts])
    if not comparison.regressed and len(undecided) < len(measured):
        same = comparison.count("same")
        parts.insert(0, "no regression" + (f": {_tests(same)} the same" if same else ""))
    return "; ".join([*parts, *([open_points] if open_points else [])]) or "nothing to judge"


def _unhealthy(comparison: Comparison) -> list[str]:
    """The points that one side cannot measure, by kind, with the first of each."""
    words = {"broken": "fails in NEW", "lost": "has no result in NEW", "mended": "fails no longer"}
    parts = []
    for kind in wording.HEALTH:
        if points := comparison.of_kind(kind):
            parts.append(f"{_name(points[0].subject)} {words[kind]}{_more(len(points) - 1)}")
    return parts


def _changed(comparison: Comparison, judgements: Sequence[Judgement]) -> list[str]:
    """The largest change, the lock that changed most there, how many points changed likewise."""
    if not judgements:
        return []
    newly = [j for j in judgements if j.verdict == "newly shared"]
    # One point may have several metrics, of which the throughput says most to most people.
    first = max(newly or judgements, key=lambda j: (j.metric == THROUGHPUT, _size(j)))
    others = len({j.subject for j in judgements} - {first.subject})
    also = "also worse" if first.worse else f"also {first.verdict}"
    locks = "".join(f", {wording.lock(lock)}" for lock in comparison.explaining(first)[:1])
    return [f"{_describe(first)}{locks}{_more(others, also)}"]


def _more(others: int, what: str = "too") -> str:
    return f" ({plural(others, 'more point')} {what})" if others else ""


def _size(judgement: Judgement) -> float:
    return abs(log(judgement.ratio)) if judgement.ratio else 0.0


def _describe(judgement: Judgement) -> str:
    subject, verdict = judgement.subject, judgement.verdict
    percent = wording.change(judgement.ratio)
    if verdict == "newly shared":
        line = judgement.reason.partition("; ")[0]
        if not line or line.startswith(judgement.sharing or ";"):  # no line is described
            line = "cache lines"
        layout = " (only this layout)" if judgement.sharing == "only this layout" else ""
        return f"{_name(subject)} newly shares {line}{layout}"
    if judgement.metric.startswith(COUNT):
        what = wording.unit(judgement).removesuffix("/op")
        more = "more" if verdict in WORSE else "fewer"
        return f"{_name(subject)} takes {more} {what} per operation ({percent})"
    if judgement.metric == THROUGHPUT and judgement.ratio is not None:
        size = 100 * abs(judgement.ratio - 1)
        place, cores = _place(subject), _cores(subject)
        return f"{place} is {size:.{0 if size >= 1 else 1}f}% {verdict} {cores}"
    return f"{_name(subject)} is {verdict} by {judgement.metric} ({percent})"


def _undecided(judgements: Sequence[Judgement], of: int) -> str:
    """How many tests are undecided, the commonest reason, and the repetitions that would help."""
    reasons = Counter(_reason(j) for j in judgements)
    reason, count = reasons.most_common(1)[0]
    text = f"{len(judgements)} of {plural(of, 'test')} undecided"
    if reason:
        text += f", {reason}" if count == len(judgements) else f", most {reason}"
    needed = [(j.more_repetitions, bool(j.pairs)) for j in judgements if j.more_repetitions]
    if not needed:
        return text
    most, in_pairs = max(needed)
    unit = "pair" if in_pairs else "repetition"
    few = "them" if len(needed) > 1 else "it"
    few = f"{len(needed)} of them" if len(needed) < len(judgements) else few
    return f"{text}; about {plural(most, f'more {unit}')} would decide {few}"


def _reason(judgement: Judgement) -> str:
    """The reason without the figures of its point, so that points can be counted by it."""
    if judgement.rare_operations:
        return "because rare pauses are not excluded"
    kind = judgement.reason.partition(":")[0]
    return kind if kind in ("too noisy", "too few repetitions", "too few pairs") else ""


def _tests(count: int) -> str:
    return f"{plural(count, 'test')} {'is' if count == 1 else 'are'}"


def _name(subject: Subject) -> str:
    return f"{_place(subject)} {_cores(subject)}"


def _place(subject: Subject) -> str:
    return f"{subject.load} on {wording.short_filesystem(subject)}"


def _cores(subject: Subject) -> str:
    first, last = subject.cores[0], subject.cores[-1]
    return f"with {plural(first, 'core')}" if first == last else f"from {first} to {last} cores"
