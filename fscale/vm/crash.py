# SPDX-License-Identifier: GPL-2.0-only
"""The host's side of crash testing: specifies the test, and reads the result of the guest."""

import json
from pathlib import Path

from fscale.model.config import FileSystem
from fscale.model.errors import FscaleError
from fscale.vm import crashload, untrusted
from fscale.vm.crashtest import PLANTS, Result, Spec

# mkfs.xfs refuses devices smaller than 300 MiB.
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
    """The specification of a crash test; FscaleError if something is missing."""
    if filesystem.nodev:
        raise FscaleError(
            f"{filesystem.title} keeps nothing after a power cut, so there is nothing to test"
        )
    if workload not in crashload.WORKLOADS:
        raise FscaleError(
            f"unknown crash workload {workload}; choose one of {', '.join(crashload.WORKLOADS)}"
        )
    if plant not in (None, *PLANTS):
        raise FscaleError(f"unknown fault {plant} to plant; choose one of {', '.join(PLANTS)}")
    check = fsck or filesystem.check or filesystem.fsck
    if not check:
        raise FscaleError(
            f"no fsck command for {filesystem.title} is known; give --fsck 'COMMAND {{device}}', "
            "or fsck in its TOML file; the command must change nothing and fail if it finds damage"
        )
    return Spec(
        filesystem=filesystem.kernel,
        mkfs=filesystem.mkfs,
        mount_options=mount_options or filesystem.mount_options,
        fsck=check,
        workload=workload,
        workers=workers,
        # An operation has two fsyncs, so about two points, and more than one even if workers share
        # a flush.
        operations=points // workers + 1,
        points=points,
        seed=seed,
        size=SIZE,
        plant=plant,
        subsets=subsets,
        remounts=remounts or [],
    )


def load(path: Path) -> Result:
    """The result of the guest; FscaleError if there is none."""
    try:
        return Result(**json.loads(untrusted.read(path)))
    except FileNotFoundError:
        raise FscaleError(
            "the crash test failed in the guest before it had a result; see its output above"
        ) from None
    except (TypeError, ValueError) as error:
        raise FscaleError(f"{path} is not the result of a crash test: {error}") from None


def verdict(name: str, spec: Spec, result: Result) -> str:
    """A paragraph with the result for the file system of that name."""
    total = f"{result.tested} crash points ({result.flushes} flushes, {result.entries} log entries)"
    if spec.subsets:
        total += f" and {result.subsets} with a part of the writes under way"
    if result.first is None:
        return f"{name}: {total}: all recover, pass fsck and keep all fsync'd data"
    return (
        f"{name}: {result.failing} of {total} FAIL. The first: after log entry "
        f"{result.first['entry']}, {result.first['what']} fails:\n{result.first['text']}"
    )
