# SPDX-License-Identifier: GPL-2.0-only
"""The simulated machine and the method of simulation: all numbers that the plugin gets.

`configs/machines/<name>.toml` describes a machine; parameters of the method of simulation have
their defaults here. Cycles are those of the simulated core.
"""

import contextlib
from pathlib import Path

from pydantic import Field, model_validator

from fscale.model import paths
from fscale.model.bench import Plain, Strict
from fscale.model.catalogue import load_toml, names, suggest
from fscale.model.errors import FscaleError

MACHINES = paths.CONFIGS / "machines"


def own_machines() -> Path:
    """The directory of the machines that this user has calibrated; FscaleError without a home."""
    return paths.config_dir("machines")


def known() -> list[str]:
    """The names of all machines: those of fscale, and the user's of_user."""
    of_user: list[str] = []
    with contextlib.suppress(FscaleError):
        of_user = names(own_machines())
    return sorted({*names(MACHINES), *of_user})


MOST_CPUS = 255  # QEMU's q35 without an interrupt remapper


class Latencies(Strict):
    """Cost of a cache-line transfer in cycles; an access that hits adds no cost."""

    clean: int = Field(ge=0, description="read of a line that other cores of the socket share: LLC")
    clean_remote: int = Field(ge=0, description="read of a line that only other sockets share")
    dirty: int = Field(ge=0, description="access to a line modified in the same socket")
    dirty_remote: int = Field(ge=0, description="access to a line modified in another socket")
    upgrade: int = Field(ge=0, description="write to a line that other cores of the socket share")
    upgrade_remote: int = Field(ge=0, description="write to a line that other sockets share")
    memory: int = Field(ge=0, description="access to a line that no core has")
    overlap: int = Field(
        default=0,
        ge=0,
        description="part of a transfer's latency that has passed when the line becomes free, if "
        "the transfer had to wait for it: the time of the request",
    )
    occupy_shared: int = Field(
        ge=0,
        description="time for which a shared read occupies the line; a dirty transfer and an "
        "upgrade occupy it for their whole duration",
    )


class Costs(Strict):
    """Additional cost of some instructions in cycles, besides `cpi`."""

    lock: int = Field(ge=0, description="instruction with a LOCK prefix, or xchg with memory")
    pause: int = Field(ge=0, description="PAUSE, the instruction of spin loops")
    syscall: int = Field(
        default=0, ge=0, description="SYSCALL and the return from it, mitigations included"
    )


class SimulatedMachine(Strict):
    """`configs/machines/<name>.toml`: sockets of equal cores, one hardware thread each."""

    title: Plain
    source: Plain = Field(description="source of the numbers, and their reliability")
    unseen: list[Plain] = Field(
        default=[], description="what a calibration could not see, a sentence each"
    )
    sockets: int = Field(ge=1)
    cores_per_socket: int = Field(ge=1)
    clock_mhz: int = Field(ge=1, description="constant frequency of every core")
    cpi: float = Field(gt=0, description="cycles per instruction if all accesses hit")
    migratory: bool = Field(
        default=False,
        description="whether a read of a modified line that cores have read and then written one "
        "after another hands it over whole, so that the write that follows costs nothing",
    )
    string_bytes: int = Field(ge=1, description="bytes per cycle that rep movs and rep stos move")
    latency: Latencies
    cost: Costs

    @model_validator(mode="after")
    def _fits(self) -> "SimulatedMachine":
        if self.cores > MOST_CPUS:
            raise ValueError(f"has {self.cores} cores, but at most {MOST_CPUS} can be emulated")
        return self

    @property
    def cores(self) -> int:
        """The total number of cores."""
        return self.sockets * self.cores_per_socket


class Method(Strict):
    """Parameters of the simulation; docs/design/simulator-model.md explains them."""

    quantum: int = Field(
        default=200, ge=1, description="most cycles that a core may be ahead of the slowest one"
    )
    quantum_ordered: int = Field(
        default=3000, ge=1, description="the same outside of the timed windows, without caches"
    )
    slice_max: int = Field(
        default=2000, ge=1, description="most cycles between two checks of the clock"
    )
    park: int = Field(
        default=3000, ge=0, description="most cycles that an unchanged spin loop is skipped"
    )
    grace: int = Field(
        default=80,
        ge=0,
        description="mean of the random times, in cycles, for which a core keeps a line that it "
        "just got",
    )
    graces: int = Field(
        default=2, ge=0, description="how many times in a row a core may keep a line"
    )
    boot_slowdown: int = Field(
        default=20, ge=1, description="factor by which the guest's time is slower during its boot"
    )
    coherence: int = Field(default=1, ge=0, le=1, description="0: transfers cost nothing")
    queueing: int = Field(default=1, ge=0, le=1, description="0: a line is never occupied")
    skew: int = Field(default=2000, ge=0, description="cycles over which the starts are spread")
    hot_lines: int = Field(default=256, ge=1, description="lines that are listed per window")
    words: int = Field(
        default=0,
        ge=0,
        le=1,
        description="1: count accesses that take a word of four bytes from another core",
    )


def load(name: str) -> SimulatedMachine:
    """A machine by name or by the path of its TOML file; FscaleError with similar names."""
    if name.endswith(".toml"):
        return load_toml(Path(name), SimulatedMachine)
    path = MACHINES / f"{name}.toml"
    if not path.exists():
        path = own_machines() / path.name
    if not path.exists():
        raise FscaleError(f"unknown machine {name}{suggest(name, known())}")
    return load_toml(path, SimulatedMachine)


def parameters(
    machine: SimulatedMachine, method: Method, vcpus: int, memory_mib: int
) -> dict[str, int]:
    """All parameters of the plugin by their names; docs/design/simulator-model.md lists them."""
    return {
        "vcpus": vcpus,
        "memory_mib": memory_mib,
        "clock_mhz": machine.clock_mhz,
        "cpi_milli": round(1000 * machine.cpi),
        "cores_per_socket": machine.cores_per_socket,
        **{
            name if name in ("occupy_shared", "overlap") else f"lat_{name}": cycles
            for name, cycles in machine.latency.model_dump().items()
        },
        **{f"cost_{name}": cycles for name, cycles in machine.cost.model_dump().items()},
        "string_bytes": machine.string_bytes,
        "migratory": int(machine.migratory),
        **method.model_dump(),
    }
