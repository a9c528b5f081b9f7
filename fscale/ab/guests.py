# SPDX-License-Identifier: GPL-2.0-only
"""Two kernels (or one with two modules) against each other: boots interleaved as A B B A.

Each boot measures every point once. The boots become one paired run of the form that
`fscale compare` reads: a repetition is a boot, which also takes in what differs between boots.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from analysis.compare.sides import AB_FILE, AbRecord
from fscale.model.errors import FscaleError
from fscale.model.results import Cell, Machine, Run, all_boots
from fscale.model.store import Store
from fscale.model.variant import Variant
from vm import guest as guests
from vm import kernel as kernels
from vm import rootfs
from vm.guest import GuestError
from vm.options import GuestOptions
from vm.place import Job
from vm.qemu import Guest, Qemu
from vm.steps import Steps
from vm.undertest import Parts, provide, wanted

DEFAULT_KERNEL = "bookworm"


@dataclass(frozen=True)
class Side:
    """One side, and its guest."""

    variant: Variant
    guest: Guest
    parts: Parts = field(default_factory=Parts)


def measure(
    base: Variant,
    new: Variant,
    arguments: Sequence[str],
    *,
    repetitions: int,
    seed: int,
    output: Path,
    files: Mapping[str, Path],
    options: GuestOptions,
) -> None:
    """Compare two sides; `arguments` are those of `fscale run`, the suite first.

    The sides, not the `options`, say which kernels boot.

    Raises FscaleError and what `interleave` raises.
    """
    steps = Steps(Console(stderr=True))
    sides, emulator = both(base, new, arguments, files=files, options=options, steps=steps)
    interleave(
        sides,
        emulator,
        arguments,
        repetitions=repetitions,
        seed=seed,
        output=output.resolve(),
        timeout=options.timeout,
        steps=steps,
        files=files,
    )


def both(
    base: Variant,
    new: Variant,
    arguments: Sequence[str],
    *,
    files: Mapping[str, Path],
    options: GuestOptions,
    steps: Steps,
) -> tuple[dict[str, Side], Qemu]:
    """The guests "A" and "B" of two sides, with what they need built.

    Raises FscaleError, also where only one of the two kernels boots under KVM.
    """
    suite = files.get("suite.toml", Path(arguments[0]))
    own = [path for name, path in files.items() if name.startswith("filesystems/")]
    sides = {}
    # One state of this repository for all boots, though somebody may work on it meanwhile.
    images = rootfs.images(steps)
    for name, variant in (("A", base), ("B", new)):
        spec = variant.kernel or DEFAULT_KERNEL
        kernel = kernels.resolve(spec, steps)
        steps.note(f"side {name}, {variant.text}: kernel {spec} ({kernel.release})")
        names = [variant.filesystem] if variant.name else wanted(suite, arguments)
        parts = provide(names, own, kernel, spec, None, steps)
        guest, emulator = guests.prepare(kernel, options, images, steps)
        sides[name] = Side(variant, guest, parts)
    if sides["A"].guest.accelerator != sides["B"].guest.accelerator:
        raise FscaleError(
            "one kernel boots under KVM and the other does not; their figures cannot be compared: "
            "give --accel tcg"
        )
    return sides, emulator


def order(repetitions: int, seed: int) -> Iterator[tuple[str, int]]:
    """(side, repetition) of each boot: A B B A or B A A B for two repetitions each."""
    coins = random.Random(seed)
    for first in range(1, repetitions + 1, 2):
        outer, inner = ("A", "B") if coins.random() < 0.5 else ("B", "A")
        yield from ((outer, first), (inner, first))
        if first < repetitions:
            yield from ((inner, first + 1), (outer, first + 1))


def interleave(
    sides: Mapping[str, Side],
    emulator: Qemu,
    arguments: Sequence[str],
    *,
    repetitions: int,
    seed: int,
    output: Path,
    timeout: float,
    steps: Steps,
    files: Mapping[str, Path],
) -> None:
    """Boot sides "A" and "B" in turn, `repetitions` times each; merge the results into `output`.

    `arguments` are those of `fscale run` without --output, --repetitions and --seed. Boots that an
    earlier, interrupted call finished are not measured again.

    Raises:
        GuestError: a guest panicked, hung or ran out of time; earlier boots are kept.
        FscaleError: `fscale run` failed in a guest, or a side's kernel was built anew meanwhile.
    """
    boots = list(order(repetitions, seed))
    for number, (name, repetition) in enumerate(boots, start=1):
        directory = boot_directory(output, name, repetition)
        side = sides[name]
        steps.note(f"boot {number} of {len(boots)}: {side.variant.text}")
        if complete(directory):
            refuse_other_builds(output, boots[:number])
            continue
        job = Job(
            argv=[
                *("python3", "-m", "fscale", "run", *arguments),
                *(("--fs", side.variant.in_guest) if side.variant.in_guest else ()),
                *("--set", "control=0"),
                *("--output", "/results", "--repetitions", "1", "--seed", str(seed + repetition)),
            ],
            output=directory,
            modules=side.variant.modules,
            files=files,
            timeout=timeout,
        )
        outcome = guests.run(side.guest, emulator, side.parts.added(job), steps)
        if outcome.end != "finished":
            raise GuestError(outcome)
        if not complete(directory):
            raise FscaleError(f"`fscale run` failed in the guest of {side.variant.text}; see above")
        refuse_other_builds(output, boots[:number])
    merge(output, {name: side.variant.text for name, side in sides.items()}, boots)


def boot_directory(output: Path, side: str, repetition: int) -> Path:
    """Where one boot's own results are."""
    return output / "boots" / f"{side}{repetition}"


