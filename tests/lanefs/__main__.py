# SPDX-License-Identifier: GPL-2.0-only
"""Runs the tests of a file system in a guest; this is the host's side."""

import json
import subprocess
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fscale.commands.options.guest import GuestOptions, guest_options
from fscale.model.errors import Exit, FscaleError
from fscale.model.paths import ROOT
from fscale.vm import guest as guests
from fscale.vm import untrusted
from fscale.vm.boot import start
from fscale.vm.place import Job
from tests.lanefs.inside import PARTS, Spec
from tests.lanefs.torture.drive import KERNEL_REPORT

PROGRAMS = [ROOT / "build" / "tests-lanefs" / name for name in ("model", "visit")]
app = typer.Typer(add_completion=False)


@app.command()
@guest_options("deterministic", smp=4, memory="3G", accel="tcg")
def run(
    *,
    fs: Annotated[
        str, typer.Option(help="File system to test (`fscale list filesystems`).")
    ] = "lanefs",
    part: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Part to run: {', '.join(PARTS)}; repeatable. Default: all; with --test functions"
        ),
    ] = None,
    test: Annotated[
        list[str] | None, typer.Option(help="Function test to run; repeatable. Default: all.")
    ] = None,
    portion: Annotated[
        float,
        typer.Option(
            min=0.01, max=1, help="Scale the seconds of load in the function tests by this."
        ),
    ] = 1,
    mkfs: Annotated[str, typer.Option(help="Options to add to mkfs, in one argument.")] = "",
    options: Annotated[str, typer.Option("-o", help="Mount options to add.")] = "",
    mib: Annotated[int, typer.Option(help="Size of the device in MiB.")] = 256,
    ops: Annotated[int, typer.Option(help="Random operations per process and round.")] = 20_000,
    processes: Annotated[int, typer.Option(help="Processes that run random operations.")] = 4,
    rounds: Annotated[int, typer.Option(help="Rounds of random operations.")] = 2,
    seed: Annotated[int, typer.Option(help="Random seed of operations and images.")] = 1,
    images: Annotated[int, typer.Option(help="Number of corrupted images.")] = 200,
    names: Annotated[int, typer.Option(help="Names in the directory of part names.")] = 20_000,
    points: Annotated[
        int, typer.Option(help="Power cuts in parts recoveries, recovery_cuts; rounds in errors.")
    ] = 20,
    output: Annotated[Path | None, typer.Option(help="Directory for findings and logs.")] = None,
    guest: GuestOptions,
) -> None:
    """Test a file system in a guest: functions, random operations, full disk, damage, recovery.

    Example: python -m tests.lanefs --kernel trixie --part functions --part model

    The parts are function tests, random operations against a model, a full disk, corrupted images,
    a directory of many names, crashed images that are recovered in every way, recoveries that
    are cut by a crash, and requests that fail at random. With --fs ext4 they show whether the tests
    themselves are right.

    Exit codes: 0: all parts passed. 1: a part failed; the console log has the details.
    """
    parts = part or (["functions"] if test else list(PARTS))
    if unknown := set(parts) - set(PARTS):
        raise FscaleError(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    spec = Spec(
        filesystem=fs,
        parts=parts,
        tests=test or [],
        portion=portion,
        mkfs_options=mkfs.split(),
        mount_options=options.split(",") if options else [],
        mib=mib,
        ops=ops,
        processes=processes,
        rounds=rounds,
        seed=seed,
        images=images,
        names=names,
        points=points,
    )
    subprocess.run(["make", "-s", "-C", str(ROOT / "tests" / "lanefs" / "model")], check=True)
    with tempfile.TemporaryDirectory() as scratch:
        results = (output or Path(scratch) / "results").resolve()
        results.mkdir(parents=True, exist_ok=True)
        written = Path(scratch) / "spec.json"
        written.write_text(json.dumps(asdict(spec), indent=1) + "\n")
        found = results / "found.json"
        untrusted.remove(found)
        argv = ["python3", "-m", "tests.lanefs.inside", "/control/spec.json", "/results/found.json"]
        files = {written.name: written, **{f"bin/{p.name}": p for p in PROGRAMS}}
        job = Job(argv=argv, output=results, files=files)
        outcome = start(job, guest, filesystems=[fs])
        if outcome is None:
            return
        try:
            findings = json.loads(untrusted.read(found))
        except FileNotFoundError:
            findings = []
    for finding in findings:
        line = f"{finding['part']}: {finding['status']} ({finding['seconds']} s): {finding['text']}"
        typer.echo(line)
    if outcome.end != "finished":
        raise guests.GuestError(outcome)
    if outcome.summary:
        Console(stderr=True).print(f"{KERNEL_REPORT}: {outcome.report}", markup=False)
    if outcome.returncode or outcome.summary or len(findings) < len(parts):
        raise typer.Exit(Exit.FAILED)


if __name__ == "__main__":
    try:
        app()
    except FscaleError as error:
        typer.echo(f"tests.lanefs: {error}", err=True)
        raise SystemExit(error.code) from None
