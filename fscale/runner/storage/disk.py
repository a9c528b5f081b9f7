# SPDX-License-Identifier: GPL-2.0-only
"""Block devices that are formatted for each cell, and checks that protect all other devices."""

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
"""directories next to by-id whose names do not change when the device is formatted"""
LABEL = "fscale"
SYSFS = Path("/sys")
SERIAL = (
    "a virtual disk gets a name in by-id when it has a serial: QEMU -device "
    "virtio-blk-pci,drive=ID,serial=NAME; libvirt <serial>NAME</serial> in <disk>; VMware "
    "disk.EnableUUID=TRUE"
)

# Files of sysfs that identify a device: NVMe, SCSI and ATA, virtio, MMC, device mapper, MD, loop.
_NAMES = (
    *("wwid", "device/wwid", "serial", "device/serial"),
    *("device/cid", "dm/uuid", "md/uuid", "loop/backing_file"),
)


@dataclass(frozen=True)
class Identity:
    """The identity of a block device, which differs from that of any other under the same name."""

    number: str
    """major:minor"""
    sequence: str
    """disk sequence number, which grows with every new disk (since Linux 5.15; empty before)"""
    size: int
    """bytes"""
    lasting: dict[str, str]
    """properties that survive a reboot: serial numbers, and the place of a partition"""

    def recorded(self) -> dict[str, str | int]:
        """Return the properties that must be the same when a run is resumed."""
        return {"size": self.size, **self.lasting}


@dataclass(frozen=True)
class CheckedDevice:
    """A block device as the checks found it.

    `path` is the name that the user gave; None if fscale made the device, whatever it contains.
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
    """Read the identity of the block device major:minor from sysfs."""
    base = _directory(number, sysfs)
    partition = (base / "partition").exists()
    whole = base.parent if partition else base
    fields = {name: text for name in _NAMES if (text := _text(whole / name))}
    if partition:
        fields |= {name: _text(base / name) for name in ("partition", "start")}
    size = int(_text(base / "size") or 0) * 512
    return Identity(number, _text(whole / "diskseq"), size, fields)


def number_of(path: Path) -> str:
    """Return the major:minor of a block device, without opening it.

    Raises:
        FscaleError: the path is not a block device.
    """
    try:
        about = find_node(path).stat()
    except OSError as error:
        raise FscaleError(
            f"{path} cannot be examined: {error.strerror}; name an existing block device"
        ) from None
    if not stat.S_ISBLK(about.st_mode):
        raise FscaleError(f"{path} is not a block device; name one by its path in {BY_ID}")
    return f"{os.major(about.st_rdev)}:{os.minor(about.st_rdev)}"


@contextlib.contextmanager
def _opened(path: Path, flags: int = 0) -> Iterator[tuple[int, str]]:
    """Open a block device; yield the descriptor and its major:minor.

    Raises:
        FscaleError: it cannot be opened, or is not a block device.
    """
    try:
        fd = os.open(find_node(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    except OSError as error:
        alone = " exclusively" if flags & os.O_EXCL else ""
        raise FscaleError(
            f"{path} cannot be opened{alone}: {error.strerror}; name a device that exists and is "
            "unused"
        ) from None
    try:
        about = os.fstat(fd)
        if not stat.S_ISBLK(about.st_mode):
            raise FscaleError(
                f"{path} leads to {path.resolve()}, which is not a block device; name one by its "
                f"path in {BY_ID}"
            )
        yield fd, f"{os.major(about.st_rdev)}:{os.minor(about.st_rdev)}"
    finally:
        os.close(fd)


def signature(device: Path) -> str:
    """Describe the content of a block device; `no signature that wipefs knows` if empty."""
    out = Executor().run(["wipefs", "--no-act", "--json", str(device)])
    found = json.loads(out).get("signatures", []) if out.strip() else []
    signatures = [
        " ".join(str(item[k]) for k in ("type", "label", "uuid") if item.get(k)) for item in found
    ]
    # An external XFS log repeats its signature, so each description is kept once.
    return ", ".join(dict.fromkeys(signatures)) or "no signature that wipefs knows"


def _label(device: Path) -> str | None:
    with contextlib.suppress(CommandFailed):  # blkid fails if the device has no signature
        out = Executor().run(["blkid", "--probe", "--output", "value", "-s", "LABEL", str(device)])
        return out.strip() or None
    return None


def describe_users(number: str) -> str | None:
    """Describe what uses a block device or one of its partitions (mount, swap, holder), or None."""
    base = _directory(number)
    mounts = mountinfo.read()
    swaps = [line.split()[0] for line in Path("/proc/swaps").read_text().splitlines()[1:]]
    for part in [base, *(p for p in base.glob(f"{base.name}*") if (p / "partition").exists())]:
        own = _text(part / "dev")
        for mount in mounts:
            # Btrfs shows an anonymous device number, so the source is compared too.
            if mount.device == own or os.path.realpath(mount.source) == f"/dev/{part.name}":
                return f"/dev/{part.name} is mounted at {printable(mount.target)}"
        if f"/dev/{part.name}" in (os.path.realpath(s) for s in swaps):
            return f"/dev/{part.name} is used as swap"
        holders = part / "holders"
        if holders.is_dir() and (held := sorted(p.name for p in holders.iterdir())):
            return f"/dev/{part.name} is held by {', '.join(held)}"
    return None


def find_node(path: Path, sysfs: Path = SYSFS) -> Path:
    """Return the path, or the device node if it is a by-diskseq path without a link.

    A container has no udev to make the link, but sysfs shows which disk has the sequence number.
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


