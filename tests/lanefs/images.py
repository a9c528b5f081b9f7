# SPDX-License-Identifier: GPL-2.0-only
"""Corrupted images: fields set to wrong values, checksums mended so that they get past them.

Two images are made, one unmounted in order and one as after a power cut, so that recovery reads a
corrupted journal as well. Each case changes some words in a copy-on-write snapshot of one of them,
mounts it, walks through all that is there, changes things, unmounts, and runs fsck on it. Errors
are right answers. Wrong are a crash, a warning of the kernel, a hang, a mount that stays, an fsck
that finds nothing in what the kernel refuses, and a repair that is none.
"""

import os
import random
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fscale.vm.crashtest import copy, map_device
from tests.lanefs import blocks
from tests.lanefs.blocks import BLOCK
from tests.lanefs.device import MOUNT, RAM, Fault, Volume, warned

MIB = 64
FILES = 160
LIMIT = 90.0
MISSED = "refused by the kernel, though clean for fsck"
_WIDTHS = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}


@dataclass(frozen=True)
class Image:
    """A base to corrupt: its device, and its blocks by kind."""

    name: str
    device: Path
    blocks: dict[str, list[int]]


def survey(name: str, device: Path, mib: int) -> Image:
    """Find the metadata blocks; of another file system, all that are not empty are one kind.

    Copies in a journal are a kind of their own: they are many, and only recovery reads them.
    """
    known: dict[str, list[int]] = {}
    other: list[int] = []
    with device.open("rb") as file:
        for number in range(mib << 20 >> 12):
            block = file.read(BLOCK)
            if kind := blocks.kind_of(block):
                if blocks.own_number(block) != number:
                    kind = "copy"
                known.setdefault(kind, []).append(number)
            elif block.count(0) != BLOCK:
                other.append(number)
    return Image(name, device, known if "super" in known else {"any": other})


def _name(n: int) -> str:
    """Long enough that few files make a tree of leaves: looking at each file takes time."""
    return f"file{n}-{'x' * (n * 7 % 230)}"


def attribute(path: Path, name: str, value: bytes) -> None:
    """Set an extended attribute, not following links."""
    os.setxattr(path, name, value, follow_symlinks=False)


def populate(root: Path) -> None:
    """Objects of every kind, trees of several levels."""
    for n in range(FILES):
        (root / _name(n)).touch()
    for n in range(12):
        (root / f"dir{n}" / "below").mkdir(parents=True)
        (root / f"dir{n}" / "below" / "f").write_bytes(b"x" * n * 3000)
        attribute(root / f"dir{n}" / "below" / "f", "user.value", b"x" * n * 100)
        attribute(root / f"dir{n}" / "below" / "f", "trusted.other", b"1")
        attribute(root / f"dir{n}", "user.of-a-directory", b"2" * n)
        os.link(root / f"dir{n}" / "below" / "f", root / f"link{n}")
        os.symlink("dir1/below/f", root / f"short{n}")
        os.symlink("x" * 4095, root / f"long{n}")
        attribute(root / f"long{n}", "trusted.of-a-link", b"3")
    for number in range(3):
        with (root / f"scattered{number}").open("wb") as file:
            for block in range(0, 1400, 2):
                os.pwrite(file.fileno(), b"data", block * BLOCK)
                if block % 200 == 0:
                    os.fsync(file.fileno())
    os.mkfifo(root / "fifo")
    os.mknod(root / "device", 0o020600, os.makedev(1, 3))


def change(root: Path) -> None:
    """What is in the journal after a cut: removals, renames, new blocks."""
    for n in range(0, FILES, 3):
        (root / _name(n)).unlink()
    for n in range(6):
        (root / f"dir{n}").rename(root / f"moved{n}")
        attribute(root / f"moved{n}" / "below" / "f", "user.new", b"4" * 900)
        os.removexattr(root / f"moved{n}", "user.of-a-directory")
    os.truncate(root / "scattered0", 100_000)
    (root / "scattered1").unlink()
    os.sync()


def corrupt(rng: random.Random, image: Image, device: Path) -> str:
    """Change one to three words of one or two blocks; what was done, for the report."""
    done = []
    with device.open("r+b", buffering=0) as file:
        for _ in range(rng.choice((1, 1, 2))):
            kind = rng.choice(sorted(image.blocks))
            number = rng.choice(image.blocks[kind])
            block = bytearray(os.pread(file.fileno(), BLOCK, number * BLOCK))
            for _ in range(rng.choice((1, 1, 2, 3))):
                done.append(f"{kind} {number}: {_damage(rng, block, image, file.fileno(), kind)}")
            if kind != "any" and rng.random() < 0.9:
                blocks.seal(block)
            else:
                done[-1] += ", checksum left"
            os.pwrite(file.fileno(), block, number * BLOCK)
        os.fsync(file.fileno())
    return "; ".join(done)


