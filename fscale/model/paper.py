# SPDX-License-Identifier: GPL-2.0-only
"""The claims of a paper, which `fscale reproduce` asks: the model of `configs/papers/NAME.toml`."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from fscale.model import catalogue, paths, variant
from fscale.model.bench import Mode, Strict
from fscale.model.config import Options, Suite
from fscale.model.errors import FscaleError
from fscale.model.latency import PERCENTILES
from fscale.model.limits import MOST_CORES
from fscale.model.results import CellKey
from fscale.model.words import plural

Shape = Literal["scales", "does not"]
Slope = Literal["falls", "flat"]
Cores = Annotated[int, Field(ge=1, le=MOST_CORES)]
RATE = "throughput"
QUICK = {"duration": 0.5, "warmup": 0.1, "repetitions": 2, "remeasure": 0, "interval": None}
"""suite keys of a run that only looks whether a claim can hold"""


class Claim(Strict):
    """A paper says this of a curve, or of the ratio of two figures."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", description="the name that --only takes"
    )
    section: str = Field(description="section of the paper")
    place: str = Field(default="", description="figure or table")
    says: str = Field(
        default="", description="the paper's words or figures; without, the plotted curve alone"
    )
    cannot: str = Field(
        default="", description="why it can be asked on no machine; then it is never measured"
    )
    differs: str = Field(
        default="",
        description="what is asked in another way than the paper did; its answers say so",
    )
    workloads: list[str] = Field(
        default=[], description="ids as in `fscale list workloads`; each is asked"
    )
    options: Options = Field(
        default={},
        description="options of these workloads; claims with the same workload name the same ones",
    )
    mode: Mode = "buffered"
    filesystems: list[str] = Field(
        default=[], description="of a shape: names, as --fs takes them; each is asked"
    )
    shape: Shape | None = Field(
        default=None, description='of a curve up to the most cores: "does not" scale'
    )
    turns: Cores | None = Field(
        default=None, description="the core count after which a curve stops to rise, if named"
    )
    then: Slope | None = Field(
        default=None, description="what a curve does behind its peak: it collapses or saturates"
    )
    ratio: float | None = Field(
        default=None, gt=0, description="figure of `new` over the figure of `base`"
    )
    new: str = Field(default="", description="of a ratio: a file system, as --fs takes it")
    base: str = Field(default="", description="likewise; it may be the same at another core count")
    cores: Cores = Field(default=1, description="of a ratio: core count of `new` and of `base`")
    base_cores: Cores | None = Field(
        default=None, description="core count of `base`, if it is another one"
    )
    metric: str = Field(default=RATE, description=f"of a ratio: {', '.join([RATE, *PERCENTILES])}")
    tolerance: float = Field(
        default=0.25,
        gt=0,
        description="a ratio holds from ratio / (1 + tolerance) to ratio * (1 + tolerance)",
    )

    @model_validator(mode="after")
    def _one_kind(self) -> "Claim":
        if self.metric not in (RATE, *PERCENTILES):
            raise ValueError(f"{self.name}: {self.metric} is no metric of a ratio")
        if self.cannot:
            return self
        if (self.shape is None) == (self.ratio is None):
            raise ValueError(f"{self.name}: give a shape, or a ratio, or why it cannot be asked")
        if not self.workloads or not all(self.sides):
            sides = "filesystems" if self.shape else "new and base"
            raise ValueError(f"{self.name}: give workloads, and {sides}")
        return self

    @property
    def where(self) -> str:
        """The place in the paper."""
        return f"§{self.section}, {self.place}" if self.place else f"§{self.section}"

    @property
    def sides(self) -> list[str]:
        """The file systems, as --fs takes them."""
        return [self.new, self.base] if self.shape is None else self.filesystems or [""]

    @property
    def counts(self) -> tuple[int, int]:
        """The core counts of a ratio: that of `new` and that of `base`."""
        return self.cores, self.base_cores or self.cores


@dataclass(frozen=True)
class Question:
    """A claim, of one of its workloads, and if it is of a shape of one of its file systems."""

    claim: Claim
    workload: str
    filesystem: str
    """the label of the file system of a shape; of a ratio those of both sides, for people"""

    @property
    def sides(self) -> list[str]:
        """The file systems, as --fs takes them: one of a shape, both of a ratio."""
        return [self.filesystem] if self.claim.ratio is None else self.claim.sides

    @cached_property
    def labels(self) -> list[str]:
        """The file systems, by their names in results."""
        return [variant.label(side) for side in self.sides]

    def about(self, key: CellKey) -> bool:
        """Whether a cell is one of its curve, or of the curves of both sides of a ratio."""
        return (
            key.workload == self.workload
            and key.filesystem in self.labels
            and key.mode == self.claim.mode
            and key.options == self.claim.options
        )

    def needs(self, key: CellKey, most: int) -> bool:
        """Whether it needs a cell: a ratio its core counts, or the most cores that there are."""
        if not self.about(key) or self.claim.shape is not None:
            return self.about(key)
        many, base = (min(count, most) for count in self.claim.counts)
        of_new, of_base = (key.filesystem == label for label in self.labels)
        return (of_new and key.cores == many) or (of_base and key.cores == base)


