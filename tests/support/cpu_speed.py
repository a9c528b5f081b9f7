# SPDX-License-Identifier: GPL-2.0-only
"""How fast this machine is at the moment, so that a bound on CPU time means the same everywhere.

Hosts differ, and a virtual CPU beside a busy one is half as fast as alone. A bound in seconds finds
a slow machine; one in multiples of `reference_seconds` finds slow code.
"""

import json
import statistics
import time
from typing import Any

_WORK = [{"name": f"file{n}", "sizes": list(range(n % 20)), "ratio": n / 7} for n in range(2000)]
_SCRIPT = """let total = 0;
for (let n = 0; n < 100000; n++) {
	const made = JSON.parse(JSON.stringify({ numbers: [n, n + 1], inside: { name: String(n) } }));
	total += made.numbers[1] + made.inside.name.length;
}
return total"""


def reference_seconds() -> float:
    """CPU seconds that a fixed piece of Python takes here and now, the median of 9: 0.1, about."""

    def measure() -> float:
        began = time.process_time()
        for _ in range(5):
            read = json.loads(json.dumps(_WORK))
            sorted(read, key=lambda item: (len(item["sizes"]), item["name"]))
        return time.process_time() - began

    return statistics.median(measure() for _ in range(9))


def reference_seconds_in(browser: Any) -> float:
    """CPU seconds that a fixed piece of JavaScript takes in a page's thread, the median of 5.

    The browser must count time (`count_time`).
    """

    def measure() -> float:
        before = browser.busy()
        browser.execute_script(_SCRIPT)
        return float(browser.busy() - before)

    return statistics.median(measure() for _ in range(5))
