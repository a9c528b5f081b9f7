# SPDX-License-Identifier: GPL-2.0-only
"""KernelCI's database format, version 5.0 (https://docs.kernelci.org/kcidb/).

A test is a repetition. A measured one is DONE and not PASS, because a figure alone does not judge
the code. The build and the checkout are described by the kernel's release, because the machine does
not know its source. `origin` is `fscale`; to submit to KernelCI, use the origin that it assigns.
"""

import hashlib
import json
import re
from typing import Any

from fscale.analysis.formats.cells import in_order, moment, one_line, simulated
from fscale.analysis.formats.outcome import Outcome, describe_cell, outcome
from fscale.analysis.reader import Results
from fscale.model.files import printable
from fscale.model.results import Cell, Run

_ORIGIN = "fscale"
_VERSION = {"major": 5, "minor": 0}
_STATUS: dict[Outcome, str] = {
    "measured": "DONE",
    "broken": "FAIL",
    "unusable": "ERROR",
    "skipped": "SKIP",
    "absent": "MISS",
}


def render(results: Results) -> str:
    """The whole run: one checkout, one build, a test for each repetition."""
    run = results.run
    kernel = _kernel(run)
    builder = _Tests(run, _id(kernel))
    absent = [builder.absent(u.file, f"unreadable: {u.reason}") for u in results.unreadable]
    if results.missing:
        absent.append(builder.absent("", f"{results.missing} planned cells left no result"))
    comment = f"Linux {kernel}, as the running kernel names itself; its source is not recorded"
    data = {
        "version": _VERSION,
        "checkouts": [{"id": _id(kernel), "origin": _ORIGIN, "comment": comment}],
        "builds": [_build(run, kernel)],
        "tests": [*map(builder.test, in_order(results.cells)), *absent],
    }
    return json.dumps(data, indent=1) + "\n"


def _id(text: str) -> str:
    return f"{_ORIGIN}:{text}"


def _kernel(run: Run) -> str:
    build = run.machine.build
    named = f"{run.machine.kernel} {build.version}" if build else run.machine.kernel
    return one_line(f"{named} {run.machine.architecture}")


def _build(run: Run, kernel: str) -> dict[str, Any]:
    build = {"id": _id(kernel), "checkout_id": _id(kernel), "origin": _ORIGIN, "comment": kernel}
    if re.fullmatch("[a-z0-9_]+", run.machine.architecture):
        build["architecture"] = run.machine.architecture
    return build


class _Tests:
    """Builds the tests of one run on one build."""

    def __init__(self, run: Run, build: str) -> None:
        self._about = run
        machine = run.machine
        identity = f"{machine.hostname} {run.id} {run.started}"
        self._run = f"{printable(run.id)}:{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
        self._common = {
            "build_id": build,
            "origin": _ORIGIN,
            "environment": {
                "comment": one_line(machine.identity),
                "misc": {
                    "cpus": len(machine.cpu_order),
                    "cpus_kept_free": len(machine.kept_free),
                    **({"memory_bytes": machine.memory_bytes} if machine.memory_bytes else {}),
                    "machine": printable(machine.kind),
                    "imported": printable(run.imported or ""),
                },
            },
        }

    def test(self, cell: Cell) -> dict[str, Any]:
        """The test of a repetition."""
        key = cell.key
        parts = ("fscale", key.workload, key.filesystem, key.medium, key.mode, f"{key.cores}c")
        test: dict[str, Any] = {
            "id": _id(f"{self._run}:{cell.id}"),
            **self._common,
            "path": ".".join(re.sub("[^a-zA-Z0-9_-]", "_", part) for part in parts),
            "status": _STATUS[outcome(cell)],
            "comment": describe_cell(cell),
            "misc": {
                **key.model_dump(),
                "simulated": simulated(self._about, cell),
                "disturbed": None if cell.disturbed is None else printable(cell.disturbed),
            },
        }
        if cell.wall_seconds is not None:
            test["duration"] = cell.wall_seconds
        if started := moment(cell.started):
            test["start_time"] = started.isoformat()
        if cell.status == "ok" and key.profile is None:
            test["number"] = {
                "value": cell.ops_per_second,
                "unit": f"{cell.unit}/s",
                "prefix": "metric",
            }
        return test

    def absent(self, file: str, reason: str) -> dict[str, Any]:
        """The test for a file or planned cells without a readable repetition."""
        return {
            "id": _id(f"{self._run}:absent:{file}"),
            **self._common,
            "path": "fscale",
            "status": _STATUS["absent"],
            "comment": one_line(reason),
        }
