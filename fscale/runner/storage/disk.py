# SPDX-License-Identifier: GPL-2.0-only
"""Block devices that are formatted again and again: no device of others ever is."""

import contextlib
import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fscale.model.errors import FscaleError
from fscale.model.files import printable
from fscale.system import mountinfo
from fscale.system.executor import CommandFailed, Executor, which

BY_ID = Path("/dev/disk/by-id")
BESIDE = ("by-path", "by-partuuid", "by-diskseq")
"""folders beside by-id whose names do not change when the device is formatted"""
LABEL = "fscale"
SYSFS = Path("/sys")
SERIAL = (
    "a virtual disk gets a name in by-id when it has a serial: QEMU -device "
    "virtio-blk-pci,drive=ID,serial=NAME; libvirt <serial>NAME</serial> in <disk>; VMware "
    "disk.EnableUUID=TRUE"
)

# What kernels know a drive by: NVMe, SCSI and ATA, virtio, MMC, device mapper, MD, loop.
_NAMES = (
    *("wwid", "device/wwid", "serial", "device/serial"),
    *("device/cid", "dm/uuid", "md/uuid", "loop/backing_file"),
)


@dataclass(frozen=True)
class Identity:
    """What tells a block device from all others, also from one that comes to have its name."""

    number: str
    """major:minor"""
    sequence: str
    """goes up with every disk that appears (Linux 5.15 and later; empty before)"""
    size: int
    """bytes"""
    lasting: dict[str, str]
    """what outlives a reboot: serial numbers, and the place of a partition"""

    def recorded(self) -> dict[str, str | int]:
        """What a run that goes on must find again."""
        return {"size": self.size, **self.lasting}


@dataclass(frozen=True)
class Checked:
    """A block device as the checks found it.

    `path` is the name that was asked for; None: we made the device, whatever it holds.
    """

    node: Path
    identity: Identity
    path: Path | None = None
    content: str = ""


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(errors="replace").strip()
    return ""


def _directory(number: str, sysfs: Path = SYSFS) -> Path:
    return (sysfs / "dev" / "block" / number).resolve()


def identify(number: str, sysfs: Path = SYSFS) -> Identity:
    """What sysfs says of the block device with the number major:minor."""
    base = _directory(number, sysfs)
    partition = (base / "partition").exists()
    whole = base.parent if partition else base
    found = {name: text for name in _NAMES if (text := _text(whole / name))}
    if partition:
        found |= {name: _text(base / name) for name in ("partition", "start")}
    size = int(_text(base / "size") or 0) * 512
    return Identity(number, _text(whole / "diskseq"), size, found)


def number_of(path: Path) -> str:
    """The major:minor of a block device, which is not opened; FscaleError where it is none."""
    try:
        about = located(path).stat()
    except OSError as error:
        raise FscaleError(f"{path} cannot be looked at: {error.strerror}") from None
    if not stat.S_ISBLK(about.st_mode):
        raise FscaleError(f"{path} is not a block device")
    return f"{os.major(about.st_rdev)}:{os.minor(about.st_rdev)}"


