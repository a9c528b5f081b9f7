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
OF_ALL = "workers"  # the option that each workload has; the page describes it once


def row(*cells: str) -> str:
    """A line of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def overview(workloads: Iterable[dict[str, Any]]) -> str:
    """What each of some workloads does, in one line each."""
    lines = [row("Id", "One operation", "Sharing", "Expected contention"), row(*["---"] * 4)]
    lines += [row(w["id"], f"`{w['operation']}`", w["sharing"], w["contention"]) for w in workloads]
    return "\n".join(lines)


def takes(option: dict[str, Any]) -> str:
    """The choices of an option, or the numbers that it takes."""
    if option["choices"]:
        return " or ".join(option["choices"])
    multiples = f", multiples of {option['multiple_of']}" if option["multiple_of"] else ""
    return f"{option['least']} to {option['most']}{multiples}"


def details(workload: dict[str, Any]) -> str:
    """Everything that a descriptor says."""
    lines = [f"### {workload['id']}", "", f"{workload['title']}.", ""]
    lines += [f"- One operation: `{workload['operation']}`"]
    lines += [f"- Exists before: {workload['setup'].replace('$', chr(92) + '$')}"]
    lines += [f"- Modes: {', '.join(workload['modes'])}"]
    if workload["consumes"]:
        lines += ["- Uses up a stock"]
    if workload["background"]:
        lines += ["- The last CPU is the writer's; only the readers' operations count"]
    if workload["puts_off"]:
        lines += ["- Defers work: `fscale ab` settles after each of its turns"]
    if workload["defers_frees"]:
        lines += ["- Frees after an RCU grace period: `fscale ab` pauses after each of its turns"]
    if workload["control"]:
        lines += ["- A control: measured at each core count of a run"]
    elif workload["apart"]:
        lines += ["- Measured only if it is named"]
    for option in workload["options"]:
        if option["name"] == OF_ALL:
            continue
        lines += [f"- Option `{option['name']}={option['default']}`: {option['help']}"]
        lines[-1] += f" ({takes(option)})"
    lines += [f"- Source: {workload['paper']}"] if workload["paper"] else []
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
    text = text.replace("@DETAILS@", "\n\n".join(details(w) for w in workloads))
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
