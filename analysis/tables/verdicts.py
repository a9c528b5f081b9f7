# SPDX-License-Identifier: GPL-2.0-only
"""A row for each verdict of a comparison, and for each point that is good on one side only."""

from collections.abc import Callable
from dataclasses import dataclass

from fscale.analysis.compare import wording
from fscale.analysis.compare.model import Comparison, Health, Judgement, Sample, Subject
from fscale.analysis.tables.column import Column, Row, Value, make_row


@dataclass(frozen=True)
class Judged:
    """A verdict: of a test, or on whether a point works at all."""

    verdict: Judgement | Health

    @property
    def subject(self) -> Subject:
        """The point or curve that it is about."""
        return self.verdict.subject

    @property
    def test(self) -> Judgement | None:
        """The test; None if a point broke, was lost or was mended."""
        return self.verdict if isinstance(self.verdict, Judgement) else None

    @property
    def word(self) -> str:
        """The verdict in a word."""
        return self.verdict.verdict if isinstance(self.verdict, Judgement) else self.verdict.kind

    @property
    def worse(self) -> bool:
        """Whether it is a regression."""
        return self.test.worse if self.test else self.word != "mended"


def rows(comparison: Comparison) -> list[Row]:
    """The rows: broken, lost and mended points first, then the tests, the most important first."""
    verdicts: list[Judgement | Health] = [*comparison.health, *wording.ordered(comparison)]
    return [make_row(COLUMNS, Judged(verdict)) for verdict in verdicts]


def _text(name: str, meaning: str, value: Callable[[Subject], str]) -> Column[Judged]:
    return Column(name, "string", meaning, lambda j: value(j.subject))


def _figure(
    name: str, meaning: str, value: Callable[[Judgement], float | None], unit: str = ""
) -> Column[Judged]:
    return Column(name, "number", meaning, lambda j: value(j.test) if j.test else None, unit)


def _count(name: str, meaning: str, value: Callable[[Judgement], int | None]) -> Column[Judged]:
    return Column(name, "integer", meaning, lambda j: value(j.test) if j.test else None)


def _side(name: str, sample: Callable[[Judgement], Sample]) -> tuple[Column[Judged], ...]:
    side = name.upper()
    return (
        _figure(
            f"{name}_median", f"median of {side}, in the metric's unit", lambda t: sample(t).median
        ),
        _count(f"{name}_repetitions", f"repetitions of {side}", lambda t: len(sample(t).values)),
        _count(
            f"{name}_disturbed",
            f"repetitions of {side} that other processes disturbed",
            lambda t: sample(t).disturbed,
        ),
    )


def _reason(judged: Judged) -> Value:
    return judged.verdict.reason or None


def _options(subject: Subject) -> str:
    return " ".join(f"{name}={value}" for name, value in subject.options)


COLUMNS: tuple[Column[Judged], ...] = (
    _text("workload", "name as in `fscale list workloads`", lambda s: s.workload),
    _text(
        "options",
        "workload options, name=value",
        lambda s: " ".join(f"{k}={v}" for k, v in s.options),
    ),
    _text("filesystem", "file system under test, of BASE", lambda s: s.filesystem),
    _text("medium", "storage medium of BASE", lambda s: s.medium),
    _text("mode", "I/O mode: buffered, direct, dontcache", lambda s: s.mode),
    Column(
        "cores", "integer", "CPUs under test; of a curve: the most", lambda j: max(j.subject.cores)
    ),
    Column(
        "curve",
        "boolean",
        "true if it is about a whole curve and not a single point",
        lambda j: len(j.subject.cores) > 1,
    ),
    Column("duration", "number", "requested timed seconds", lambda j: j.subject.duration, "s"),
    Column(
        "metric",
        "string",
        "what is judged; empty if the point broke, was lost or was mended",
        lambda j: j.test.metric if j.test else None,
    ),
    Column(
        "verdict",
        "string",
        "slower, faster, same, undecided; of counts: more, newly shared, less, same; of points "
        "that are good on one side only: broken, lost, mended",
        lambda j: j.word,
    ),
    Column("worse", "boolean", "true if it is a regression", lambda j: j.worse),
    Column(
        "sharing",
        "string",
        "of more shared lines: same word, in any layout; or only this layout",
        lambda j: j.test.sharing if j.test else None,
    ),
    Column("reason", "string", "why it is undecided or broken, or another remark", _reason),
    _figure("ratio", "median of NEW over the median of BASE", lambda t: t.ratio),
    _figure("low", "lower end of the ratio's interval", lambda t: t.low),
    _figure("high", "upper end of the ratio's interval", lambda t: t.high),
    _figure("level", "confidence of the interval", lambda t: t.level),
    _figure("margin", "relative changes smaller than this are ignored", lambda t: t.margin),
    _figure("p", "p-value, adjusted for interim looks", lambda t: t.p),
    _figure("q", "p adjusted by Benjamini and Hochberg", lambda t: t.q),
    *_side("base", lambda t: t.base),
    *_side("new", lambda t: t.new),
    _count(
        "more_repetitions",
        "how many more per side would probably decide it; empty: decided, or not known",
        lambda t: t.more_repetitions,
    ),
    _figure(
        "smallest_change",
        "the relative change that so many repetitions of this spread would detect",
        lambda t: t.smallest_change,
    ),
)
