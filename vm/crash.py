# SPDX-License-Identifier: GPL-2.0-only
"""Crash testing from the host's side: which commands, and what the guest found."""

import json
from pathlib import Path

from fscale.model.config import FileSystem
from fscale.model.errors import FscaleError
from vm import crashload, untrusted
from vm.crashtest import PLANTS, Result, Spec

# mkfs.xfs makes nothing smaller than 300 MiB.
SIZE = 320 << 20


def specify(
    filesystem: FileSystem,
    *,
    workload: str,
    points: int,
    workers: int,
    seed: int,
    fsck: list[str] | None,
    mount_options: list[str] | None,
    plant: str | None,
    subsets: int = 0,
    remounts: list[str] | None = None,
) -> Spec:
    """The test of a file system as configured; FscaleError when something lacks."""
    if filesystem.nodev:
        raise FscaleError(f"{filesystem.title} keeps nothing over a power cut; nothing to test")
    if workload not in crashload.WORKLOADS:
        raise FscaleError(
            f"no crash workload {workload}; there are {', '.join(crashload.WORKLOADS)}"
        )
    if plant not in (None, *PLANTS):
        raise FscaleError(f"no fault {plant} to plant; there are {', '.join(PLANTS)}")
    check = fsck or filesystem.check or filesystem.fsck
    if not check:
        raise FscaleError(
            f"how is {filesystem.title} checked? Give --fsck 'COMMAND {{device}}', or fsck in "
            "its TOML file, one that changes nothing and fails when it finds damage"
        )
    return Spec(
        filesystem=filesystem.kernel,
        mkfs=filesystem.mkfs,
        mount_options=mount_options or filesystem.mount_options,
        fsck=check,
        workload=workload,
        workers=workers,
        # An operation is two fsyncs: about two points, more than one even where workers share a
        # flush.
        operations=points // workers + 1,
        points=points,
        seed=seed,
        size=SIZE,
        plant=plant,
        subsets=subsets,
        remounts=remounts or [],
    )


def load(path: Path) -> Result:
    """What the guest found; FscaleError when it found nothing."""
    try:
        return Result(**json.loads(untrusted.read(path)))
    except FileNotFoundError:
        raise FscaleError(
            "the crash test in the guest failed before it found anything; see above"
        ) from None
    except (TypeError, ValueError) as error:
        raise FscaleError(f"{path} is no result of a crash test: {error}") from None


def verdict(name: str, spec: Spec, result: Result) -> str:
    """One paragraph that says what was found of the file system of that name."""
    total = f"{result.tested} crash points ({result.flushes} flushes, {result.entries} log entries)"
    if spec.subsets:
        total += f" and {result.subsets} with a part of the writes under way"
    if result.first is None:
        return f"{name}: {total}: all recover, pass fsck and keep what was fsync'd"
    return (
        f"{name}: {result.failing} of {total} FAIL. The first: after log entry "
        f"{result.first['entry']}, {result.first['what']} fails:\n{result.first['text']}"
    )