def complete(directory: Path) -> bool:
    """Whether a boot measured all that it was to measure."""
    run = Store(directory).load_run()
    return run is not None and run.state == "complete"


def refuse_other_builds(output: Path, boots: Sequence[tuple[str, int]]) -> None:
    """FscaleError when the boots of a side ran different builds of its kernel."""
    first: dict[str, str] = {}
    for name, repetition in boots:
        run = Store(boot_directory(output, name, repetition)).load_run()
        build = run.machine.build if run else None
        if build is None:
            continue  # of an fscale that did not record it
        told = f"{build.version} ({build.id})"
        if first.setdefault(name, told) != told:
            raise FscaleError(
                f"side {name} was booted with two builds of its kernel: {first[name]} and {told}; "
                "give a new --output, so that all boots are of one"
            )


def merge(output: Path, texts: Mapping[str, str], boots: Sequence[tuple[str, int]]) -> None:
    """Make one paired run in `output` of the boots' results."""
    store = Store(output)
    count = 0
    for name, repetition in boots:
        for cell in Store(boot_directory(output, name, repetition)).cells():
            store.save_cell(relabelled(cell, name, repetition))
            count += 1
    store.save_run(merged(output, texts, boots, count))
    record = AbRecord(base=texts["A"], new=texts["B"], looks=[])
    text = json.dumps(record.model_dump(by_alias=True), indent=1) + "\n"
    Store(output).save(AB_FILE, text)


def relabelled(cell: Cell, side: str, repetition: int) -> Cell:
    """A guest's cell as one of the paired run."""
    key = cell.key.model_copy(update={"side": side, "repetition": repetition})
    if Path(key.id).name != key.id:
        raise FscaleError(f"side {side}: the guest names a cell {key.id}, a path")
    return cell.model_copy(update={"key": key, "id": key.id})


def merged(
    output: Path, texts: Mapping[str, str], boots: Sequence[tuple[str, int]], cells: int
) -> Run:
    """The run that the boots amount to; those of sides "A" and "B" describe it."""
    runs: dict[str, Run] = {}
    revisions: dict[str, None] = {}
    machines: list[Machine] = []
    stood_still = 0
    for name, repetition in boots:
        directory = boot_directory(output, name, repetition)
        run = Store(directory).load_run()
        if run is None:
            raise FscaleError(f"{directory} holds no results; start the comparison again")
        stood_still += (run.machine.guest or {}).get("stood_still", 0)
        runs.setdefault(name, run)
        machines.append(run.machine)
        revisions[run.revision or "unknown"] = None
    whole = runs["A"].model_copy(deep=True)
    whole.id = output.resolve().name
    whole.finished = datetime.now(UTC).isoformat(timespec="seconds")
    whole.planned_cells = cells
    whole.suite |= {
        "base": texts["A"],
        "new": texts["B"],
        "repetitions": max(repetition for _, repetition in boots),
    }
    whole.versions |= {f"{what} of B": text for what, text in runs["B"].versions.items()}
    whole.warnings = list(dict.fromkeys(w for run in runs.values() for w in run.warnings))
    if len(revisions) > 1:
        whole.warnings.append(f"boots are of several revisions of fscale: {', '.join(revisions)}")
    if stood_still:
        whole.warnings.append(f"{stood_still} boots stood still and were made again")
    guest = {**(runs["A"].machine.guest or {}), "B": runs["B"].machine.guest}
    whole.machine.guest = {**guest, "stood_still": stood_still}
    whole.machine.boots = all_boots(machines)
    return whole
