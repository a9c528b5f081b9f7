# SPDX-License-Identifier: GPL-2.0-only
"""The lock profile of one repetition: contended locks by name, with wait times and callers.

If a lock is contended often, the profiler samples one wait in 2, 4, 8, ... at random, and sums by
the exponent. Each sampled wait stands for that many: sums and counts here are scaled (the unbiased
estimator of Horvitz and Thompson 1952), and `Contended.error` is the sampling error. If CPUs spin
all the time, the profiler records waits only part of the time; then sums and counts are scaled by
that share of the windows.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from math import isqrt
from typing import Any

from fscale.analysis.diagnosis import stacks
from fscale.analysis.diagnosis.naming import (
    ADDRESSED,
    AddressBook,
    By,
    LockPlace,
    Name,
    main_evidence,
    name_lock,
)
from fscale.model.maps import MAP_KEYS, entries, number, numbers, parse

MAX_EXPONENT = 62  # a larger exponent means a damaged file
# The mean square of a bucket's waits over the square of its lower bound, if they are spread evenly:
# a fraction.
BUCKET_SQUARE = (7, 3)
SPIN, READ, WRITE, RT, PERCPU, MUTEX = (1 << bit for bit in range(6))


def kind_of(flags: int) -> str:
    """The lock's kind from the flags of lock:contention_begin (include/trace/events/lock.h)."""
    side = " read" if flags & READ else " write" if flags & WRITE else ""
    if flags & PERCPU:
        return "percpu-rwsem" + side
    if flags & RT:
        return "rt-mutex" + side
    if flags & MUTEX:
        return "mutex"
    if flags & SPIN:
        return "rwlock" + side if side else "spinlock"
    return "rwsem" + side if side else "semaphore"


@dataclass
class Contended:
    """A contended lock, or several with the same name. Times are in nanoseconds.

    `max_ns` is the longest sampled wait; the other figures are scaled to all waits.
    """

    name: Name
    kinds: set[str] = field(default_factory=set)
    addresses: set[int] = field(default_factory=set)
    places: set[LockPlace] = field(default_factory=set)
    wait_ns: int = 0
    count: int = 0
    max_ns: int = 0
    histogram: Counter[int] = field(default_factory=Counter)  # lower bound of the bucket -> count
    callers: Counter[tuple[str, ...]] = field(default_factory=Counter)  # stack -> nanoseconds
    evidence: Counter[By] = field(default_factory=Counter)  # kind of evidence -> nanoseconds
    one_in: int = 1  # at the end, one wait in this many was sampled
    variance: int = 0  # of wait_ns, by sampling; nanoseconds squared

    @property
    def by_stack(self) -> float:
        """The share of `wait_ns` without an address that identifies this lock."""
        if not self.evidence.total():
            return 0.0 if self.name.by in ADDRESSED else 1.0
        return 1 - sum(self.evidence[by] for by in ADDRESSED) / self.evidence.total()

    @property
    def error(self) -> float:
        """The standard error of `wait_ns` as a share of it; 0 if all waits were recorded."""
        return isqrt(max(0, self.variance)) / self.wait_ns if self.wait_ns else 0.0

    @property
    def mean_ns(self) -> float:
        """The mean length of a wait."""
        return self.wait_ns / self.count if self.count else 0.0


@dataclass
class LockProfile:
    """All contention of one repetition. `active_ns`: sum of the windows of all workers."""

    active_ns: int
    locks: list[Contended]
    others: Counter[str]  # waits of kernel threads by thread name, nanoseconds
    full: bool  # a map of the tracer was full, so some contention is missing
    recorded_share: float = 1.0  # share of `active_ns` in which waits were recorded
    located: bool = True  # addresses could be resolved to objects


