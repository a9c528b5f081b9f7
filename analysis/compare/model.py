# SPDX-License-Identifier: GPL-2.0-only
"""The result of a comparison; docs/reference/comparison-outputs.md shows it."""

from typing import Literal

from pydantic import Field

from fscale.analysis.compare.settings import Settings
from fscale.analysis.diagnosis.verdict import MENTIONED_FROM
from fscale.analysis.metrics import THROUGHPUT
from fscale.model.bench import Mode, Strict

Verdict = Literal["slower", "faster", "same", "undecided", "more", "newly shared", "less"]
"""rates, latencies and fairness have the first four, where slower is worse; simulated counts per
operation have the last three, or same"""
WORSE: tuple[Verdict, ...] = ("slower", "more", "newly shared")
Sharing = Literal["same word", "only this layout"]
Policy = Literal["noisy", "counted"]
HealthKind = Literal["broken", "lost", "mended"]


class Subject(Strict, frozen=True):
    """The subject of a test: a cell without its repetition, or a curve (with all its `cores`)."""

    workload: str
    filesystem: str
    medium: str
    mode: Mode
    cores: tuple[int, ...]
    duration: float
    options: tuple[tuple[str, int | str], ...] = Field(
        default=(), description="workload options, and workers_per_cpu if it is not 1"
    )

    @property
    def load(self) -> str:
        """The workload with its options."""
        return f"{self.workload}{self._options}"

    @property
    def name(self) -> str:
        """Readable and unique within a comparison."""
        cores = ",".join(map(str, self.cores))
        return (
            f"{self.workload} {self.filesystem} {self.medium} {self.mode} "
            f"{cores}c {self.duration:g}s{self._options}"
        )

    @property
    def circumstances(self) -> str:
        """The name without workload, file system and cores."""
        return f"{self.medium} {self.mode} {self.duration:g}s{self._options}"

    @property
    def _options(self) -> str:
        return "".join(f" {k}={v}" for k, v in self.options)


class Sample(Strict):
    """One side of a test. `values` holds all repetitions, including outliers."""

    filesystem: str
    values: dict[int, float] = Field(description="repetition -> value, in the metric's unit")
    median: float | None
    cv: float | None = Field(description="robust: 1.4826 x MAD of the logarithms")
    outliers: list[int] = Field(description="repetitions beyond 3.5 robust deviations; kept")
    unusable: int = Field(default=0, description="repetitions without a usable value")
    disturbed: int = Field(default=0, description="repetitions that other processes disturbed")
    lost: float | None = Field(
        default=None,
        description="share of CPU time that other processes took, median of the disturbed "
        "repetitions; null if it was not recorded",
    )


class Judgement(Strict):
    """The verdict on one metric of one subject."""

    subject: Subject
    metric: str
    base: Sample
    new: Sample
    interleaved: bool
    margin: float
    verdict: Verdict
    reason: str = Field(default="", description="why it is undecided, or another remark")
    ratio: float | None = Field(default=None, description="NEW's median over BASE's")
    low: float | None = Field(default=None, description="lower end of the ratio's interval")
    high: float | None = None
    level: float | None = Field(default=None, description="the interval's confidence")
    p: float | None = Field(default=None, description="p-value, adjusted for interim looks")
    q: float | None = Field(default=None, description="p adjusted by Benjamini and Hochberg")
    pairs: int | None = Field(
        default=None,
        description="pairs of fresh file systems, one per side, that were mounted at once and "
        "took turns; null if whole repetitions were measured",
    )
    blocks: int | None = Field(default=None, description="valid blocks of four turns, median pair")
    slice_seconds: float | None = Field(default=None, description="length of a turn, median")
    between_pairs: float | None = Field(
        default=None, description="standard deviation of the pairs' log ratios; in sliced runs"
    )
    within_pairs: float | None = Field(
        default=None,
        description="error of one pair's log ratio, from its blocks (root mean square)",
    )
    mean_ratio: float | None = Field(
        default=None,
        description="NEW over BASE by the mean rate over all turns, rare operations included; in "
        "sliced runs, for rates",
    )
    mean_low: float | None = Field(default=None, description="lower end of its interval")
    mean_high: float | None = None
    work_seconds: float | None = Field(
        default=None, description="turns of each side in sliced runs, of the side that has fewer"
    )
    rare_operations: bool = Field(
        default=False,
        description="undecided because of rare operations alone: typical turns are decided",
    )
    lacks_only_work: bool = Field(
        default=False, description="more work without a rare operation would make it the same"
    )
    bound: float | None = Field(
        default=None,
        description="for counts: how far all boots of one side must lie beyond all of the other's",
    )
    sharing: Sharing | None = Field(
        default=None,
        description="for more shared lines. same word: CPUs share words of four bytes that they "
        "did not share before, which no layout avoids; only this layout: they do not, and the "
        "reason is which words lie in one line; null if words were not counted",
    )
    more_repetitions: int | None = Field(
        default=None,
        description="how many more per side would probably decide it; null if decided or unknown",
    )
    smallest_change: float | None = Field(
        default=None,
        description="the change that so many repetitions of this spread detect with that power",
    )

    @property
    def worse(self) -> bool:
        """Whether it is a regression."""
        return self.verdict in WORSE


