# SPDX-License-Identifier: GPL-2.0-only
"""Executes tests in a simulated guest, whose plugin records the conflicts of each."""

import shlex
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fscale.commute import script
from fscale.commute.conflicts import Conflict, named
from fscale.commute.generate import PairTest
from fscale.model import catalogue, paths, variant
from fscale.model.config import FileSystem, Medium
from fscale.model.errors import Exit, FscaleError
from fscale.model.results import CellKey
from fscale.model.terminal import say
from fscale.sim import emulator, image, kerneltypes, machine
from fscale.sim.boot import Boot, BootError, PointResult
from fscale.sim.kerneltypes import Types
from fscale.sim.machine import Method
from fscale.sim.plan import MOUNT, GuestPoint, prepared, sockets
from fscale.system.programs import made
from fscale.vm import kernel as kernels
from fscale.vm import module_build, qemu, replace_dir
from fscale.vm.cache import digest, file_digest
from fscale.vm.kernel import Kernel
from fscale.vm.qemu import Qemu
from fscale.vm.steps import Steps

# One for each call, and one for the process that makes states.
CPUS = 3
MEMORY_MIB = 2048
MEDIUM = "brd"


class InterpreterError(FscaleError):
    """A test failed in the guest."""

    code = Exit.FAILED


@dataclass(frozen=True)
class Guest:
    """A kernel with a file system under test, and all that a boot needs."""

    name: str
    """the file system as the user named it"""
    filesystem: FileSystem
    medium: Medium
    kernel: Kernel
    emulator: Qemu
    plugin: Path
    initramfs: Path
    modules: tuple[Path, ...]
    """those that come before the kernel's of the same name"""
    types: Types

    @property
    def identity(self) -> str:
        """The digest of all programs, modules and options in it.

        The initramfs is named by its content and that of the kernel.
        """
        options = self.filesystem.model_dump_json()
        programs = self.initramfs.parent.name, file_digest([self.plugin]), self.emulator.digest
        return digest(*programs, options)


def describe(filesystem: str) -> FileSystem:
    """The file system that the user named, as for a simulation.

    Raises:
        FscaleError: there is no such file system, or it cannot be simulated.
    """
    asked = variant.parse(filesystem)
    asked.refuse_but(("mount", "mkfs"), "a simulation")
    described = catalogue.load_variant(asked)
    if described.partitions > 1:
        raise FscaleError(f"{filesystem}: the simulator does not support partitions; leave it out")
    return described


def prepare(filesystem: str, kernel: str, modules: Sequence[Path], steps: Steps) -> Guest:
    """Fetch and build what a guest needs. The arguments are those of simulations.

    Raises:
        FscaleError: there is no such file system or kernel, or they do not fit.
    """
    described = {filesystem: describe(filesystem)}
    emulated = qemu.find(steps)
    emulator.check_version(emulated)
    booted = kernels.of_guest(kernel, steps)
    medium = catalogue.load_medium(MEDIUM)
    built = module_build.build_parts([filesystem], (), booted, kernel, None, steps, modules)
    files = {**built.files, "bin/fscale-commute": made(paths.INTERPRETER)}
    parts = replace(built.with_given(modules), files=files)
    initramfs = image.build(booted, described, [medium], (), parts, steps)
    types = kerneltypes.load(booted, described, (), parts.modules)
    if not types:
        raise FscaleError(
            f"kernel {booted.release} has no type information, without which objects have no "
            "names; build it with CONFIG_DEBUG_INFO_BTF=y"
        )
    return Guest(
        filesystem,
        described[filesystem],
        medium,
        booted,
        emulated,
        made(paths.SIMULATOR),
        initramfs,
        parts.modules,
        types[filesystem],
    )


def execute(
    guest: Guest, tests: Sequence[PairTest], order: str, seed: int, cpu: int, logs: Path
) -> Generator[int, None, list[list[Conflict]]]:
    """Boot the guest once on the host's CPU `cpu`; returns the conflicts of each test.

    Until it is done, each step yields the number of executed tests. The directory `logs` is made if
    the guest fails.

    Raises:
        BootError, InterpreterError: the guest, or the interpreter in it, failed.
    """
    key = CellKey(
        workload="commute",
        filesystem=guest.filesystem.kernel,
        medium=MEDIUM,
        mode="buffered",
        cores=CPUS,
        repetition=1,
        duration=1,
    )
    point = GuestPoint(0, key, seed)
    program = ["fscale-commute", order, MOUNT, "/host/tests"]
    words = [*prepared(point, guest.filesystem, guest.medium, MEMORY_MIB << 20), *program]
    with Boot([point], f"{shlex.join(words)}\n", ()) as boot:
        text = "".join(f"{line}\n" for test in tests for line in script.written(test))
        (boot.place.shared / "tests").write_text(text)
        boot.start(_command(guest, boot, seed, cpu), guest.emulator.environment())
        try:
            while not (results := boot.poll()):
                yield boot.executed
            _check(results[0], tests, order)
        except (BootError, InterpreterError):
            replace_dir.replace(logs, boot.logs())
            say(f"the logs of the guest are in {logs}", error=True)
            raise
        symbols = boot.symbols()
        return [
            [one for line in found.lines for one in named(line, symbols, guest.types)]
            for found in results[0].conflicts
        ]


def _command(guest: Guest, boot: Boot, seed: int, cpu: int) -> list[str]:
    described = machine.load("paper")
    return emulator.command(
        guest.emulator,
        guest.kernel,
        guest.initramfs,
        guest.plugin,
        machine.parameters(described, Method(), CPUS, MEMORY_MIB),
        guest.types.slab,
        sockets(described, CPUS),
        seed,
        cpu,
        boot.place,
        emulator.kernel_line("lsm=none"),
    )


def _check(result: PointResult, tests: Sequence[PairTest], order: str) -> None:
    """Raise InterpreterError unless every test was executed as by the model."""
    done = len(result.conflicts)
    if result.failed or result.status or done != len(tests):
        why = result.failed or result.stderr or "the interpreter ended early"
        raise InterpreterError(f"{done} of {len(tests)} tests were executed: {why}")
    if any(found.lost for found in result.conflicts):
        raise InterpreterError("a test accessed more memory than the simulator notes")
    runs = (result.bench or "").split("test ")[1:]
    for test, run in zip(tests, runs, strict=True):
        model = script.outcome(test, order)
        system = script.renumbered(run.splitlines())
        # Where any descriptor is as good, the guest gives the lowest one and others move.
        if "anyfd" not in " ".join([*test.a.words(), *test.b.words()]) and (
            script.results(system) != script.results(model)
        ):
            raise InterpreterError(
                f"{test.id}: the file system returned {'; '.join(script.results(system))}, not "
                f"{'; '.join(script.results(model))}"
            )
