# SPDX-License-Identifier: GPL-2.0-only
"""Sets files below /sys and /proc/sys while a file system is mounted."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from fscale.model.config import FileSystem
from fscale.model.errors import FscaleError
from fscale.model.kernelfile import DEVICE, same_value, value_in_effect
from fscale.runner.machine.changes import KernelFile
from fscale.runner.machine.journal import Journal
from fscale.system import sysfs


def of_machine(fs: FileSystem) -> dict[str, str]:
    """Return the settings that affect the whole machine; they are set before mkfs."""
    return {path: value for path, value in fs.settings.items() if DEVICE not in path}


def of_device(fs: FileSystem, node: str) -> dict[str, str]:
    """Return the settings of a mounted device."""
    name = Path(node).name
    return {p.replace(DEVICE, name): v for p, v in fs.settings.items() if DEVICE in p}


def check(filesystems: Mapping[str, FileSystem | None]) -> None:
    """Check the files that will be set for the whole machine.

    Raises:
        FscaleError: one does not exist, or its value could not be restored.
    """
    for name, fs in filesystems.items():
        for path in of_machine(fs) if fs else ():
            _read(name, Path(path))


@contextlib.contextmanager
def applied(title: str, values: Mapping[str, str], journal: Journal) -> Iterator[None]:
    """Set the files to the values inside the `with` block, and restore them after it.

    `title` is that of the file system, for messages.

    Raises:
        FscaleError: a file cannot be set, or setting it has no effect.
    """
    with contextlib.ExitStack() as stack:
        for path, value in values.items():
            stack.enter_context(_set(title, Path(path), value, journal))
        yield


@contextlib.contextmanager
def _set(title: str, path: Path, value: str, journal: Journal) -> Iterator[None]:
    before = "" if journal.do.dry and DEVICE in str(path) else _read(title, path)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(
                journal.change(KernelFile(path=path, value=value, before=value_in_effect(before)))
            )
        except OSError as error:
            raise FscaleError(
                f"{title}: the kernel rejects set={path}={value} ({error.strerror}); give a value "
                "that the file accepts"
            ) from None
        after = value if journal.do.dry else _read(title, path)
        if not same_value(after, value) and same_value(after, before):
            raise FscaleError(
                f"{title}: set={path}={value} had no effect: the value is still "
                f"{value_in_effect(after)}; leave it out"
            )
        yield


def _read(title: str, path: Path) -> str:
    if not path.exists():
        raise FscaleError(f"{title}: {path} does not exist on this machine; leave its setting out")
    if path.is_file() and (text := sysfs.text(path)) is not None and len(text.splitlines()) < 2:
        return text
    raise FscaleError(
        f"{title}: {path} is not a readable file with one line, so its value could not be "
        "restored; leave its setting out"
    )
