# SPDX-License-Identifier: GPL-2.0-only
"""Reads the JSON that fio prints: of fio 3, and of fio 2, which has microseconds and fewer keys."""

import json
import re

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fscale.model.catalogue import explain


class _Fio(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False, coerce_numbers_to_str=True, frozen=True)


class Latency(_Fio):
    """Latencies of one direction: of fio 3 in nanoseconds, of fio 2 in microseconds."""

    max: float = Field(default=0, ge=0)
    percentile: dict[str, float] = {}
    bins: dict[int, int] = Field(default={}, description="with json+: latency -> operations")


class Direction(_Fio):
    """Reads, writes, discards, or their sum."""

    iops: float = Field(ge=0)
    runtime: int = Field(ge=0, description="milliseconds")
    total_ios: int | None = Field(default=None, ge=0)
    bw: float = Field(ge=0, description="KiB per second")
    io_bytes: int = Field(default=0, ge=0, description="of fio 2 in KiB")
    clat_ns: Latency | None = None
    clat: Latency | None = Field(default=None, description="fio 2: in microseconds")

    @property
    def operations(self) -> int:
        """The number of operations; old versions tell their rate only."""
        return round(self.iops * self.runtime / 1000) if self.total_ios is None else self.total_ios

    @property
    def latency(self) -> tuple[Latency, int] | None:
        """The completion latencies and the nanoseconds of their unit; None if not measured."""
        if self.clat_ns:
            return self.clat_ns, 1
        return (self.clat, 1000) if self.clat else None


class Job(_Fio):
    """A job, or with group_reporting the sum of a group."""

    name: str = Field(alias="jobname")
    group: int = Field(default=0, alias="groupid")
    elapsed: int | None = Field(default=None, ge=0, description="seconds since fio began")
    error: int = 0
    total_err: int = 0
    first_error: int = 0
    options: dict[str, str] = Field(default={}, alias="job options")
    read: Direction | None = None
    write: Direction | None = None
    trim: Direction | None = None
    mixed: Direction | None = Field(default=None, description="with unified_rw_reporting")
    usr_cpu: float | None = Field(default=None, ge=0, description="percent of job_runtime")
    sys_cpu: float | None = Field(default=None, ge=0, description="percent of job_runtime")
    job_runtime: int | None = Field(default=None, ge=0, description="ms, summed over its processes")

    @model_validator(mode="after")
    def _has_figures(self) -> "Job":
        if not self.directions:
            raise ValueError(f"job {self.name} has neither read, write, trim nor mixed")
        return self

    @property
    def directions(self) -> dict[str, Direction]:
        """The figures by direction; their sum, `mixed`, only where fio gives no directions."""
        apart = {"read": self.read, "write": self.write, "trim": self.trim}
        known = {name: direction for name, direction in apart.items() if direction}
        return known or ({"mixed": self.mixed} if self.mixed else {})

    @property
    def operations(self) -> int:
        """The operations of all directions."""
        return sum(direction.operations for direction in self.directions.values())

    @property
    def milliseconds(self) -> int:
        """The time of the direction that took longest."""
        return max(direction.runtime for direction in self.directions.values())


class Output(_Fio):
    """What one run of fio printed, or a report of --status-interval in between."""

    version: str = Field(default="", alias="fio version")
    timestamp: float | None = Field(default=None, ge=0, description="Unix time when it was printed")
    timestamp_ms: float | None = Field(default=None, ge=0, description="the same in milliseconds")
    options: dict[str, str] = Field(default={}, alias="global options")
    jobs: list[Job] = Field(min_length=1)

    @property
    def printed(self) -> float | None:
        """Unix time at which it was printed; None if it is not told."""
        return self.timestamp if self.timestamp_ms is None else self.timestamp_ms / 1000

    @property
    def elapsed(self) -> int | None:
        """Seconds since fio began, rounded up; None if it is not told."""
        return self.jobs[0].elapsed


def parse(text: str) -> list[Output]:
    """Read all objects of a text; fio may print warnings before, between and after them.

    Raises:
        ValueError: an object is not complete or has another form; the text says where.
    """
    decoder, end, outputs = json.JSONDecoder(), 0, []
    for begin in re.finditer(r"^\{", text, re.MULTILINE):
        if begin.start() < end:
            continue
        line = text.count("\n", 0, begin.start()) + 1
        try:
            printed, end = decoder.raw_decode(text, begin.start())
            outputs.append(Output.model_validate(printed))
        except ValidationError as error:
            first = explain(error).partition("; ")[0]
            raise ValueError(f"the object of line {line} is not of fio: {first}") from None
        except json.JSONDecodeError as error:
            raise ValueError(
                f"the JSON object of line {line} is damaged or truncated at line {error.lineno} "
                f"({error.msg})"
            ) from None
        except RecursionError:
            raise ValueError(f"the object of line {line} is nested too deeply") from None
    return outputs