def stable_paths(number: str, by_id: Path = BY_ID, sysfs: Path = SYSFS) -> list[Path]:
    """Return the stable paths of a block device, the best first."""
    paths = []
    for folder in (by_id, *(by_id.parent / name for name in BESIDE)):
        for link in sorted(folder.glob("*")):
            with contextlib.suppress(OSError):
                about = link.stat()
                if f"{os.major(about.st_rdev)}:{os.minor(about.st_rdev)}" == number:
                    paths.append(link)
    sequence = identify(number, sysfs).sequence
    part = _text(_directory(number, sysfs) / "partition")
    by_sequence = by_id.parent / "by-diskseq" / f"{sequence}{f'-part{part}' if part else ''}"
    if sequence and by_sequence not in paths:
        paths.append(by_sequence)
    return paths


def refuse_unstable(path: Path, by_id: Path = BY_ID) -> None:
    """Refuse a path that may later lead to another device.

    Raises:
        FscaleError: the path is not stable; the text lists stable paths of the device.
    """
    if path.parent in (by_id, *(by_id.parent / name for name in BESIDE)):
        return
    what = f"{path} is not a stable path"
    if path.parent in (by_id.parent / "by-uuid", by_id.parent / "by-label"):
        what += " (it names the content of the device, which formatting replaces)"
    known: list[Path] = []
    with contextlib.suppress(FscaleError):
        known = stable_paths(number_of(path), by_id)
    if any(name.parent == by_id for name in known):
        raise FscaleError(f"{what}; name the device as {' or '.join(map(str, known[:3]))}")
    there = f"; name the device as {' or '.join(map(str, known[:3]))}" if known else ""
    raise FscaleError(
        f"{what}{there or f'; name the device as {by_id}/NAME (see ls -l {by_id})'}; {SERIAL}"
    )


