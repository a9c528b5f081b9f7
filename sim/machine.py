# SPDX-License-Identifier: GPL-2.0-only
"""The machine that is simulated, and how: every number that the plugin gets.

`configs/machines/<name>.toml` describes a machine; what is no property of a machine but of the
way of simulating has its defaults here. Cycles are those of the simulated core.
"""

from pathlib import Path

from pydantic import Field, model_validator

from fscale.model import paths
from fscale.model.bench import Plain, Strict
from fscale.model.catalogue import load_toml, names, suggest
from fscale.model.errors import FscaleError

MACHINES = paths.CONFIGS / "machines"
MOST_CPUS = 255  # QEMU's q35 without an interrupt remapper


class Latencies(Strict):
    """The cost of a transfer of a cache line, in cycles; a hit costs nothing more."""

    clean: int = Field(ge=0, description="a read of a line that others of the socket share: LLC")
    clean_remote: int = Field(ge=0, description="a read of a line that only other sockets share")
    dirty: int = Field(ge=0, description="a line that a core of the same socket has modified")
    dirty_remote: int = Field(ge=0, description="a line that a core of another socket has modified")
    upgrade: int = Field(ge=0, description="a write to a line that others of the socket share too")
    upgrade_remote: int = Field(ge=0, description="a write to a line that other sockets share too")
    memory: int = Field(ge=0, description="a line that no core has")
    occupy_shared: int = Field(
        ge=0,
        description="how long a shared read keeps the line from others; a dirty transfer and an "
        "upgrade keep it for as long as they take",
    )


class Costs(Strict):
    """The cost of some instructions beside `cpi`, in cycles."""

    lock: int = Field(ge=0, description="an instruction with a LOCK prefix, or xchg with memory")
    pause: int = Field(ge=0, description="PAUSE, the instruction of spin loops")


class Machine(Strict):
    """`configs/machines/<name>.toml`: sockets of equal cores, one hardware thread each."""

    title: Plain
    source: Plain = Field(description="where the numbers come from, and what they are worth")
    sockets: int = Field(ge=1)
    cores_per_socket: int = Field(ge=1)
    clock_mhz: int = Field(ge=1, description="of every core, always")
    cpi: float = Field(gt=0, description="cycles an instruction, where all accesses hit")
    string_bytes: int = Field(ge=1, description="bytes per cycle that rep movs and rep stos move")
    latency: Latencies
    cost: Costs

    @model_validator(mode="after")
    def _fits(self) -> "Machine":
        if self.cores > MOST_CPUS:
            raise ValueError(f"has {self.cores} cores; {MOST_CPUS} can be emulated")
        return self

    @property
    def cores(self) -> int:
        """All of them."""
        return self.sockets * self.cores_per_socket


class Method(Strict):
    """How it is simulated; docs/design/simulator-model.md says what each key is for."""

    quantum: int = Field(
        default=200, ge=1, description="cycles that a core may be ahead of the slowest one"
    )
    quantum_ordered: int = Field(
        default=3000, ge=1, description="the same outside of the windows, without caches"
    )
    slice_max: int = Field(default=2000, ge=1, description="cycles between two looks at the clock")
    park: int = Field(
        default=3000, ge=0, description="most cycles that an unchanged spin loop is skipped"
    )
    grace: int = Field(
        default=60, ge=0, description="cycles that a core goes on with a line that it just got"
    )
    graces: int = Field(default=2, ge=0, description="how often in a row")
    boot_slowdown: int = Field(
        default=20, ge=1, description="how much slower the guest's time is while it boots"
    )
    coherence: int = Field(default=1, ge=0, le=1, description="0: transfers cost nothing")
    queueing: int = Field(default=1, ge=0, le=1, description="0: a line is never occupied")
    skew: int = Field(default=2000, ge=0, description="cycles over which the starts are spread")
    hot_lines: int = Field(default=256, ge=1, description="lines that are listed a window")


def load(name: str) -> Machine:
    """A machine by name or by the path of its TOML file; FscaleError with near names."""
    if name.endswith(".toml"):
        return load_toml(Path(name), Machine)
    path = MACHINES / f"{name}.toml"
    if not path.exists():
        raise FscaleError(f"unknown machine {name}{suggest(name, names(MACHINES))}")
    return load_toml(path, Machine)


def parameters(machine: Machine, method: Method, vcpus: int, memory_mib: int) -> dict[str, int]:
    """Everything that the plugin is told, under its names (docs/design/simulator-model.md)."""
    return {
        "vcpus": vcpus,
        "memory_mib": memory_mib,
        "clock_mhz": machine.clock_mhz,
        "cpi_milli": round(1000 * machine.cpi),
        "cores_per_socket": machine.cores_per_socket,
        **{
            name if name.startswith("occupy") else f"lat_{name}": cycles
            for name, cycles in machine.latency.model_dump().items()
        },
        **{f"cost_{name}": cycles for name, cycles in machine.cost.model_dump().items()},
        "string_bytes": machine.string_bytes,
        **method.model_dump(),
    }