class Tally(Strict):
    """How the scored repetitions of a point ended; all zero if it was not measured."""

    good: int
    broken: int = Field(description="the file system failed: an error, a hang, a failed check")
    unusable: int = Field(description="no value, and no known fault of the file system")


class Health(Strict):
    """A point that is good on one side only."""

    subject: Subject
    kind: HealthKind = Field(
        description="broken: fails in NEW and never did in BASE; lost: NEW has no value at all; "
        "mended: failed in BASE and does not in NEW"
    )
    base: Tally
    new: Tally
    reason: str = Field(description="reason of the first repetition that failed, or gave no value")


class LockFinding(Strict):
    """A lock whose contention changed."""

    subject: Subject
    lock: str
    share: float = Field(description="share of the cores' time spent waiting for it in NEW")
    base_share: float

    @property
    def kind(self) -> str:
        """A new bottleneck took less than 1% of the cores' time in BASE."""
        if self.share < self.base_share:
            return "less contention"
        return "new bottleneck" if self.base_share < MENTIONED_FROM else "more contention"


class RunRef(Strict):
    """The run from which a side comes."""

    path: str
    id: str
    started: str
    kernel: str
    build: str | None = Field(default=None, description="`uname -v`; two builds are two kernels")
    build_id: str | None = None
    machine: str
    label: str
    cpus: str = Field(default="", description="number and model of the CPUs")
    command: list[str] = Field(
        default_factory=list, description="command line, and one more for each time it was resumed"
    )


class Comparison(Strict):
    """The output of `fscale compare --json`."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    policy: Policy = Field(
        default="noisy",
        description="noisy: rates, by tests of significance (docs/design/statistics.md); counted: "
        "simulated counts per operation, by the rule of docs/design/simulator.md",
    )
    base: RunRef
    new: RunRef
    settings: Settings
    tests: int = Field(description="size of the family of tests for the false discovery rate")
    repetitions_needed: int
    judgements: list[Judgement]
    health: list[Health] = Field(description="points that broke, were lost or were mended")
    locks: list[LockFinding]
    missing_in_base: list[str]
    missing_in_new: list[str]
    between_boots: bool | None = Field(
        default=None,
        description="whether the sides come from different boots: the intervals do not include "
        "the variance between boots, and more than the set share of alarms may be false; null if "
        "a side does not record its boots",
    )
    warnings: list[str]

    def count(self, verdict: Verdict) -> int:
        """How many judgements have that verdict."""
        return sum(j.verdict == verdict for j in self.judgements)

    def of_kind(self, kind: HealthKind) -> list[Health]:
        """The points that broke, were lost, or were mended."""
        return [h for h in self.health if h.kind == kind]

    def explaining(self, judgement: Judgement) -> list[LockFinding]:
        """The locks that changed at the point whose throughput the judgement is about."""
        if judgement.metric != THROUGHPUT or judgement.verdict == "same":
            return []
        return [lock for lock in self.locks if lock.subject == judgement.subject]

    @property
    def other_locks(self) -> list[LockFinding]:
        """The locks that changed at points whose throughput did not, or was not judged."""
        explained = {j.subject for j in self.judgements if self.explaining(j)}
        return [lock for lock in self.locks if lock.subject not in explained]

    @property
    def regressed(self) -> bool:
        """Whether something is worse, broken or lost in NEW."""
        bad = self.of_kind("broken") or self.of_kind("lost")
        return bool(bad) or any(judgement.worse for judgement in self.judgements)
