# SPDX-License-Identifier: GPL-2.0-only
"""The host's side of crash testing: specifies the test, and reads the results of guests."""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from fscale.farm.answer import CRASH_FILE
from fscale.model.catalogue import explain
from fscale.model.config import FileSystem
from fscale.model.errors import FscaleError
from fscale.vm import crashload, untrusted
from fscale.vm.crashtest import PLANTS, Result, Spec
from fscale.vm.place import Job
from fscale.vm.tasks import Elsewhere, GuestJob

# mkfs.xfs refuses devices smaller than 300 MiB.
SIZE = 320 << 20
# Each guest boots and records the workload before it tests its points.
POINTS_PER_BOOT = 50
_SPEC = "crash-spec.json"


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
    if filesystem.partitions != 1:
        raise FscaleError("a crash test has one disk without partitions; leave them out")
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


def job(spec: Spec, directory: Path, output: Path) -> Job:
    """The job of a guest that tests a file system; its specification is written to a directory."""
    written = directory / _SPEC
    written.parent.mkdir(parents=True, exist_ok=True)
    written.write_text(json.dumps(asdict(spec), indent=1) + "\n")
    argv = ["python3", "-m", "fscale.vm.crashtest", f"/control/{_SPEC}", f"/results/{CRASH_FILE}"]
    return Job(argv, output, files={_SPEC: written})


def run_elsewhere(boot: GuestJob, spec: Spec, directory: Path, elsewhere: Elsewhere) -> Result:
    """Test on other machines, in several guests; each records the workload and tests some points.

    `boot` is the guest that would test all of them here; its output directory gets one directory
    for each guest. FscaleError if a guest has no result.
    """
    parts = math.ceil(spec.points / POINTS_PER_BOOT)
    boots = []
    for part in range(parts):
        name = f"part{part + 1}"
        part_job = job(replace(spec, part=part, parts=parts), directory / name, boot.output / name)
        files = {**boot.job.files, **part_job.files}
        boots.append(GuestJob(boot.guest, replace(boot.job, output=part_job.output, files=files)))
    elsewhere.run(boots)
    result = merge(load(one.output, one.output.with_suffix(".log").read_text()) for one in boots)
    (boot.output / CRASH_FILE).write_text(json.dumps(asdict(result), indent=1) + "\n")
    return result


def merge(results: Iterable[Result]) -> Result:
    """The result of guests that have tested parts of the points; each has a log of its own."""
    whole = Result()
    for number, one in enumerate(results, 1):
        for name in ("entries", "flushes", "possible", "tested", "subsets", "failing"):
            setattr(whole, name, getattr(whole, name) + getattr(one, name))
        for name, seconds in one.seconds.items():
            whole.seconds[name] = whole.seconds.get(name, 0) + seconds
        if one.first and not whole.first:
            whole.first = {**one.first, "what": f"{one.first['what']} in guest {number}"}
    return whole


def load(directory: Path, advice: str) -> Result:
    """The result of a guest; FscaleError with its output, or where that is, if there is none."""
    path = directory / CRASH_FILE
    try:
        return TypeAdapter(Result).validate_json(untrusted.read(path))
    except FileNotFoundError:
        raise FscaleError(
            f"the crash test failed in the guest before it had a result: {advice}"
        ) from None
    except ValidationError as error:
        raise FscaleError(f"{path} is not the result of a crash test: {explain(error)}") from None


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
