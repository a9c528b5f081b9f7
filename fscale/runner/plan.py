# SPDX-License-Identifier: GPL-2.0-only
"""Makes the list of cells of a suite, in the order in which they are measured."""

import itertools
import random
from collections.abc import Mapping

from fscale.model.bench import Descriptor
from fscale.model.config import FileSystem, Medium, Suite
from fscale.model.errors import FscaleError
from fscale.model.results import NO_FILESYSTEM, CellKey
from fscale.runner.options import combine, workloads_of

_REASONS = 3  # in a message
CONTROLS = 3  # control cells per core count: the median tolerates one outlier


def left_out(
    suite: Suite,
    descriptors: Mapping[str, Descriptor],
    filesystems: Mapping[str, FileSystem | None],
    counts: list[int],
) -> list[str]:
    """List the combinations that `make_keys` leaves out, one sentence with a reason each."""
    ids = workloads_of(suite, descriptors)
    split = [name for name, fs in filesystems.items() if _is_split(fs)]
    sentences = []
    for name in ids:
        least = descriptors[name].min_cores
        if few := [str(count) for count in counts if count < least]:
            cores = "core" if few == ["1"] else "cores"
            sentences.append(
                f"{name} is not measured at {', '.join(few)} {cores}: it needs at least {least}"
            )
        if modes := [mode for mode in suite.modes if mode not in descriptors[name].modes]:
            sentences.append(
                f"{name} is not measured in mode {', '.join(modes)}: it does not support it"
            )
        if split and not descriptors[name].partitions:
            sentences.append(
                f"{name} is not measured on {', '.join(split)}: it cannot spread its files over "
                "partitions"
            )
    return sentences


def lengthened(suite: Suite, descriptors: Mapping[str, Descriptor]) -> list[str]:
    """List the workloads that `make_keys` measures for longer than the suite asks, as sentences."""
    return [
        f"{name} is measured for {least:g} s instead of {suite.duration:g} s: it needs them"
        for name in workloads_of(suite, descriptors)
        if (least := descriptors[name].least_seconds) > suite.duration
    ]


def _is_split(fs: FileSystem | None) -> bool:
    return fs is not None and fs.partitions > 1


def make_keys(
    suite: Suite,
    descriptors: Mapping[str, Descriptor],
    media: Mapping[str, Medium],
    filesystems: Mapping[str, FileSystem | None],
    counts: list[int],
    seed: int,
) -> list[CellKey]:
    """Make all cells of a suite, in the order of measurement.

    Repetition 1 of all cells comes first, then repetition 2, so that an interrupted run is
    balanced. Within a repetition the order is random from `seed`; with `order = "cores"` the cells
    of one core count stay together. Profiling repetitions are mixed with the scored ones of the
    same number, so that the cost of a profile is measured under the same conditions. Control cells
    are inserted without changing the order of the others.

    `filesystems` are those of the suite, None for that of a directory. Those in memory are measured
    once, with the medium "none". Combinations that a workload does not support (a mode, too few
    cores, partitions) are left out.

    Raises:
        FscaleError: no cell is left.
    """
    ids = workloads_of(suite, descriptors)
    places = list(
        dict.fromkeys(
            (name, "none" if fs and fs.nodev else medium)
            for medium, (name, fs) in itertools.product(suite.media, filesystems.items())
        )
    )
    combined = {name: combine(suite, descriptors[name]) for name in ids}
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
                workers_per_cpu=workers,
                placement=suite.placement,
                repetition=repetition,
                duration=max(suite.duration, descriptors[name].least_seconds),
                options=options,
                profile=profile,
            )
            for name, (fs, medium), mode, cores, profile in itertools.product(
                ids, places, suite.modes, counts, profiles
            )
            for workers, options in itertools.product(suite.worker_counts, combined[name])
            if mode in descriptors[name].modes
            and cores >= descriptors[name].min_cores
            and (descriptors[name].partitions or not _is_split(filesystems[fs]))
        ]
        rng.shuffle(block)
        _insert_at_random(
            block, [c for c in controls if _block(c.repetition, last) == repetition], dice
        )
        if suite.order == "cores":
            groups = list(counts)
            rng.shuffle(groups)
            block.sort(key=lambda cell: groups.index(cell.cores))
        cells += block
    if all(cell.control for cell in cells):
        reasons = left_out(suite, descriptors, filesystems, counts)
        more = f"; and {len(reasons) - _REASONS} more" if len(reasons) > _REASONS else ""
        raise FscaleError(
            f"nothing to measure: {'; '.join(reasons[:_REASONS])}{more}; give another --workload, "
            "--fs, --mode or --cores"
        )
    return cells


def _controls(
    suite: Suite, descriptors: Mapping[str, Descriptor], counts: list[int]
) -> list[CellKey]:
    """Make the control cells; none for a single core count, which has no curve to control."""
    if not suite.control or len(counts) < 2:
        return []
    return [
        CellKey(
            workload=name,
            filesystem=NO_FILESYSTEM,
            medium="none",
            mode="buffered",
            cores=cores,
            workers_per_cpu=min(suite.worker_counts),
            placement=suite.placement,
            repetition=repetition,
            duration=suite.control,
        )
        for repetition in range(1, CONTROLS + 1)
        for name, cores in itertools.product(descriptors, counts)
        if descriptors[name].control
    ]


def _block(repetition: int, last: int) -> int:
    """Return the repetition that gets a control cell: the first, the middle or the last one."""
    return 1 + (repetition - 1) * (last - 1) // (CONTROLS - 1)


def _insert_at_random(cells: list[CellKey], more: list[CellKey], dice: random.Random) -> None:
    for cell in more:
        cells.insert(dice.randint(0, len(cells)), cell)
