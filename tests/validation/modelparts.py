# SPDX-License-Identifier: GPL-2.0-only
"""What each part of the simulator's model moves: the same curves with one thing changed at a time.

.venv/bin/python -m tests.validation.modelparts --output results/validation/parts --draw docs/img

Simulates each variant, prints the rates of its most cores by those of the defaults, and draws a
figure for each family: the quantum, the parts of the model, seeds. Goes on after Ctrl-C.
"""

import argparse
import io
import re
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, ScalarFormatter

from fscale.analysis.reader import load
from fscale.analysis.summary import summarise
from fscale.sim.machine import MACHINES
from tests.validation.gate import fscale

WORKLOADS = ("DRBL", "DRBH", "DWOM", "MWRL", "MWCM")
CORES = (1, 4, 16, 64)
DEFAULT = "as it is"
_LATENCY = re.compile(r"^(\w+) = (\d+)$", re.MULTILINE)
Rates = dict[str, dict[int, float]]
"""by workload and cores"""


@dataclass(frozen=True)
class Variant:
    """What is changed."""

    family: str
    name: str
    method: tuple[str, ...] = ()
    latency: float = 1.0
    sockets: bool = True
    seed: int = 1
    cores: tuple[int, ...] = CORES

    @property
    def file(self) -> str:
        """Its name without what a shell would mind."""
        return re.sub(r"[^a-z0-9]+", "-", f"{self.family}-{self.name}")


VARIANTS = [
    Variant("all", DEFAULT),
    Variant("quantum", "1: lockstep", ("quantum=1",), cores=(1, 4, 16)),
    Variant("quantum", "50", ("quantum=50",)),
    Variant("quantum", "500", ("quantum=500",)),
    Variant("quantum", "1,000", ("quantum=1000",)),
    Variant("quantum", "5,000", ("quantum=5000",)),
    Variant("quantum", "200 without grace", ("grace=0",)),
    Variant("parts", "no queueing", ("queueing=0",)),
    Variant("parts", "one socket", sockets=False),
    Variant("parts", "latencies halved", latency=0.5),
    Variant("parts", "latencies doubled", latency=2.0),
    *(Variant("seeds", f"seed {seed}", seed=seed) for seed in (2, 3, 4, 5)),
]


def machine(variant: Variant, directory: Path) -> Path:
    """The paper's machine with other latencies, or as one socket."""
    head, _, rest = (MACHINES / "paper.toml").read_text().partition("[latency]")
    latency, _, cost = rest.partition("[cost]")
    latency = _LATENCY.sub(lambda m: f"{m[1]} = {round(int(m[2]) * variant.latency)}", latency)
    if not variant.sockets:
        head = head.replace("sockets = 8", "sockets = 1").replace("socket = 10", "socket = 80")
    path = directory / f"{variant.file}.toml"
    path.write_text(f"{head}[latency]{latency}[cost]{cost}")
    return path


def simulated(variant: Variant, given: argparse.Namespace) -> Rates:
    """The curves of a variant."""
    output = given.output / variant.file
    cores = ",".join(str(count) for count in variant.cores if count <= given.most)
    given.output.mkdir(parents=True, exist_ok=True)
    fscale(
        *("simulate", "--fs", given.fs, "--workload", ",".join(WORKLOADS), "--memory", "4096"),
        *("--cores", cores, "--seed", str(variant.seed), "--output", output),
        *("--machine", machine(variant, given.output)),
        *(word for setting in variant.method for word in ("--set", setting)),
    )
    found: Rates = {workload: {} for workload in WORKLOADS}
    for point in summarise(load(output).scored):
        found[point.key.workload][point.key.cores] = point.median
    return found


def draw(family: str, curves: dict[str, Rates], path: Path) -> None:
    """A panel for each workload, a line for each variant."""
    figure, axes = plt.subplots(1, len(WORKLOADS), figsize=(13, 3), layout="constrained")
    for ax, workload in zip(axes, WORKLOADS, strict=True):
        for name, rates in curves.items():
            mine = rates[workload]
            line = {"color": "black", "zorder": 3} if name == DEFAULT else {"alpha": 0.8}
            ax.plot(
                list(mine), [rate / 1e6 for rate in mine.values()], "--o", ms=3, label=name, **line
            )
        ax.set(title=workload, xscale="log", yscale="log", xlabel="simulated cores")
        ax.set_xticks(sorted({cores for rates in curves.values() for cores in rates[workload]}))
        ax.xaxis.set_major_formatter(ScalarFormatter())
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("{x:g}")
        ax.xaxis.set_minor_locator(NullLocator())
    axes[0].set_ylabel("M ops per simulated second")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=8)
    figure.suptitle(f"Simulated: {family}", fontsize=10)
    path.write_text(compact(figure))


def compact(figure: Figure) -> str:
    """The figure as SVG with its words as text, a line for each panel."""
    out = io.StringIO()
    with plt.rc_context({"svg.fonttype": "none"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    svg = out.getvalue()[out.getvalue().index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\s*\n\s*", " ", svg).replace("> <", "><")
    return svg.replace('<g id="axes_', '\n<g id="axes_').strip() + "\n"


def main() -> None:
    """Simulate, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fs", default="tmpfs")
    parser.add_argument("--families", default="quantum,parts,seeds")
    parser.add_argument("--most", type=int, default=CORES[-1], help="cores")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--draw", type=Path, help="directory for the figures")
    given = parser.parse_args()
    families = given.families.split(",")
    found = {v: simulated(v, given) for v in VARIANTS if v.family in ("all", *families)}
    base = found[VARIANTS[0]]
    print(f"| | {' | '.join(WORKLOADS)} |\n|---|{'--:|' * len(WORKLOADS)}")
    for variant, rates in found.items():
        most = max(rates[WORKLOADS[0]])
        row = " | ".join(f"{rates[name][most] / base[name][most]:.2f}" for name in WORKLOADS)
        print(f"| {variant.family}: {variant.name} (at {most}) | {row} |")
    if given.draw:
        given.draw.mkdir(parents=True, exist_ok=True)
    for family in families if given.draw else ():
        mine = {v.name: rates for v, rates in found.items() if v.family in ("all", family)}
        draw(family, mine, given.draw / f"simulator-{family}.svg")


if __name__ == "__main__":
    main()
