# SPDX-License-Identifier: GPL-2.0-only
"""What a reader of predictions has to know first, and the commands that make better ones."""

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fscale.analysis.prediction.curves import Prediction, Start, starts
from fscale.analysis.reader import Results
from fscale.model.errors import FscaleError
from fscale.model.results import NO_MEDIUM
from fscale.model.words import plural

RECORDED = "8 x 10 cores, as FxMark's (Xeon E7-8870)"
"""the simulated machine of the record"""
ON_DEVICES = ("device", "dir")
REPETITIONS = 10
"""of a point that limits a prediction: quartiles then bound its spread"""


def check(results: Results) -> None:
    """Refuse a run from which nothing can be predicted.

    Raises:
        FscaleError: it is simulated, compares sides, or has no curve with two core counts.
    """
    if results.run.machine.simulated:
        raise FscaleError(
            f"{results.path} is simulated; give a measured run, and this one as --simulated"
        )
    if any(cell.key.side is not None for cell in results.cells):
        raise FscaleError(f"{results.path} compares two sides; give a run of `fscale run`")
    curves = starts(results)
    refused = {start.name: start.refusal for start in curves if start.refusal}
    if len(refused) == len(curves):
        name, reason = next(iter(refused.items()))
        raise FscaleError(
            f"nothing can be predicted from {results.path}: {name} {reason}; measure one core and "
            "more, as `fscale run quick --cores 1,2` does"
        )


def most_cores(results: Results) -> int:
    """The most cores that a run measured."""
    return max(cell.key.cores for cell in results.scored)


def check_simulation(simulation: Results) -> None:
    """Refuse a run whose curves are not simulated ones of one kernel.

    Raises:
        FscaleError: it was measured, compares sides, or leaves out the cost of objects.
    """
    if not simulation.run.machine.simulated:
        raise FscaleError(
            f"--simulated {simulation.path} was measured; give a directory that `fscale simulate` "
            "wrote"
        )
    if any(cell.key.side is not None for cell in simulation.cells):
        raise FscaleError(
            f"--simulated {simulation.path} compares two sides; give a directory that `fscale "
            "simulate` wrote"
        )
    if free := simulation.run.suite.get("free"):
        raise FscaleError(
            f"--simulated {simulation.path} leaves out the cost of {', '.join(free)}; simulate "
            "without --free"
        )


def notes(results: Results, simulation: Results, made: Sequence[Prediction]) -> Iterator[str]:
    """The lines before a table of predictions, the most important first."""
    machine, other = results.run.machine, simulation.run.machine
    yield (
        f"PREDICTED, not measured: {results.path} ({machine.cpus}) scaled by {simulation.path} "
        f"({other.cpu_model})"
    )
    if machine.kernel != other.kernel:
        yield f"measured: Linux {machine.kernel}; simulated: another kernel, Linux {other.kernel}"
    if machine.tuning is not None and machine.labels != other.labels:
        labelled = "measurement" if machine.labels else "simulation"
        yield f"SELinux or AppArmor labels files in the {labelled} only, which all opens pay for"
    if disturbed := {one.start.name for one in made if one.limit.startswith("disturbed")}:
        yield f"{plural(len(disturbed), 'curve')} with a disturbed point: " + _some(disturbed)
    if media := sorted(_on_devices(results, made)):
        yield f"the simulated medium is a RAM disk, and no device: {', '.join(media)}"
    if other.cpu_model != RECORDED:
        yield f"the intervals are of predictions by another simulated machine: {RECORDED}"
    if any(not one.recorded for one in made):
        yield "~: no prediction from these cores to so many was judged; the interval is extended"


def _on_devices(results: Results, made: Iterable[Prediction]) -> set[str]:
    """The media that are, or may be, on a device."""
    media = {one.key.medium for one in made} & results.run.media.keys()
    return {
        name
        for name in media
        if (about := results.run.media[name]).get("kind") in ON_DEVICES or about.get("backing")
    }


def refusals(refused: Mapping[str, str]) -> Iterator[str]:
    """A line for each reason why curves are not predicted."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name, reason in refused.items():
        by_reason[reason].append(name)
    for reason, names in by_reason.items():
        yield f"not predicted, because the curve {reason}: {_some(names)}"


def _some(names: Iterable[str], most: int = 3) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def simulate(starts: Iterable[Start], counts: Iterable[int], kernel: str, machine: str) -> str:
    """The command that simulates curves at their measured core counts and at `counts`.

    A simulation has one I/O mode, so this one has the curves in the mode of the first.
    """
    listed = list(starts)
    curves = [start for start in listed if start.key.mode == listed[0].key.mode]
    cores = {n for start in curves for n in start.points} | set(counts)
    words = ["fscale", "simulate", "--machine", machine, "--kernel", kernel, *_selected(curves)]
    return shlex.join([*words, "--cores", _joined(sorted(cores)), "--output", "results/simulated"])


def measure(limited: Iterable[Prediction]) -> str:
    """The command that measures again the curves whose measurement limits predictions."""
    starts = {one.start.key.point: one.start for one in limited}.values()
    cores = {n for start in starts for n in start.points}
    media = {start.key.medium for start in starts} - {NO_MEDIUM}
    words = ["fscale", "run", "quick", *_selected(starts)]
    words += ["--media", _joined(sorted(media))] if media else []
    words += ["--cores", _joined(sorted(cores)), "--repetitions", str(REPETITIONS)]
    return shlex.join([*words, "--output", "results/again"])


def _selected(starts: Iterable[Start]) -> list[str]:
    curves = list(starts)
    keys = [start.key for start in curves]
    words = ["--fs", _joined(start.filesystem for start in curves)]
    words += ["--workload", _joined(key.workload for key in keys)]
    options: dict[str, list[int | str]] = defaultdict(list)
    for key in keys:
        for name, value in sorted(key.options.items()):
            options[f"{key.workload}.{name}"].append(value)
    for name, values in options.items():
        words += ["--option", f"{name}={_joined(values)}"]
    modes = dict.fromkeys(key.mode for key in keys)
    return words if list(modes) == ["buffered"] else [*words, "--mode", _joined(modes)]


def _joined(values: Iterable[object]) -> str:
    return ",".join(dict.fromkeys(map(str, values)))
