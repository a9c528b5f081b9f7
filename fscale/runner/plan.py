# SPDX-License-Identifier: GPL-2.0-only
"""From a suite to the list of cells, in the order in which they are measured."""

import itertools
import random
from collections.abc import Mapping

from fscale.model.bench import Descriptor
from fscale.model.catalogue import suggest
from fscale.model.config import Medium, Options, Suite
from fscale.model.errors import FscaleError
from fscale.model.results import NO_FILESYSTEM, CellKey
from fscale.model.variant import split_partitions

CONTROLS = 3  # cells of a control at a core count: their median bears one that went wrong


def check_names(suite: Suite, descriptors: Mapping[str, Descriptor]) -> None:
    """Every workload and option of the suite exists; FscaleError with near names otherwise."""
    wanted = [] if suite.workloads == "all" else suite.workloads
    for name in wanted:
        if name not in descriptors:
            raise FscaleError(f"unknown workload {name}{suggest(name, descriptors)}")
    for name, options in suite.options.items():
        if name != "all" and name not in descriptors:
            raise FscaleError(f"options for unknown workload {name}{suggest(name, descriptors)}")
        group = descriptors.values() if name == "all" else [descriptors[name]]
        known = {option.name: option for d in group for option in d.options}
        for key, value in options.items():
            if key not in known:
                raise FscaleError(f"{name} has no option {key}{suggest(key, known)}")
            choices = known[key].choices
            if choices and value not in choices:
                raise FscaleError(f"{name}: option {key} is one of {', '.join(choices)}")


def options_of(suite: Suite, descriptor: Descriptor) -> Options:
    """The options that a suite gives to a workload: those for all that it has, then its own."""
    known = {option.name for option in descriptor.options}
    shared = {k: v for k, v in suite.options.get("all", {}).items() if k in known}
    return shared | suite.options.get(descriptor.id, {})


def _ids(suite: Suite, descriptors: Mapping[str, Descriptor]) -> list[str]:
    """The workloads of a suite, each once; "all" is without those that stand apart."""
    if suite.workloads == "all":
        return [name for name, descriptor in descriptors.items() if not descriptor.apart]
    return list(dict.fromkeys(suite.workloads))


def left_out(suite: Suite, descriptors: Mapping[str, Descriptor], counts: list[int]) -> list[str]:
    """What of a suite `make` has no cells for, and why, a sentence each."""
    ids = _ids(suite, descriptors)
    found = []
    for name in ids:
        least = descriptors[name].min_cores
        if few := [str(count) for count in counts if count < least]:
            found.append(f"{name} is not measured at {', '.join(few)} cores: it needs {least}")
        if modes := [mode for mode in suite.modes if mode not in descriptors[name].modes]:
            found.append(f"{name} is not measured in mode {', '.join(modes)}: it has no such mode")
        split = [fs for fs in suite.filesystems if split_partitions(fs)[1] > 1]
        if split and not descriptors[name].partitions:
            found.append(
                f"{name} is not measured on {', '.join(split)}: it cannot spread its files"
            )
    return found


def make(
    suite: Suite,
    descriptors: Mapping[str, Descriptor],
    media: Mapping[str, Medium],
    in_memory: set[str],
    counts: list[int],
    seed: int,
) -> list[CellKey]:
    """All cells of a suite in the order of measurement.

    Repetition 1 of all cells comes first, then repetition 2, so that an interrupted run is
    balanced. Within a repetition the order is random from `seed`; with `order = "cores"` groups of
    one core count stay together. Profiling repetitions stand among the scored ones of the same
    number, so that what a profile costs is measured side by side.

    File systems that live in memory (`in_memory`) are measured once, with the medium "none".
    Combinations that a workload does not know (a mode, too few cores, partitions) are left out.
    FscaleError when nothing is left. The controls stand among the other cells, which keep their
    order.
    """
    ids = _ids(suite, descriptors)
    places = list(
        dict.fromkeys(
            (fs, "none" if fs in in_memory and media[medium].kind != "dir" else medium)
            for medium, fs in itertools.product(suite.media, suite.filesystems)
        )
    )
    rng, dice = random.Random(seed), random.Random(f"{seed} controls")
    controls = _controls(suite, descriptors, counts)
    last = max(suite.repetitions, suite.profile_repetitions)
    cells = []
    for repetition in range(1, last + 1):
        profiles: list[str | None] = [None] if repetition <= suite.repetitions else []
        profiles += suite.profiles if repetition <= suite.profile_repetitions else []
        block = [
            CellKey(
                workload=name,
                filesystem=fs,
                medium=medium,
                mode=mode,
                cores=cores,
                repetition=repetition,
                duration=suite.duration,
                options=options_of(suite, descriptors[name]),
                profile=profile,
            )
            for name, (fs, medium), mode, cores, profile in itertools.product(
                ids, places, suite.modes, counts, profiles
            )
            if mode in descriptors[name].modes
            and cores >= descriptors[name].min_cores
            and (descriptors[name].partitions or split_partitions(fs)[1] == 1)
        ]
        rng.shuffle(block)
        _mix(block, [c for c in controls if _block(c.repetition, last) == repetition], dice)
        if suite.order == "cores":
            groups = list(counts)
            rng.shuffle(groups)
            block.sort(key=lambda cell: groups.index(cell.cores))
        cells += block
    if all(cell.control for cell in cells):
        raise FscaleError(
            f"nothing to measure: no workload of {', '.join(ids)} has mode "
            f"{' or '.join(suite.modes)} and works on {', '.join(map(str, counts))} cores"
        )
    return cells


def _controls(
    suite: Suite, descriptors: Mapping[str, Descriptor], counts: list[int]
) -> list[CellKey]:
    """The cells of the controls; none where a single core count has nothing to be compared with."""
    if not suite.control or len(counts) < 2:
        return []
    return [
        CellKey(
            workload=name,
            filesystem=NO_FILESYSTEM,
            medium="none",
            mode="buffered",
            cores=cores,
            repetition=repetition,
            duration=suite.control,
        )
        for repetition in range(1, CONTROLS + 1)
        for name, cores in itertools.product(descriptors, counts)
        if descriptors[name].control
    ]


def _block(repetition: int, last: int) -> int:
    """The repetition of the others in which one of a control is measured: first, middle, last."""
    return 1 + (repetition - 1) * (last - 1) // (CONTROLS - 1)


def _mix(cells: list[CellKey], more: list[CellKey], dice: random.Random) -> None:
    for cell in more:
        cells.insert(dice.randint(0, len(cells)), cell)