class Paper(Strict):
    """`configs/papers/<name>.toml`: the claims of a paper, and how they are measured."""

    title: str = Field(description="one line that pages show")
    source: str = Field(description="authors, conference and year")
    setting: str = Field(description="what the paper measured on")
    cores: Cores = Field(description="the most cores of its curves")
    suite: dict[str, Any] = Field(
        default={"duration": 5, "warmup": 1, "repetitions": 3},
        description="keys of a [suite](suite-keys.md) that all claims share; what is measured, the "
        "core counts and the options follow from the claims",
    )
    stand_ins: dict[str, str] = Field(
        default={},
        description="file system -> the system of the paper for which it is asked: its name, a "
        "comma, and why it is not asked itself; answers say so",
    )
    claim: list[Claim] = Field(min_length=1)

    @model_validator(mode="after")
    def _distinct(self) -> "Paper":
        curves: set[tuple[object, ...]] = set()
        named: dict[str, set[str]] = {}
        for one in self.claim:
            if [other.name for other in self.claim].count(one.name) > 1:
                raise ValueError(f"two claims have the name {one.name}; give each its own")
            for question in questions([one] if one.shape else []):
                curve = question.workload, question.filesystem, one.mode
                if (*curve, *sorted(one.options.items())) in curves:
                    raise ValueError(f"two claims are about {', '.join(curve)}; leave out one")
                curves.add((*curve, *sorted(one.options.items())))
            for workload in [] if one.cannot else one.workloads:
                if named.setdefault(workload, {*one.options}) != {*one.options}:
                    raise ValueError(f"{one.name}: claims of {workload} name different options")
        try:
            self.suite_of([one for one in self.claim if not one.cannot], quick=False)
        except ValidationError as error:
            raise ValueError(catalogue.explain(error, Suite)) from None
        return self

    def system(self, side: str) -> str:
        """The name of the system of the paper for which a file system is asked, mostly its own."""
        return self.stand_ins.get(side, side).partition(",")[0]

    def stand_ins_of(self, claims: Collection[Claim]) -> list[str]:
        """Sentences that say what stands for what in the claims that can be asked."""
        used = {side for one in claims if not one.cannot for side in one.sides}
        return [f"{s} stands for {system}." for s, system in self.stand_ins.items() if s in used]

    def theirs(self, claim: Claim) -> str:
        """What the paper found, in a few words and by the names of its systems."""
        if claim.shape is not None:
            scaling = "scales" if claim.shape == "scales" else "does not scale"
            beyond = f" beyond {plural(claim.turns, 'core')}" if claim.turns else ""
            return f"{scaling}{beyond}{f', then {claim.then}' if claim.then else ''}"
        if claim.ratio is None:
            return claim.says
        many, base = claim.counts
        new, of_base = self.system(claim.new), self.system(claim.base)
        what = "" if claim.metric == RATE else f"{claim.metric}: "
        if many == base:
            return f"{what}{new} / {of_base} = {claim.ratio:g} at {plural(many, 'core')}"
        counts = f"at {plural(many, 'core')} / {of_base} at {plural(base, 'core')}"
        return f"{what}{new} {counts} = {claim.ratio:g}"

    def chosen(self, patterns: Collection[str]) -> list[Claim]:
        """The claims whose name is one of some, such as DRBL or MW*; all without any.

        Raises:
            FscaleError: a name is that of no claim.
        """
        names = [one.name for one in self.claim]
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in names):
                known = catalogue.suggest(pattern, names)
                raise FscaleError(f"--only {pattern}: there is no such claim{known}")
        return [
            one
            for one in self.claim
            if not patterns or any(fnmatchcase(one.name, pattern) for pattern in patterns)
        ]

    def suite_of(self, claims: Collection[Claim], *, quick: bool) -> Suite | None:
        """The suite whose cells contain those that claims need; None if there is no claim."""
        if not claims:
            return None
        shapes = [one for one in claims if one.shape is not None]
        counts = {n for one in claims if one.shape is None for n in one.counts}
        if shapes:
            counts |= {1 << n for n in range(self.cores.bit_length())} | {self.cores}
            counts |= {one.turns for one in shapes if one.turns}
        options: dict[str, dict[str, list[int | str]]] = {}
        for one in claims:
            for workload in one.workloads if one.options else []:
                for name, value in one.options.items():
                    values = options.setdefault(workload, {}).setdefault(name, [])
                    values += [value] if value not in values else []
        keys = {
            "title": self.title,
            "media": ["ram"],
            "control": 0.3 if shapes else 0,  # else nothing is related to linear
            "latency": any(one.metric != RATE for one in claims),
            **self.suite,
            **(QUICK if quick else {}),
            "workloads": list(dict.fromkeys(w for one in claims for w in one.workloads)),
            "filesystems": list(dict.fromkeys(side for one in claims for side in one.sides)),
            "modes": list(dict.fromkeys(one.mode for one in claims)),
            "cores": [*sorted(counts), "100%"],
            "options": options,
        }
        return Suite.model_validate(keys)


def questions(claims: Collection[Claim]) -> Iterator[Question]:
    """The questions of claims, in their order; one of a claim that cannot be asked."""
    for one in claims:
        if one.cannot:
            yield Question(one, ", ".join(one.workloads), "")
        elif one.shape is None:
            for workload in one.workloads:
                yield Question(one, variant.label(workload), " / ".join(one.sides))
        else:
            for workload in one.workloads:
                for filesystem in one.filesystems:
                    yield Question(one, variant.label(workload), filesystem)


def choose(claims: Collection[Claim], cells: Collection[CellKey]) -> list[CellKey]:
    """The cells of a suite that claims need, and the control cells."""
    asked = [one for one in questions(claims) if not one.claim.cannot]
    most = max((key.cores for key in cells), default=1)
    return [key for key in cells if key.control or any(one.needs(key, most) for one in asked)]


def load_paper(name: Path) -> Paper:
    """Load the claims of a paper by its name in `configs/papers`, or by the path of a TOML file.

    Raises:
        FscaleError: there is no such paper (with similar names), or the file is not valid.
    """
    return catalogue.load_toml(catalogue.find(str(name), paths.PAPERS, "paper"), Paper)