def read(profile: dict[str, Any]) -> LockProfile:
    """Summarise a lock profile (the content of locks.json.gz); damaged parts are left out.

    Profiles without `samples` have all waits, and no exponents in their keys.
    """
    maps = parse(str(profile.get("output", "")))
    sampled = "samples" in profile
    book = AddressBook(profile, maps)
    groups: dict[tuple[str, int], Contended] = {}
    names_of: dict[tuple[int, int], Counter[tuple[str, int]]] = defaultdict(Counter)
    waits = entries(maps.get("@wait"))
    known: dict[tuple[str, LockPlace, tuple[str, ...]], Name] = {}  # many locks, few stacks
    for key, value in waits.items():
        one_in, rest = _weight(key, sampled)
        entry = _entry(rest, value)
        if entry is None:
            continue
        flags, address, frames, count, total = entry
        place = book.place(address)
        kind = kind_of(flags)
        name = known.get((kind, place, frames)) or name_lock(kind, place, frames, book)
        known[kind, place, frames] = name
        # Unnamed locks are not merged: they may be different ones.
        group = (name.object, address if name.by is By.NOTHING else 0)
        lock = groups.get(group)
        if lock is None:
            lock = groups[group] = Contended(name)
        lock.kinds.add(kind)
        lock.addresses.add(address)
        lock.places.add(place)
        lock.wait_ns += one_in * total
        lock.count += one_in * count
        lock.callers[frames] += one_in * total
        lock.evidence[name.by] += one_in * total
        lock.one_in = max(lock.one_in, one_in)
        names_of[flags, address][group] += one_in * total
    for lock in groups.values():
        if lock.evidence.total():
            lock.name = replace(lock.name, by=main_evidence(lock.evidence))
    _add_extremes(maps, groups, names_of, sampled)
    others: Counter[str] = Counter()
    for key, value in entries(maps.get("@others")).items():
        one_in, rest = _weight(key, sampled)
        if isinstance(value, dict):
            others[rest.split(",")[0]] += one_in * number(value.get("total"))
    active = number(maps.get("@active"))
    recorded_ns = min(number(maps.get("@looked", active)), active)
    if 0 < recorded_ns < active:
        for lock in groups.values():
            _scale(lock, active, recorded_ns)
        others = Counter({name: ns * active // recorded_ns for name, ns in others.items()})
    return LockProfile(
        active_ns=active,
        locks=sorted(groups.values(), key=lambda lock: -lock.wait_ns),
        others=others,
        full=len(waits) >= MAP_KEYS or number(maps.get("@lost")) > 0,
        recorded_share=recorded_ns / active if active else 1.0,
        located=bool(profile.get("memory")),
    )


def _scale(lock: Contended, whole: int, part: int) -> None:
    """Scale figures that were recorded in a part of the time to the whole time."""
    lock.wait_ns = lock.wait_ns * whole // part
    lock.histogram = _scaled(lock.histogram, whole, part)
    lock.count = lock.count * whole // part
    lock.callers = Counter({stack: ns * whole // part for stack, ns in lock.callers.items()})
    lock.variance = lock.variance * whole**2 // part**2


def _scaled(histogram: Counter[int], whole: int, part: int) -> Counter[int]:
    """Scale counts so that their sum is their scaled sum: each takes what is rounded off before."""
    scaled: Counter[int] = Counter()
    before = 0
    for least, count in sorted(histogram.items()):
        scaled[least] = (before + count) * whole // part - before * whole // part
        before += count
    return scaled


def _weight(key: str, sampled: bool) -> tuple[int, str]:
    """The number of waits that each wait under `key` stands for (0 if damaged); the rest of it."""
    if not sampled:
        return 1, key
    exponent, _, rest = key.partition(",")
    valid = exponent.isdecimal() and len(exponent) <= 2 and int(exponent) <= MAX_EXPONENT
    return (1 << int(exponent) if valid else 0), rest


def _entry(key: str, value: Any) -> tuple[int, int, tuple[str, ...], int, int] | None:
    flags, _, rest = key.partition(",")
    address, _, frames = rest.partition(",")
    if not isinstance(value, dict):
        return None
    try:
        return (
            int(flags, 0),
            int(address, 0) % (1 << 64),
            stacks.parse(frames),
            number(value.get("count")),
            number(value.get("total")),
        )
    except ValueError:
        return None


def _add_extremes(
    maps: dict[str, Any],
    groups: dict[tuple[str, int], Contended],
    names_of: dict[tuple[int, int], Counter[tuple[str, int]]],
    sampled: bool,
) -> None:
    """Add longest waits and histograms, which are recorded by lock, to the lock's main name."""

    def owner(key: str) -> Contended | None:
        flags, _, address = key.partition(",")
        try:
            names = names_of.get((int(flags, 0), int(address, 0) % (1 << 64)))
        except ValueError:
            return None
        return groups[names.most_common(1)[0][0]] if names else None

    for key, value in numbers(maps.get("@max")).items():
        if lock := owner(key):
            lock.max_ns = max(lock.max_ns, value)
    for key, buckets in entries(maps.get("@histogram")).items():
        one_in, rest = _weight(key, sampled)
        lock = owner(rest)
        for bucket in buckets if lock and isinstance(buckets, list) else ():
            if lock and isinstance(bucket, dict) and (count := number(bucket.get("count"))):
                least = number(bucket.get("min"))
                lock.histogram[least] += one_in * count
                above, below = BUCKET_SQUARE
                lock.variance += one_in * (one_in - 1) * count * least**2 * above // below
