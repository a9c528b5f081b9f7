# SPDX-License-Identifier: GPL-2.0-only
"""What all cells of a run share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fscale.model.config import FileSystem, Medium
from fscale.model.load import Load, LoadSettings
from fscale.model.results import CpuControl, Machine, Mounted
from fscale.model.variant import Variant
from fscale.runner.cell.measure import Limits
from fscale.runner.profilers.context import CellProfiler
from fscale.runner.storage.disk import CheckedDevice


@dataclass
class Setup:
    """What is measured, and how: the same for all cells of a run."""

    machine: Machine
    variants: Mapping[str, Variant]
    filesystems: Mapping[str, FileSystem | None]  # None: the file system of the directory
    media: Mapping[str, Medium]
    loads: Mapping[str, Load]
    settings: LoadSettings
    limits: Limits
    seed: int
    devices: Mapping[str, CheckedDevice] = field(
        default_factory=dict
    )  # medium -> block device of the user
    beside: Mapping[str, Sequence[CheckedDevice]] = field(
        default_factory=dict
    )  # file system -> devices
    existing: Mounted | None = None  # the mount below the directory, if that is the medium
    missing: Mapping[str, str] = field(
        default_factory=dict
    )  # file system, medium or workload -> why it is missing
    profilers: Mapping[str, CellProfiler] = field(default_factory=dict)
    filled: float = 0.0
    """largest part of a medium that files of aged file systems take"""
    fewest: int = 1
    """cores of the cell with the fewest cores"""
    measured_by: CpuControl | None = None
    """how the existing cells of a resumed run were restricted to their CPUs"""