def _damage(rng: random.Random, block: bytearray, image: Image, fd: int, kind: str) -> str:
    if rng.random() < 0.04:
        source = rng.choice(image.blocks[kind])
        body = os.pread(fd, BLOCK, source * BLOCK)
        block[64:] = body[64:]
        return f"the body of block {source}"
    width = rng.choice((1, 2, 4, 4, 8, 8))
    used = [at for at in range(8, BLOCK, width) if any(block[at : at + width])]
    if used and rng.random() < 0.85:
        # Headers and counts do more harm than the twentieth name of a directory.
        at = rng.choice(used[: max(len(used) // 8, 12)] if rng.random() < 0.5 else used)
    else:
        at = rng.randrange(8 // width, BLOCK // width) * width
    (old,) = struct.unpack_from(_WIDTHS[width], block, at)
    top = (1 << 8 * width) - 1
    new = rng.choice(
        (
            *(
                0,
                1,
                top,
                top >> 1,
                (top >> 1) + 1,
                old + 1,
                old - 1,
                old ^ 1 << rng.randrange(8 * width),
            ),
            *(
                rng.randrange(top + 1),
                rng.randrange(MIB << 8),
                rng.randrange(4096),
                old << 1,
                old >> 1,
            ),
        )
    )
    struct.pack_into(_WIDTHS[width], block, at, new & top)
    return f"{width} bytes at {at:#x}: {old:#x} to {new & top:#x}"


def bounded(*argv: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command; Fault when it dies of a signal or does not end, with where it hangs."""
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        said, _ = child.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        stack = Path(f"/proc/{child.pid}/stack").read_text()
        child.kill()
        text = f"{' '.join(argv)} did not end within {LIMIT:.0f} s; it is in\n{stack}"
        raise Fault(text) from None
    if child.returncode < 0:
        raise Fault(f"{' '.join(argv)} died of signal {-child.returncode}: {said[-2000:]!r}")
    return subprocess.CompletedProcess(argv, child.returncode, said)


def exercise(made: Volume, device: str, seed: int) -> str:
    """Mount, look at everything, change things, unmount; "refused" or "mounted"."""
    options = ",".join([*made.fs.mount_options, *made.options])
    if bounded("mount", "-t", made.fs.kernel, "-o", options, device, str(MOUNT)).returncode != 0:
        return "refused"
    bounded("visit", str(MOUNT), str(seed & 0xFFFF))
    if (done := bounded("umount", str(MOUNT))).returncode != 0:
        raise Fault(f"umount fails: {done.stdout!r}")
    return "mounted"


def run(made: Volume, count: int, seed: int) -> str:
    """Try `count` corrupted images; what became of them. Fault with the first that went wrong."""
    made.mount()
    populate(MOUNT)
    made.unmount()
    made.check()
    made.mount()
    change(MOUNT)
    cut = RAM[1]
    copy(Path(made.device), cut)
    made.unmount()
    bases = [survey("clean", Path(made.device), MIB), survey("cut", cut, MIB)]
    for base in bases:
        held = ", ".join(f"{len(found)} {kind}" for kind, found in sorted(base.blocks.items()))
        print(f"the {base.name} image has blocks: {held}", flush=True)
    outcomes: dict[str, int] = {}
    for number in range(count):
        case = seed * 1_000_000 + number
        rng = random.Random(case)
        base = rng.choice(bases)
        table = f"0 {MIB * 2048} snapshot {base.device} {RAM[2]} N 8"
        with map_device("fscale-bad", table) as device:
            what = corrupt(rng, base, Path(device))
            # Before it is mounted: an oops ends the guest, and this line tells of what.
            print(f"image {case} ({base.name}): {what}", flush=True)
            try:
                outcome = _one(made, device, case)
            except Fault as fault:
                raise Fault(f"image {case} ({base.name}; {what}): {fault}") from None
            print(f"    {outcome}", flush=True)
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
    told = ", ".join(f"{outcomes[name]} {name}" for name in sorted(outcomes))
    if MISSED in outcomes:
        raise Fault(f"{count} images, some of which fsck takes for good: {told}")
    return f"{count} images without oops, warning or hang: {told}"


def _repair(made: Volume, device: str, argv: list[str]) -> None:
    """Repair, now that all was used; what fsck says is good must be good, and mount."""
    repaired = bounded(*("-y" if argument == "-n" else argument for argument in argv))
    if repaired.returncode > 1:
        return
    again = bounded(*argv)
    if again.returncode != 0:
        raise Fault(f"fsck -y says that all is repaired; fsck -n then: {again.stdout[-2000:]!r}")
    if exercise(made, device, 0) != "mounted":
        raise Fault("fsck says that all is repaired, and the kernel refuses it")
    if (last := bounded(*argv)).returncode != 0:
        raise Fault(f"damage after use of what was repaired: {last.stdout[-2000:]!r}")


def _one(made: Volume, device: str, case: int) -> str:
    argv = [argument.replace(made.device, device) for argument in made.checker()]
    found = bounded(*argv).returncode
    outcome = exercise(made, device, case)
    if warned():
        raise Fault("the kernel gave a warning; see the console log")
    if outcome == "refused" and found == 0:
        return MISSED
    if "-n" in argv:
        _repair(made, device, argv)
    return f"{outcome}, fsck {'clean' if found == 0 else 'finds damage'}"
