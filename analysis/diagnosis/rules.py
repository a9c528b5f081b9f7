# SPDX-License-Identifier: GPL-2.0-only
"""Reads the tables of locks.toml and table3.toml."""

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
    """A row of FxMark's Table 3 and its current state in the kernel."""

    id: str
    fs: str
    bottleneck: str
    object: str
    scope: str
    operation: str
    state: Literal["there", "changed", "gone"]
    now: str
    source: str


class LockRule(Strict):
    """A rule of locks.toml, which describes the keys."""

    object: str
    scope: str
    kind: tuple[str, ...] = ()
    caller: tuple[str, ...] = ()
    leaf: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()
    member: str | None = None
    struct: str | tuple[str, ...] | None = None
    part: bool = False
    cache: str | None = None
    symbol: str | None = None
    static: bool = False
    sure: bool = False
    table3: str | None = None
    fs: str
    kernels: str | None = None
    note: str | None = None

    @property
    def structs(self) -> tuple[str, ...]:
        """The structs that contain the member."""
        return (self.struct,) if isinstance(self.struct, str) else self.struct or ()


Version = tuple[int, int]


def version(release: str) -> Version | None:
    """The version in a kernel's release (`uname -r`): 6.19.0-rc3+ -> 6, 19; None if it has none."""
    match = re.match(r"(\d{1,4})\.(\d{1,4})(?!\d)", release)
    return (int(match[1]), int(match[2])) if match else None


def kernels(text: str) -> tuple[tuple[Version, Version], ...]:
    """Ranges of kernels such as "6.1-6.18", "6.12-", "-6.5" or "6.1, 6.12"; both ends are in them.

    ValueError on anything else.
    """
    versions = []
    for part in text.split(","):
        low, dash, high = (piece.strip() for piece in part.partition("-"))
        ends = re.fullmatch(r"\d+\.\d+", low or high) and re.fullmatch(r"\d+\.\d+", high or low)
        first = version(low) if low else (0, 0)
        last = version(high) if high else _NEVER if dash else first
        if not ends or first is None or last is None or last < first:
            raise ValueError(
                f"{text!r} is not a range of kernels; write 6.1-6.18, 6.12-, -6.5 or 6.1"
            )
        versions.append((first, last))
    return tuple(versions)


_NEVER = (9999, 9999)


@dataclass(frozen=True)
class Compiled:
    """A rule with its patterns ready for use."""

    rule: LockRule
    first: re.Pattern[str]
    below: tuple[re.Pattern[str], ...]
    next: re.Pattern[str] | None
    without: re.Pattern[str] | None
    ambiguous: re.Pattern[str] | None
    member: re.Pattern[str] | None
    cache: re.Pattern[str] | None
    symbol: re.Pattern[str] | None
    kernels: tuple[tuple[Version, Version], ...] | None

    def holds_on(self, release: str | None) -> bool:
        """Whether the rule's callers hold for that kernel; True if the kernel is not recorded."""
        running = version(release) if release else None
        if self.kernels is None or running is None:
            return True
        return any(first <= running <= last for first, last in self.kernels)

    def fits(self, frames: tuple[str, ...], owners: Owners) -> bool:
        """Whether the frames, from the caller on, are those of the rule."""
        if not frames or self.first.fullmatch(frames[0]) is None:
            return False
        if self.next:
            above = next((f for f in frames if self.first.fullmatch(f) is None), "")
            if self.next.fullmatch(above) is None:
                return False
        if self.without and any(self.without.fullmatch(f) for f in frames):
            return False
        if _of_another(self.rule.fs, frames, owners):
            return False
        rest = iter(frames)
        return all(any(pattern.fullmatch(f) for f in rest) for pattern in self.below)


@cache
def _configured() -> Owners:
    prefixes: dict[str, tuple[str, ...]] = {}
    for fs in catalogue.filesystems():
        if fs.functions:
            prefixes[fs.kernel] = (*prefixes.get(fs.kernel, ()), *fs.functions)
    return prefixes


def owners(configured: Mapping[str, Sequence[str]]) -> Owners:
    """The function prefixes of all configured file systems and of the measured one.

    `own` has those of the latter from the profile, because it may have been given by path.
    """
    return {**_configured(), **{name: tuple(starts) for name, starts in configured.items()}}


def _of_another(fs: str, frames: tuple[str, ...], owners: Owners) -> bool:
    """Whether the stack has functions of other file systems, but none of the rule's `fs`."""
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
    rule = LockRule.model_validate(data)
    return Compiled(
        rule,
        _either(rule.caller or rule.leaf),
        tuple(re.compile(p) for p in rule.below),
        _either(rule.next) if rule.next else None,
        _either(rule.without) if rule.without else None,
        _either(rule.ambiguous) if rule.ambiguous else None,
        re.compile(f"(?:^|.*[.])?(?:{rule.member})$") if rule.member else None,
        re.compile(rule.cache) if rule.cache else None,
        re.compile(rule.symbol) if rule.symbol else None,
        kernels(rule.kernels) if rule.kernels else None,
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


def match(
    table: tuple[Compiled, ...], frames: tuple[str, ...], owners: Owners, kernel: str | None = None
) -> LockRule | None:
    """The first rule of `table` that fits the frames and holds for that kernel."""
    return next((c.rule for c in table if c.holds_on(kernel) and c.fits(frames, owners)), None)
