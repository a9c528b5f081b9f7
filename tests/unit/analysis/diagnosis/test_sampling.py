# SPDX-License-Identifier: GPL-2.0-only
"""A sampled lock profile gives what the full one gives: the same names, the sums within the error.

The full profiles are recorded ones whose waits are drawn anew, more of them, with a long tail.
"""

import json
import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from fscale.analysis.diagnosis import lockprofile
from fscale.analysis.diagnosis.lockprofile import SPIN, LockProfile
from fscale.analysis.diagnosis.profile import load_profile
from fscale.model import paths
from fscale.model.maps import parse
from fscale.runner.profilers.locks import SLEEP_BITS, SPIN_BITS

GOLDEN = paths.ROOT / "tests" / "golden" / "profiles"
PROFILES = ["MWCM-btrfs", "MWRL-tmpfs", "MWRM-ext4", "MWCL-btrfs"]
SIGMA = 1.2  # of the logarithm: a coefficient of variation of 1.8

Wait = tuple[str, int]  # flags, address and stack as in a key of @wait; nanoseconds


def waits_like(recorded: dict[str, Any], number: int, chance: random.Random) -> list[Wait]:
    """So many waits, each stack's share in number and mean length as recorded, in any order."""
    keys = list(recorded)
    numbers = [recorded[key]["count"] for key in keys]
    mean = {key: recorded[key]["total"] / recorded[key]["count"] for key in keys}
    drawn = chance.choices(keys, numbers, k=number)
    scale = 2.718281828 ** (-SIGMA * SIGMA / 2)
    return [(key, round(mean[key] * scale * chance.lognormvariate(0, SIGMA))) for key in drawn]


def lock_of(key: str) -> str:
    """The flags and the address of a key."""
    return ",".join(key.split(",")[:2])


def tables(waits: list[Wait], prefix: Callable[[str], str | None]) -> str:
    """What the tracer prints; `prefix` begins a wait's keys, None where it is not taken."""
    sums: dict[str, dict[str, int]] = defaultdict(lambda: {"count": 0, "total": 0})
    buckets: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for key, nanoseconds in waits:
        begin = prefix(lock_of(key))
        if begin is None:
            continue
        sums[begin + key]["count"] += 1
        sums[begin + key]["total"] += nanoseconds
        buckets[begin + lock_of(key)][1 << max(0, nanoseconds.bit_length() - 1)] += 1
    histogram = {
        key: [{"min": least, "max": 2 * least - 1, "count": n} for least, n in found.items()]
        for key, found in buckets.items()
    }
    data = [{"@wait": sums}, {"@histogram": histogram}]
    return "\n".join(json.dumps({"type": "stats", "data": one}) for one in data)


def sampled_by(spin: int, sleep: int, chance: random.Random) -> Callable[[str], str | None]:
    """What the BPF program does at contention_begin."""
    taken: dict[str, int] = defaultdict(int)

    def prefix(lock: str) -> str | None:
        exponent = taken[lock] >> (spin if lock.startswith(f"{SPIN},") else sleep)
        if chance.getrandbits(32) & ((1 << exponent) - 1):
            return None
        taken[lock] += 1
        return f"{exponent},"

    return prefix


def both(
    name: str, number: int, seed: int, spin: int = SPIN_BITS, sleep: int = SLEEP_BITS
) -> tuple[LockProfile, LockProfile]:
    """The full profile and the sampled one of the same waits."""
    content = load_profile(GOLDEN / f"{name}-locks.json.gz")
    maps = str(content["output"])
    chance = random.Random(seed)
    waits = waits_like(parse(maps)["@wait"], number, chance)
    full, sampled = tables(waits, lambda lock: ""), tables(waits, sampled_by(spin, sleep, chance))
    rest = "\n".join(line for line in maps.splitlines() if '"@wait"' not in line)
    rest = "\n".join(line for line in rest.splitlines() if '"@histogram"' not in line)
    return (
        lockprofile.read({**content, "output": f"{rest}\n{full}"}),
        lockprofile.read({**content, "output": f"{rest}\n{sampled}", "samples": {}}),
    )


@pytest.mark.broad
@pytest.mark.parametrize("name", PROFILES)
def test_the_same_name_is_first_and_its_sum_is_within_the_error(name: str) -> None:
    full, sampled = both(name, 60_000, seed=1)
    first, same = full.locks[0], sampled.locks[0]
    assert same.name == first.name
    assert same.one_in > 1
    assert 0 < same.error < 0.1
    assert same.wait_ns == pytest.approx(first.wait_ns, rel=4 * same.error)
    assert same.count == pytest.approx(first.count, rel=0.1)
    assert same.callers.most_common(1)[0][0] == first.callers.most_common(1)[0][0]
    assert sum(same.histogram.values()) == same.count


@pytest.mark.broad
def test_the_error_that_is_stated_is_the_one_that_is_made() -> None:
    off, stated = [], []
    for seed in range(40):
        full, sampled = both("MWRL-tmpfs", 4000, seed, 5, 5)
        first = full.locks[0]
        same = next(lock for lock in sampled.locks if lock.name == first.name)
        off.append(same.wait_ns / first.wait_ns - 1)
        stated.append(same.error)
    made = (sum(x * x for x in off) / len(off)) ** 0.5
    assert sum(stated) / len(stated) == pytest.approx(made, rel=0.35)
    assert abs(sum(off) / len(off)) < 3 * made / len(off) ** 0.5  # no bias


def profile_of(**maps: Any) -> dict[str, Any]:
    lines = [{"type": "stats", "data": {f"@{name}": value}} for name, value in maps.items()]
    return {"output": "\n".join(map(json.dumps, lines))}


def test_waits_of_a_lock_by_several_keys_add_up() -> None:
    """Addresses and flags in hexadecimal too; what is damaged is passed over, the rest is read."""
    stack = "_raw_spin_lock\nsomebody\n"
    content = profile_of(
        wait={
            f"0,1,0x10,{stack}": {"count": 1, "total": 100},
            "0,1,0x10": "damaged",
            f"1,0x1,16,{stack}": {"count": 1, "total": 70},
            f"2,0x1,0x10,{stack}": {"count": 1, "total": 45},
        },
        histogram={
            "1,0x1,0x10": [{"min": 64, "max": 127, "count": 1}, {"min": 32, "max": 63, "count": 1}]
        },
        max={"0x1,0x10": 140},
        active=1000,
        looked=300,
    )
    (lock,) = lockprofile.read({**content, "samples": {}}).locks
    whole = 100 + 2 * 70 + 4 * 45
    assert (lock.wait_ns, lock.count, lock.max_ns) == (whole * 1000 // 300, 7 * 1000 // 300, 140)
    assert sum(lock.callers.values()) == pytest.approx(lock.wait_ns, abs=3)
    # 6.67 and 6.67: the second has what was rounded off the first, as their sum is 13.
    assert lock.histogram == {32: 6, 64: 7}
    assert sum(lock.histogram.values()) == 4 * 1000 // 300
    assert all(isinstance(n, int) for n in (lock.wait_ns, lock.count, lock.variance))
    assert lock.variance == (2 * 64**2 * 7 // 3 + 2 * 32**2 * 7 // 3) * 1000**2 // 300**2
    assert isinstance(next(iter(lock.histogram.values())), int)
    assert isinstance(next(iter(lock.callers.values())), int)
