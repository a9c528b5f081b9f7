# SPDX-License-Identifier: GPL-2.0-only
"""The tables of locks.toml and table3.toml."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from fscale.model import catalogue
from fscale.model.bench import Strict

HERE = Path(__file__).parent

Owners = Mapping[str, tuple[str, ...]]  # a file system in the kernel -> how its functions begin


class Bottleneck(Strict):
    """A row of FxMark's Table 3 and what has become of it."""

    id: str
    fs: str
    bottleneck: str
    object: str
    scope: str
    operation: str
    state: Literal["there", "changed", "gone"]
    now: str
    source: str


class Rule(Strict):
    """A rule of locks.toml; that file says what the keys mean."""

    object: str
    scope: str
    kind: tuple[str, ...] = ()
    caller: tuple[str, ...] = ()
    leaf: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    member: str | None = None
    struct: str | None = None
    static: bool = False
    sure: bool = False
    table3: str | None = None
    fs: str
    kernels: str | None = None
    note: str | None = None


@dataclass(frozen=True)
class Compiled:
    """A rule with its patterns ready for use."""

    rule: Rule
    first: re.Pattern[str]
    below: tuple[re.Pattern[str], ...]
    without: re.Pattern[str] | None
    member: re.Pattern[str] | None

    def fits(self, frames: tuple[str, ...], owners: Owners) -> bool:
        """Whether the frames, from the caller on, are those of the rule."""
        if not frames or self.first.fullmatch(frames[0]) is None:
            return False
        if self.without and any(self.without.fullmatch(f) for f in frames):
            return False
        if _of_another(self.rule.fs, frames, owners):
            return False
        rest = iter(frames)
        return all(any(pattern.fullmatch(f) for f in rest) for pattern in self.below)


@cache
def _configured() -> Owners:
    found: dict[str, tuple[str, ...]] = {}
    for fs in catalogue.filesystems():
        if fs.functions:
            found[fs.kernel] = (*found.get(fs.kernel, ()), *fs.functions)
    return found


def owners(own: Mapping[str, Sequence[str]]) -> Owners:
    """How the functions of all configured file systems begin, and of the one that was measured.

    `own` is what a profile has of the latter, which may have been given by path.
    """
    return {**_configured(), **{name: tuple(starts) for name, starts in own.items()}}


def _of_another(fs: str, frames: tuple[str, ...], owners: Owners) -> bool:
    """Whether a rule of `fs` meets a stack with another file system's functions and none of its."""
    found = {name for name, starts in owners.items() if any(f.startswith(starts) for f in frames)}
    return fs in owners and bool(found) and fs not in found


@dataclass(frozen=True)
class Rules:
    """All rules, in the order in which they are tried."""

    locks: tuple[Compiled, ...]
    waits: tuple[Compiled, ...]
    counters: tuple[Compiled, ...]


def _either(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{p})" for p in patterns))


def _compile(data: dict[str, Any]) -> Compiled:
    rule = Rule.model_validate(data)
    return Compiled(
        rule,
        _either(rule.caller or rule.leaf),
        tuple(re.compile(p) for p in rule.below),
        _either(rule.without) if rule.without else None,
        re.compile(f"(?:^|.*[.])?(?:{rule.member})$") if rule.member else None,
    )


@cache
def rules() -> Rules:
    """The rules of locks.toml."""
    with (HERE / "locks.toml").open("rb") as file:
        data = tomllib.load(file)
    return Rules(*(tuple(map(_compile, data[key])) for key in ("lock", "wait", "counter")))


@cache
def table3() -> dict[str, Bottleneck]:
    """The 25 bottlenecks by id, in the order of the paper."""
    with (HERE / "table3.toml").open("rb") as file:
        rows = tomllib.load(file)["bottleneck"]
    return {row.id: row for row in map(Bottleneck.model_validate, rows)}


def match(table: tuple[Compiled, ...], frames: tuple[str, ...], owners: Owners) -> Rule | None:
    """The first rule of `table` that fits the frames."""
    return next((c.rule for c in table if c.fits(frames, owners)), None)
