# SPDX-License-Identifier: GPL-2.0-only
"""The tests themselves, in the guest: `python3 -m tests.lanefs.inside SPEC.json RESULT.json`."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import tests.lanefs.functions  # noqa: F401 - registers the tests
from fscale.model import catalogue
from fscale.model.errors import FscaleError
from tests.lanefs import images, many, random_errors, recoveries, recovery_cuts
from tests.lanefs.device import (
    MOUNT,
    Fault,
    Volume,
    available,
    command,
    lockdep_off,
    make_ram_disks,
    volume,
    warned,
)
from tests.lanefs.functions import harness

REFERENCE = Path("/run/reference")
# What the process that takes all memory leaves, and how much it takes at a time; bytes.
LEFT, STEP = 64 << 20, 8 << 20


@dataclass(frozen=True)
class Spec:
    """What to test; the host writes it as JSON."""

    filesystem: str
    parts: list[str]
    tests: list[str] = field(default_factory=list)
    """function tests; empty: all"""
    portion: float = 1.0
    """of the seconds for which function tests put load on"""
    mkfs_options: list[str] = field(default_factory=list)
    mount_options: list[str] = field(default_factory=list)
    mib: int = 256
    ops: int = 20_000
    """of each process"""
    processes: int = 4
    rounds: int = 2
    seed: int = 1
    images: int = 200
    names: int = 20_000
    """in one directory"""
    points: int = 20
    """power cuts of parts recoveries and recovery_cuts, rounds of part errors"""


@dataclass
class Finding:
    """What a part found; the host reads a list of them as JSON."""

    part: str
    status: str
    text: str
    seconds: float


@contextmanager
def fresh(spec: Spec, mib: int) -> Iterator[Volume]:
    """A volume with a new file system."""
    with volume(catalogue.load_filesystem(spec.filesystem), mib, spec.mount_options) as made:
        made.make(*spec.mkfs_options)
        yield made


def functions(spec: Spec) -> str:
    """The function tests, one mount after the other as they need it, then fsck."""
    harness.shorten(spec.portion)
    with fresh(spec, spec.mib) as made, made.mounted():
        options = [*made.fs.mount_options, *spec.mount_options]
        place = harness.Place(MOUNT, made.device, MOUNT, made.fs.kernel, options)
        verdicts = harness.all_of(spec.tests, place)
        failed = [f"{v.name}: {v.text}" for v in verdicts if v.status == "failed"]
        if failed:
            raise Fault("\n".join(failed))
    skipped = [f"{v.name} ({v.text})" for v in verdicts if v.status == "skipped"]
    passed = [v for v in verdicts if v.status == "ok"]
    said = "".join(f"; {v.name}: {', '.join(v.text.splitlines())}" for v in passed if v.text)
    return f"{len(passed)} pass; skipped: {', '.join(skipped) or 'none'}{said}"


@contextmanager
def reference() -> Iterator[None]:
    """An empty tmpfs."""
    REFERENCE.mkdir(exist_ok=True)
    command(["mount", "-t", "tmpfs", "-o", "noatime,size=80%,nr_inodes=0", "ref", str(REFERENCE)])
    try:
        yield
    finally:
        command(["umount", str(REFERENCE)])


def _model(spec: Spec, made: Volume, *arguments: str) -> str:
    argv = ["model", f"--processes={spec.processes}", *arguments, str(MOUNT), str(REFERENCE)]
    print(" ".join(argv), flush=True)
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False)
    print(done.stdout + done.stderr, flush=True)
    if done.returncode != 0:
        raise Fault(f"{' '.join(argv)} on {made.device}:\n{done.stdout}{done.stderr}")
    return done.stdout.strip().splitlines()[-1]


def _rounds(spec: Spec, mib: int, *arguments: str) -> str:
    """Rounds of random operations on the same trees; unmount, fsck and a comparison after each."""
    with fresh(spec, mib) as made, reference():
        for number in range(spec.rounds):
            with made.mounted():
                seed = f"--seed={spec.seed + number}"
                _model(spec, made, f"--ops={spec.ops}", seed, "--drop-caches", *arguments)
            with made.mounted():
                _model(spec, made, "--verify", *arguments)
    total = spec.rounds * spec.ops * spec.processes
    return f"no difference in {total} operations of {spec.processes} processes"


def model(spec: Spec) -> str:
    """Random operations against a model, on a device with space."""
    return _rounds(spec, spec.mib)


@contextmanager
def scarce_memory() -> Iterator[None]:
    """A process takes all memory but LEFT bytes, and follows what others take and give back."""
    pid = os.fork()
    if pid == 0:
        Path("/proc/self/oom_score_adj").write_text("1000")
        held: list[bytearray] = []
        while True:
            left = available()
            if left > LEFT + STEP:
                held.append(bytearray(b"x") * STEP)
            elif left < LEFT and held:
                held.pop()
            else:
                time.sleep(0.05)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def pressure(spec: Spec) -> str:
    """Random operations while little memory is left, so that caches are reclaimed all the time."""
    with scarce_memory():
        return _rounds(spec, spec.mib)


def full(spec: Spec) -> str:
    """The same on a device that is full most of the time: a file takes what space there is."""
    with fresh(spec, spec.mib) as made, reference():
        for number in range(spec.rounds):
            with made.mounted():
                _occupy(MOUNT / "occupied", leave=2 << 20)
                seed = f"--seed={spec.seed + number}"
                _model(spec, made, f"--ops={spec.ops}", seed, "--drop-caches", "--full")
                (MOUNT / "occupied").unlink()
            with made.mounted():
                _model(spec, made, "--verify", "--full")
    total = spec.rounds * spec.ops * spec.processes
    return f"no difference in {total} operations of {spec.processes} processes"


def _occupy(path: Path, leave: int) -> None:
    """Fill the file system up to `leave` bytes."""
    found = os.statvfs(path.parent)
    with path.open("wb") as file:
        for _ in range(max(found.f_bavail * found.f_frsize - leave, 0) >> 20):
            try:
                file.write(bytes(1 << 20))
            except OSError:
                break


def bad_images(spec: Spec) -> str:
    """Corrupted images: an error or a working mount, never an oops or a hang."""
    with fresh(spec, images.MIB) as made:
        return images.run(made, spec.images, spec.seed)


def names(spec: Spec) -> str:
    """A directory with many names, which must not get slow."""
    with fresh(spec, spec.mib) as made, made.mounted():
        return many.run(MOUNT / "names", spec.names)


def recover(spec: Spec) -> str:
    """Crashed images, recovered in every way."""
    fs = catalogue.load_filesystem(spec.filesystem)
    return recoveries.run(Volume(fs, "", spec.mount_options), spec.points, spec.seed)


def cut_recoveries(spec: Spec) -> str:
    """Crashed images whose recovery is cut by a crash, too."""
    fs = catalogue.load_filesystem(spec.filesystem)
    return recovery_cuts.run(Volume(fs, "", spec.mount_options), spec.points, spec.seed)


def errors(spec: Spec) -> str:
    """Random operations while requests fail at random, and recovery from each round."""
    argv = ["model", f"--processes={spec.processes}", f"--ops={spec.ops}"]
    with fresh(spec, spec.mib) as made:
        return random_errors.run(made, spec.mkfs_options, spec.points, argv)


PARTS: dict[str, Callable[[Spec], str]] = {
    "functions": functions,
    "model": model,
    "pressure": pressure,
    "full": full,
    "images": bad_images,
    "names": names,
    "recoveries": recover,
    "recovery_cuts": cut_recoveries,
    "errors": errors,
}


def main(spec_path: Path, result_path: Path) -> bool:
    """Run the parts of the specification; whether all are well."""
    spec = Spec(**json.loads(spec_path.read_text()))
    make_ram_disks(max(spec.mib, images.MIB))
    findings = []
    for part in spec.parts:
        print(f"== {part}", flush=True)
        started = time.monotonic()
        try:
            status, text = "ok", PARTS[part](spec)
            if warned():
                status, text = "failed", "the kernel gave a warning; see the console log"
            elif lockdep_off():
                status, text = "failed", "lockdep is off; see the console log"
        except (Fault, FscaleError, harness.Failed) as error:
            status, text = "failed", str(error)
        finding = Finding(part, status, text, round(time.monotonic() - started, 1))
        findings.append(finding)
        result_path.write_text(json.dumps([asdict(f) for f in findings], indent=1) + "\n")
        print(f"== {part}: {status} ({finding.seconds} s): {text}", flush=True)
    return all(finding.status == "ok" for finding in findings)


if __name__ == "__main__":
    sys.exit(not main(Path(sys.argv[1]), Path(sys.argv[2])))