def check_device(path: Path, yes_format: str | None, by_id: Path = BY_ID) -> CheckedDevice:
    """Check that the block device at a stable path may be formatted.

    `yes_format` are comma-separated names from the command line. Such a name permits formatting a
    device that does not have fscale's label.

    Raises:
        FscaleError: the device must not be formatted.
    """
    if which("wipefs") is None or which("blkid") is None:
        raise FscaleError(
            "wipefs or blkid is not installed, but both are needed to check a device; install "
            "util-linux"
        )
    refuse_unstable(path, by_id)
    with _opened(path) as (_, number):  # pins the device, so that all checks see the same one
        if used := describe_users(number):
            raise FscaleError(
                f"{path} is in use: {used}; fscale formats only unused devices, so release it or "
                "name another"
            )
        node = _node(number)
        with _opened(node, os.O_EXCL):
            content = signature(node)
        if _label(node) != LABEL and path.name not in (yes_format or "").split(","):
            raise FscaleError(
                f"{path} was not formatted by fscale; it contains: {content}. All of this would be "
                f"lost. If you want that, add --yes-format {path.name}"
            )
        return CheckedDevice(node, identify(number), path, content)


def _node(number: str) -> Path:
    """Return the node in /dev that has the kernel's name of the device."""
    node = Path("/dev") / _directory(number).name.replace("!", "/")
    with _opened(node) as (_, there):
        if there != number:
            raise FscaleError(
                f"{node} is device {there}, but by its name it must be {number}; nothing was "
                "formatted; repair /dev"
            )
    return node


def record_own_device(node: str) -> CheckedDevice:
    """Return the record of a block device that fscale made."""
    with _opened(Path(node)) as (_, number):
        return CheckedDevice(Path(node), identify(number))


class Disk:
    """The block device that a run formats before each cell.

    An open descriptor pins it: until it is closed, the kernel does not reuse the device's number or
    its name in /dev, so mkfs and mount can safely use the name. A second, exclusive descriptor
    keeps other programs away between cells.
    """

    def __init__(self, checked: CheckedDevice) -> None:
        """Take the checked device.

        Raises:
            FscaleError: the path now leads to another device, or the device is in use.
        """
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
        """Release the device."""
        self._release()
        self._pin.close()

    def confirm(self) -> None:
        """Check the device again, and hold it exclusively.

        The path is resolved again. The device must have fscale's label, or the content for which
        the user permitted formatting, or the content that fscale left.

        Raises:
            FscaleError: it is another device, is in use, or its content has changed.
        """
        name = self._checked.path or self.node
        with _opened(name) as (_, number):
            if changed := describe_changes(self._checked.identity, identify(number)):
                raise FscaleError(
                    f"{name} is not the device that was checked ({changed}); fscale does not "
                    "format it"
                )
        if used := describe_users(number):
            raise FscaleError(f"{name} is in use: {used}; fscale does not format it")
        self._claim()
        if self._checked.path and _label(self.node) != LABEL:
            found = signature(self.node)
            if found != self._content:
                raise FscaleError(
                    f"{name} contains {found}, which was not there when it was checked; fscale "
                    "does not format it"
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
    def released(self) -> Iterator[None]:
        """Release the exclusive hold inside the `with` block, for mkfs and mount.

        These open the device exclusively themselves. If another program takes it in between, they
        fail, because all that are used here refuse a device that is held exclusively.
        """
        self.confirm()
        self._release()
        try:
            yield
        finally:
            # A device that is still mounted cannot be held; `confirm` reports that later.
            with contextlib.suppress(FscaleError):
                self._claim()

    def formatted(self) -> None:
        """Record the present content as written by fscale."""
        if self._checked.path:
            self._content = signature(self.node)

    def confirm_partition(self, node: Path) -> None:
        """Check that a node is an unused partition of this device.

        Raises:
            FscaleError: it is not.
        """
        with _opened(node, os.O_EXCL) as (_, number):
            whole = _directory(self._checked.identity.number)
            if _directory(number).parent != whole or not (_directory(number) / "start").exists():
                raise FscaleError(
                    f"{node} is not a partition of {self.node}; fscale does not format it"
                )
            if used := describe_users(number):
                raise FscaleError(f"{node} is in use: {used}; fscale does not format it")


def describe_changes(old: Identity, new: Identity) -> str:
    """Describe how two identities differ; empty if they are of the same device."""
    changes = [
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
            changes.append(f"{name} {a} -> {b}")
    return ", ".join(changes)
