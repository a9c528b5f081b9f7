# SPDX-License-Identifier: GPL-2.0-only
"""Runs the tests of a file system in a guest, from the host's side."""

import json
import subprocess
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fscale.model.errors import Exit, FscaleError
from fscale.model.paths import ROOT
from tests.lanefs.inside import PARTS, Spec
from vm import guest as guests
from vm import untrusted
from vm.cli import start
from vm.options import GuestOptions, guest_options
from vm.place import Job

PROGRAMS = [ROOT / "build" / "tests-lanefs" / name for name in ("model", "visit")]
app = typer.Typer(add_completion=False)


@app.command()
@guest_options("deterministic", smp=4, memory="3G", accel="tcg")
def run(
    *,
    fs: Annotated[str, typer.Option(help="As in fscale list filesystems.")] = "lanefs",
    part: Annotated[
        list[str] | None, typer.Option(help=f"{', '.join(PARTS)}; repeat for more.")
    ] = None,
    test: Annotated[list[str] | None, typer.Option(help="Function tests; default: all.")] = None,
    portion: Annotated[
        float, typer.Option(min=0.01, max=1, help="Of the seconds for which they put load on.")
    ] = 1,
    mkfs: Annotated[str, typer.Option(help="More options of mkfs, in one text.")] = "",
    options: Annotated[str, typer.Option("-o", help="More mount options.")] = "",
    mib: Annotated[int, typer.Option(help="MiB of the device.")] = 256,
    ops: Annotated[int, typer.Option(help="Random operations of each process and round.")] = 20_000,
    processes: Annotated[int, typer.Option(help="Of the random operations.")] = 4,
    rounds: Annotated[int, typer.Option(help="Of random operations.")] = 2,
    seed: Annotated[int, typer.Option(help="Of random operations and corrupted images.")] = 1,
    images: Annotated[int, typer.Option(help="Corrupted images.")] = 200,
    names: Annotated[int, typer.Option(help="Of one directory, in part names.")] = 20_000,
    points: Annotated[int, typer.Option(help="Power cuts, in part recoveries.")] = 20,
    output: Annotated[Path | None, typer.Option(help="Keep what was found.")] = None,
    guest: GuestOptions,
) -> None:
    """Function tests, random operations against a model, a full disk, corrupted images, many names,
    crashed images recovered in every way.

    Exit code 1 when a part fails, with what failed; the console log says more.

    Examples:

        python -m tests.lanefs --kernel trixie --part functions --part model

        python -m tests.lanefs --fs ext4 --part full --ops 5000    (are the tests right?)
    """
    parts = part or list(PARTS)
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
        Console(stderr=True).print(f"the kernel complained: {outcome.report}", markup=False)
    if outcome.returncode or outcome.summary or len(findings) < len(parts):
        raise typer.Exit(Exit.FAILED)


if __name__ == "__main__":
    try:
        app()
    except FscaleError as error:
        typer.echo(f"tests.lanefs: {error}", err=True)
        raise SystemExit(error.code) from None