@contextlib.contextmanager
def _opened(path: Path, flags: int = 0) -> Iterator[tuple[int, str]]:
    """A descriptor of a block device and its major:minor; FscaleError where it is none."""
    try:
        fd = os.open(located(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    except OSError as error:
        alone = " for us alone" if flags & os.O_EXCL else ""
        raise FscaleError(f"{path} cannot be opened{alone}: {error.strerror}") from None
    try:
        about = os.fstat(fd)
        if not stat.S_ISBLK(about.st_mode):
            raise FscaleError(f"{path} leads to {path.resolve()}, which is not a block device")
        yield fd, f"{os.major(about.st_rdev)}:{os.minor(about.st_rdev)}"
    finally:
        os.close(fd)


def signature(device: Path) -> str:
    """What is on a block device, for people; `nothing that wipefs knows` when it looks empty."""
    out = Executor().run(["wipefs", "--no-act", "--json", str(device)])
    found = json.loads(out).get("signatures", []) if out.strip() else []
    said = [
        " ".join(str(item[k]) for k in ("type", "label", "uuid") if item.get(k)) for item in found
    ]
    # A log of XFS has its mark at every turn that it takes.
    return ", ".join(dict.fromkeys(said)) or "nothing that wipefs knows"


def _label(device: Path) -> str | None:
    with contextlib.suppress(CommandFailed):  # blkid fails on a device without a signature
        out = Executor().run(["blkid", "--probe", "--output", "value", "-s", "LABEL", str(device)])
        return out.strip() or None
    return None


def users(number: str) -> str | None:
    """Who uses a block device or one of its partitions: mounts, swap, holders."""
    base = _directory(number)
    mounts = mountinfo.read()
    swaps = [line.split()[0] for line in Path("/proc/swaps").read_text().splitlines()[1:]]
    for part in [base, *(p for p in base.glob(f"{base.name}*") if (p / "partition").exists())]:
        own = _text(part / "dev")
        for mount in mounts:
            # Btrfs shows an anonymous number, so the source counts too.
            if mount.device == own or os.path.realpath(mount.source) == f"/dev/{part.name}":
                return f"/dev/{part.name} is mounted at {printable(mount.target)}"
        if f"/dev/{part.name}" in (os.path.realpath(s) for s in swaps):
            return f"/dev/{part.name} is used as swap"
        holders = part / "holders"
        if holders.is_dir() and (held := sorted(p.name for p in holders.iterdir())):
            return f"/dev/{part.name} is held by {', '.join(held)}"
    return None


def located(path: Path, sysfs: Path = SYSFS) -> Path:
    """The path, or where it is a disk's sequence number that udev made no link for, its node.

    A container has no udev, but sysfs says which disk has the number.
    """
    asked = re.fullmatch(r"(\d+)(?:-part(\d+))?", path.name)
    if path.parent.name != "by-diskseq" or not asked or path.exists():
        return path
    for disk in (sysfs / "block").glob("*"):
        if _text(disk / "diskseq") == asked[1]:
            parts = {_text(part / "partition"): part.name for part in disk.glob(f"{disk.name}*")}
            name = parts.get(asked[2]) if asked[2] else disk.name
            return Path("/dev") / name.replace("!", "/") if name else path
    return path


def names(number: str, by_id: Path = BY_ID, sysfs: Path = SYSFS) -> list[Path]:
    """The stable names of a block device, the best first."""
    found = []
    for folder in (by_id, *(by_id.parent / name for name in BESIDE)):
        for link in sorted(folder.glob("*")):
            with contextlib.suppress(OSError):
                about = link.stat()
                if f"{os.major(about.st_rdev)}:{os.minor(about.st_rdev)}" == number:
                    found.append(link)
    sequence = identify(number, sysfs).sequence
    part = _text(_directory(number, sysfs) / "partition")
    by_sequence = by_id.parent / "by-diskseq" / f"{sequence}{f'-part{part}' if part else ''}"
    if sequence and by_sequence not in found:
        found.append(by_sequence)
    return found


def refuse_unstable(path: Path, by_id: Path = BY_ID) -> None:
    """FscaleError, with the names to take, unless the name of a device is one that lasts."""
    if path.parent in (by_id, *(by_id.parent / name for name in BESIDE)):
        return
    what = f"{path} is not a stable path"
    if path.parent in (by_id.parent / "by-uuid", by_id.parent / "by-label"):
        what += " (it names what lies on the device, which is replaced)"
    known: list[Path] = []
    with contextlib.suppress(FscaleError):
        known = names(number_of(path), by_id)
    if any(name.parent == by_id for name in known):
        raise FscaleError(f"{what}; name the device as {' or '.join(map(str, known[:3]))}")
    there = f"; name the device as {' or '.join(map(str, known[:3]))}" if known else ""
    raise FscaleError(
        f"{what}{there or f'; name the device as {by_id}/NAME (see ls -l {by_id})'}; {SERIAL}"
    )


def check_device(path: Path, yes_format: str | None, by_id: Path = BY_ID) -> Checked:
    """Allow formatting of the block device at a stable path, or raise FscaleError.

    `yes_format` are the names, separated by commas, that the user gave on the command line: a name
    allows the format of a device that does not carry our own label.
    """
    if which("wipefs") is None or which("blkid") is None:
        raise FscaleError("wipefs and blkid are needed to check a device: install util-linux")
    refuse_unstable(path, by_id)
    with _opened(path) as (_, number):  # pins the device, so that all below is said of one
        if used := users(number):
            raise FscaleError(f"{path} is in use: {used}; fscale formats only unused devices")
        node = _node(number)
        with _opened(node, os.O_EXCL):
            content = signature(node)
        if _label(node) != LABEL and path.name not in (yes_format or "").split(","):
            raise FscaleError(
                f"{path} is not ours; it holds: {content}. All of it would be lost. "
                f"If that is right, add --yes-format {path.name}"
            )
        return Checked(node, identify(number), path, content)


def _node(number: str) -> Path:
    """The device's name in /dev, which the kernel gave it."""
    node = Path("/dev") / _directory(number).name.replace("!", "/")
    with _opened(node) as (_, there):
        if there != number:
            raise FscaleError(f"{node} is device {there} and not {number}, as the kernel has it")
    return node


def made(node: str) -> Checked:
    """A block device of our own making."""
    with _opened(Path(node)) as (_, number):
        return Checked(Path(node), identify(number))


class Disk:
    """The block device that a run formats before each cell.

    A descriptor that stays open pins it: as long as it is open, the kernel gives neither the
    device's number nor its name in /dev to another one, so that mkfs and mount may be given the
    name. A second, exclusive descriptor keeps others off between the cells.
    """

    def __init__(self, checked: Checked) -> None:
        """Take the device that was checked; FscaleError when it is another by now, or in use."""
        self.node = checked.node
        self._checked = checked
        self._content = checked.content
        self._pin = contextlib.ExitStack()
        self._pin.enter_context(_opened(checked.node))
        self._hold: contextlib.ExitStack | None = None
        try:
            self.confirm()
        except FscaleError:
            self.close()
            raise

    def close(self) -> None:
        """Let go of it."""
        self._release()
        self._pin.close()

    def confirm(self) -> None:
        """Hold the device; FscaleError unless it is the one that was checked, unused and ours.

        Its name is resolved anew. Its label is ours, or it holds what it held when the user allowed
        the format, or what we left there.
        """
        name = self._checked.path or self.node
        with _opened(name) as (_, number):
            if changed := changes(self._checked.identity, identify(number)):
                raise FscaleError(
                    f"{name} is not the device that was checked ({changed}); it is left alone"
                )
        if used := users(number):
            raise FscaleError(f"{name} is in use: {used}; it is left alone")
        self._claim()
        if self._checked.path and _label(self.node) != LABEL:
            found = signature(self.node)
            if found != self._content:
                raise FscaleError(
                    f"{name} holds {found}, which was not there when it was checked; it is left "
                    f"alone"
                )

    def _claim(self) -> None:
        if self._hold is None:
            with contextlib.ExitStack() as stack:
                stack.enter_context(_opened(self.node, os.O_EXCL))
                self._hold = stack.pop_all()

    def _release(self) -> None:
        if self._hold is not None:
            self._hold.close()
            self._hold = None

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        """The device may be formatted and mounted inside the `with` block.

        mkfs and mount claim the device for themselves, so that ours must end right before. Who
        comes in between makes them fail: all that are used here refuse a device that is claimed.
        """
        self.confirm()
        self._release()
        try:
            yield
        finally:
            # What is still mounted cannot be claimed; `confirm` says so before the next format.
            with contextlib.suppress(FscaleError):
                self._claim()

    def formatted(self) -> None:
        """What is on the device now is ours."""
        if self._checked.path:
            self._content = signature(self.node)

    def confirm_partition(self, node: Path) -> None:
        """FscaleError unless a node is an unused partition of this device."""
        with _opened(node, os.O_EXCL) as (_, number):
            whole = _directory(self._checked.identity.number)
            if _directory(number).parent != whole or not (_directory(number) / "start").exists():
                raise FscaleError(f"{node} is no partition of {self.node}; it is left alone")
            if used := users(number):
                raise FscaleError(f"{node} is in use: {used}; it is left alone")


def changes(old: Identity, new: Identity) -> str:
    """What differs, in words; empty when it is the same device."""
    found = [
        f"{what} {a or 'none'} -> {b or 'none'}"
        for what, a, b in (
            ("number", old.number, new.number),
            ("sequence number", old.sequence, new.sequence),
            ("size", old.size, new.size),
        )
        if a != b
    ]
    for name in sorted(old.lasting.keys() | new.lasting.keys()):
        a, b = old.lasting.get(name, "none"), new.lasting.get(name, "none")
        if a != b:
            found.append(f"{name} {a} -> {b}")
    return ", ".join(found)
