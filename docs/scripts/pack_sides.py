# SPDX-License-Identifier: GPL-2.0-only
"""Pack simulated runs that stand beside measured data of docs/results/data.

    python -m docs.scripts.pack_sides TITLE MEASURED.json SIDE=RUN[,RUN]... > NAME.json

SIDE names a state of the model, such as `before`; its runs must be of one machine.
"""

import json
import sys
from pathlib import Path
from typing import Any

from docs.scripts.pack import packed


def sides(title: str, beside: str, words: list[str]) -> dict[str, Any]:
    """The sides as one JSON object; each has the keys of `pack.packed` but the title."""
    found: dict[str, Any] = {}
    for word in words:
        name, _, runs = word.partition("=")
        found[name] = packed(title, [Path(run) for run in runs.split(",")])
        del found[name]["title"]
    return {"title": title, "beside": beside, "sides": found}


def text(data: dict[str, Any]) -> str:
    """The object as JSON with a cell on each line, so that differences can be read."""
    cells = {f"@{name}": side["cells"] for name, side in data["sides"].items()}
    for name, side in data["sides"].items():
        side["cells"] = f"@{name}"
    made = json.dumps(data, indent=1)
    for mark, rows in cells.items():
        made = made.replace(f'"{mark}"', "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]")
    return made + "\n"


def main() -> None:
    """Write to standard output."""
    title, beside, *words = sys.argv[1:]
    sys.stdout.write(text(sides(title, beside, words)))


if __name__ == "__main__":
    main()
