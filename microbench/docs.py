# SPDX-License-Identifier: GPL-2.0-only
"""Print docs/reference/workloads.md: workloads.md.in with the tables of the descriptors."""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# The options that each workload has, with sections of their own.
OF_ALL = ("workers", "rate", "arrival")
PROPERTIES = {
    "consumes": "use up a stock",
    "background": "the last CPU is the writer's; only the readers' operations count",
    "puts_off": "defer work: `fscale ab` settles after each of their turns",
    "defers_frees": "free after an RCU grace period: `fscale ab` pauses after each of their turns",
    "control": "controls: measured at each core count of a run",
}


def row(*cells: str) -> str:
    """A line of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def overview(workloads: Iterable[dict[str, Any]]) -> str:
    """What each of some workloads does, in one line each."""
    lines = [row("Id", "One operation", "Sharing", "Expected contention"), row(*["---"] * 4)]
    lines += [row(w["id"], f"`{w['operation']}`", w["sharing"], w["contention"]) for w in workloads]
    return "\n".join(lines)


def setups(workloads: Iterable[dict[str, Any]]) -> str:
    """What each workload does, and on what, in one line each."""
    lines = [row("Id", "What it does", "Exists before"), row(*["---"] * 3)]
    lines += [row(w["id"], w["title"], w["setup"].replace("$", "\\$")) for w in workloads]
    return "\n".join(lines)


def takes(option: dict[str, Any]) -> str:
    """The choices of an option, or the numbers that it takes."""
    if option["choices"]:
        return " or ".join(option["choices"])
    multiples = f", multiples of {option['multiple_of']}" if option["multiple_of"] else ""
    return f"{option['least']} to {option['most']}{multiples}"


def options(workloads: Iterable[dict[str, Any]]) -> str:
    """Each option once, with the workloads that have it."""
    found: dict[tuple[str, ...], list[str]] = {}
    for workload in workloads:
        for option in workload["options"]:
            if option["name"] not in OF_ALL:
                cells = (f"`{option['name']}={option['default']}`", option["help"], takes(option))
                found.setdefault(cells, []).append(workload["id"])
    lines = [row("Option", "Meaning", "Values", "Workloads"), row(*["---"] * 4)]
    return "\n".join([*lines, *(row(*cells, ", ".join(ids)) for cells, ids in found.items())])


def properties(workloads: Iterable[dict[str, Any]]) -> str:
    """Which workloads have each property of PROPERTIES."""
    workloads = list(workloads)
    lines = [row("Workloads", "Property"), row("---", "---")]
    for key, says in PROPERTIES.items():
        lines += [row(", ".join(w["id"] for w in workloads if w[key]), says)]
    return "\n".join(lines)


def main() -> int:
    """Fill the template's places."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", type=Path, default=HERE / "../build/microbench/fscale-bench")
    args = parser.parse_args()
    listed = subprocess.run([args.bench, "--list"], check=True, capture_output=True, text=True)
    workloads = json.loads(listed.stdout)
    text = (HERE / "workloads.md.in").read_text()
    of_papers = [w for w in workloads if w["paper"]]
    text = text.replace("@PAPERS@", overview(of_papers))
    text = text.replace("@OTHERS@", overview(w for w in workloads if not w["paper"]))
    for place, table in (("SETUPS", setups), ("OPTIONS", options), ("PROPERTIES", properties)):
        text = text.replace(f"@{place}@", table(workloads))
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
