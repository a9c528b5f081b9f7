# SPDX-License-Identifier: GPL-2.0-only
"""Completions of options for the shell."""

from collections.abc import Iterable
from typing import get_args

from fscale.apps import adapter
from fscale.model import catalogue, paths
from fscale.model.config import Suite
from fscale.model.topology import Preset
from fscale.runner import microbench


def _completed(incomplete: str, names: Iterable[str]) -> list[str]:
    before, comma, begun = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in names if name.startswith(begun)]


def complete_workloads(incomplete: str) -> list[str]:
    """Return completions for the last of several workloads, for the shell."""
    loads = [*microbench.find(paths.BENCH), *adapter.loads()]
    return _completed(incomplete, [load.descriptor.id for load in loads])


def complete_filesystems(incomplete: str) -> list[str]:
    """Return completions for the last of several file systems."""
    return _completed(incomplete, catalogue.names(paths.FILESYSTEMS))


def complete_media(incomplete: str) -> list[str]:
    """Return completions for the last of several media."""
    return _completed(incomplete, catalogue.names(paths.MEDIA))


def complete_suites(incomplete: str) -> list[str]:
    """Return the suites whose names begin with a text."""
    return [name for name in catalogue.names(paths.SUITES) if name.startswith(incomplete)]


def complete_papers(incomplete: str) -> list[str]:
    """Return the papers whose names begin with a text."""
    return [name for name in catalogue.names(paths.PAPERS) if name.startswith(incomplete)]


def complete_cores(incomplete: str) -> list[str]:
    """Return the presets of core counts whose names begin with a text."""
    return [name for name in get_args(Preset) if name.startswith(incomplete)]


def complete_settings(incomplete: str) -> list[str]:
    """Return the keys of a suite that begin with a text, each with the sign before its value."""
    return [f"{key}=" for key in Suite.model_fields if key.startswith(incomplete)]
