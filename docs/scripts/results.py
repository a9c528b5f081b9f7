# SPDX-License-Identifier: GPL-2.0-only
"""Write docs/results/*.md from docs/results/data: `python -m docs.scripts.results`.

Each file of data makes one page; the same data make the same bytes. `pack*.py` make data of
results.
"""

import csv
import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from docs.scripts import conflicts, predicted, published, sides, table, write_pages
from fscale.analysis.numbers import rate

RESULTS = Path(__file__).resolve().parents[1] / "results"
Curve = dict[int, list[float]]
"""core count -> operations per second of each repetition"""


def pages() -> dict[str, str]:
    """File name -> Markdown."""
    made = {}
    for path in sorted((RESULTS / "data").iterdir()):
        if path.suffix == ".csv":
            made[f"{path.stem}.md"] = _of_table(path)
        elif path.suffix == ".json":
            data = json.loads(path.read_text())
            if "beside" in data:
                beside = json.loads((path.parent / data["beside"]).read_text())
                made[f"{path.stem}.md"] = sides.page(data, beside, path.name)
                continue
            page = next((page for key, page in _PAGES.items() if key in data), _of_cells)
            made[f"{path.stem}.md"] = page(data, path.name)
    return made


def _head(data: dict[str, Any], source: str) -> list[str]:
    machine = data["machine"]
    memory = machine["memory_bytes"]
    there = [
        f"- Machine: {machine['cpus']} CPUs, {machine['cpu']}, a virtual machine"
        + (f", {memory / 2**30:.0f} GiB of memory" if memory else "")
        + f"; Linux {machine['kernel']}.",
        *(f"- {run['started'].replace('T', ', ')}: `{run['command']}`" for run in data["runs"]),
        f"- Data: [{source}](data/{source}).",
    ]
    return [
        f"# {data['title']}",
        "",
        *there,
        *([f"- {data['note']}"] if "note" in data else []),
        "",
    ]


def _curves(data: dict[str, Any]) -> dict[tuple[str, str], Curve]:
    found: dict[tuple[str, str], Curve] = defaultdict(lambda: defaultdict(list))
    for workload, filesystem, _, cores, _, ops_per_second, _ in data["cells"]:
        found[workload, filesystem][cores].append(ops_per_second)
    return found


def _of_cells(data: dict[str, Any], source: str) -> str:
    """A row for each curve: operations per second at the ends, and the speed-up at each count."""
    curves = _curves(data)
    counts = sorted({cores for curve in curves.values() for cores in curve})
    disturbed = sum(cell[-1] for cell in data["cells"])
    repetitions = sorted({len(rates) for curve in curves.values() for rates in curve.values()})
    rows = [_row(name, curve, counts) for name, curve in sorted(curves.items())]
    lines = _head(data, source)
    lines += [
        f"{len(data['cells'])} cells, {repetitions[0]} to {repetitions[-1]} repetitions per point; "
        f"{disturbed} cells were disturbed and count. Figures are medians; speed-up is throughput "
        "divided by that at the lowest core count. Brackets hold the lowest and the highest "
        "speed-up that single repetitions allow.",
        "",
        *table(
            ["Workload", "File system", f"Per second at {counts[0]}", f"at {counts[-1]}"]
            + [f"Speed-up at {n}" for n in counts[1:]],
            rows,
        ),
    ]
    return "\n".join(lines) + "\n"


def _row(name: tuple[str, str], curve: Curve, counts: list[int]) -> list[str]:
    middle = {n: statistics.median(rates) for n, rates in curve.items()}
    first = counts[0]
    row = [*name, rate(middle[first]) if first in middle else "", rate(middle[max(middle)])]
    for n in counts[1:]:
        if n not in middle or first not in middle:
            row.append("")
            continue
        low, high = min(curve[n]) / max(curve[first]), max(curve[n]) / min(curve[first])
        band = f" ({low:.2f} to {high:.2f})" if len(curve[n]) > 1 else ""
        row.append(f"{middle[n] / middle[first]:.2f}{band}")
    return row


