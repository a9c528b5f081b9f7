# SPDX-License-Identifier: GPL-2.0-only
"""Converts the output of fscale-locks to the maps of a lock profile.

The maps are JSON lines as bpftrace prints them, because bpftrace took the first profiles.
"""

import json
from collections import defaultdict
from typing import Any

from fscale.runner.profilers.kallsyms import Kallsyms

# The first frames of a stack are the BPF program and the function that calls it.
OWN = "bpf_trace_run"
OWN_FRAMES = 4


def addresses(seen: dict[str, Any]) -> set[int]:
    """Return the addresses of all contended locks."""
    return {row[0] % (1 << 64) for row in seen["locks"]}


def maps(seen: dict[str, Any], symbols: Kallsyms) -> str:
    """Return JSON lines of @wait, @histogram, @max and others, and of the maps that name locks."""
    stacks = {number: _stack(frames, symbols) for number, frames in seen["stacks"]}
    wait: dict[str, dict[str, int]] = defaultdict(lambda: {"count": 0, "total": 0})
    buckets: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    longest: dict[str, int] = defaultdict(int)
    for lock, flags, exponent, bucket, stack, count, total, most in seen["waits"]:
        place = f"{flags},{lock}"
        summed = wait[f"{exponent},{place},{stacks.get(stack, '')}"]
        summed["count"] += count
        summed["total"] += total
        buckets[f"{exponent},{place}"][bucket] += count
        longest[place] = max(longest[place], most)
    histogram = {
        key: [{"min": 1 << b, "max": (2 << b) - 1, "count": n} for b, n in sorted(found.items())]
        for key, found in buckets.items()
    }
    cached = [row for row in seen["locks"] if row[2]]
    found: list[tuple[str, str, Any]] = [
        ("map", "@active", seen["active"]),
        ("map", "@looked", seen["looked"]),
        ("map", "@lost", seen["lost"]),
        ("stats", "@wait", wait),
        ("hist", "@histogram", histogram),
        ("map", "@max", longest),
        ("stats", "@others", {f"0,{name}": {"total": total} for name, total in seen["others"]}),
        ("map", "@page", {str(lock): page for lock, page, *_ in seen["locks"] if page}),
        ("map", "@cache", {str(lock): cache for lock, _, cache, *_ in cached}),
        ("map", "@cache_size", {str(cache): size for _, _, cache, size, _ in cached}),
        ("map", "@cache_name", {str(cache): name for _, _, cache, _, name in cached}),
    ]
    return "".join(json.dumps({"type": kind, "data": {name: v}}) + "\n" for kind, name, v in found)


def _stack(frames: list[int], symbols: Kallsyms) -> str:
    """Format a stack, one frame per line, from the lock primitive on."""
    names = [symbols.function(frame % (1 << 64)) for frame in frames]
    own = [place for place, name in enumerate(names[:OWN_FRAMES]) if name.startswith(OWN)]
    return "\n".join(["", *names[own[-1] + 1 if own else 0 :], ""])