def _of_lines(data: dict[str, Any], source: str) -> str:
    """Quantiles of what transfers take over all ordered pairs of CPUs, and throughput of crowds."""
    samples = data["samples"]
    lines = _head(data, source)
    lines += [
        f"{len(samples)} calls. Nanoseconds per cache line, over all ordered pairs of CPUs:",
        "",
    ]
    rows = []
    for kind in samples[0]["nanoseconds_of_transfers"]:
        values = sorted(
            value
            for sample in samples
            for row in sample["nanoseconds_of_transfers"][kind]
            for value in row
            if value is not None
        )
        points = [values[round(q * (len(values) - 1))] for q in (0.05, 0.5, 0.95)]
        rows.append([kind, str(len(values)), *(f"{value:.1f}" for value in points)])
    lines += table(["Access", "n", "5%", "Median", "95%"], rows)
    counts = list(samples[0]["crowds"]["add"])
    lines += ["", "Million operations per second of all cores together, medians of the calls:", ""]
    rows = [[name, *(_crowd(samples, name, n) for n in counts)] for name in samples[0]["crowds"]]
    lines += table(["Operation", *(f"{n} cores" for n in counts)], rows)
    lines += ["", "One core, medians of the calls:", ""]
    names = list(samples[0]["core"])
    rows = [[n, f"{statistics.median(s['core'][n] for s in samples):.4g}"] for n in names]
    lines += table(["Figure", "Value"], rows)
    return "\n".join(lines) + "\n"


def _crowd(samples: list[dict[str, Any]], name: str, cores: str) -> str:
    rates = [sample["crowds"][name][cores]["ops_per_second"] for sample in samples]
    return f"{statistics.median(rates) / 1e6:.3g}"


def _of_points(data: dict[str, Any], source: str) -> str:
    """A row for each workload, file system and kernel: the simulated curve, and what stops it."""
    runs = data["runs"]
    curves: dict[tuple[str, str, str], dict[int, list[Any]]] = defaultdict(dict)
    for kernel, workload, filesystem, cores, *rest in data["points"]:
        curves[workload, filesystem, kernel][cores] = rest
    counts = sorted({cores for curve in curves.values() for cores in curve})
    filesystems = sorted({point[2] for point in data["points"]})
    lines = [
        f"# {data['title']}",
        "",
        *(f"- {run['started'].replace('T', ', ')}: `{run['command']}`" for run in runs),
        f"- Simulated: {runs[0]['machine'].removeprefix('all figures are simulated on ')}.",
        f"- Kernels: {', '.join(sorted({run['kernel'] for run in runs}))}; QEMU {runs[0]['qemu']}.",
        f"- Data: [{source}](data/{source}).",
        *([f"- {data['note']}"] if "note" in data else []),
        "",
        f"{len(data['points'])} points on {', '.join(filesystems)}, each simulated once: n = 1, "
        "so a difference of some percent says nothing. Speed-up is throughput divided by that at "
        "the fewest cores. The last columns name the object that the cores spend most time on at "
        f"{counts[-1]} cores, the function that waits for it most, and the share of the time.",
        "",
    ]
    rows = []
    for (workload, filesystem, kernel), curve in sorted(curves.items()):
        fewest = min(curve)
        first = curve[fewest][0]
        speed_ups = [f"{curve[n][0] / first:.1f}" if n in curve else "" for n in counts[1:]]
        thing, function, share = curve.get(counts[-1], [0, "not simulated", None, 0])[1:]
        thing = thing and thing.partition(", ")[0]  # the member at the line's lowest address
        rows.append(
            [
                workload,
                *([filesystem] if len(filesystems) > 1 else []),
                ".".join(kernel.split(".")[:2]),
                rate(first) if fewest == counts[0] else f"{rate(first)} at {fewest}",
                *speed_ups,
                (f"`{thing}`" if share else thing) or "none",
                f"`{function}`" if function else "",
                f"{share:.0%}" if share else "",
            ]
        )
    head = ["Workload", *(["File system"] if len(filesystems) > 1 else []), "Linux"]
    head += [f"Per second at {counts[0]}", *(f"at {n}" for n in counts[1:])]
    lines += table([*head, "Object", "Function", "Time"], rows)
    return "\n".join(lines) + "\n"


_PAGES = {
    "samples": _of_lines,
    "points": _of_points,
    "changes": published.page,
    "predictions": predicted.page,
    "matrices": conflicts.page,
}
"""key that a file has -> the page that is made of it"""


def _of_table(path: Path) -> str:
    """A CSV file whose first lines are comments: the page's title and its words."""
    text = path.read_text().splitlines()
    title, *said = [line.removeprefix("#").strip() for line in text if line.startswith("#")]
    rows = list(csv.reader(line for line in text if not line.startswith("#")))
    body = [f"# {title}", "", *said, "", f"Data: [{path.name}](data/{path.name}).", ""]
    return "\n".join([*body, *table(rows[0], rows[1:])]) + "\n"


if __name__ == "__main__":
    write_pages(RESULTS, pages())
