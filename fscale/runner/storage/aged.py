# SPDX-License-Identifier: GPL-2.0-only
"""Ages a file system once, keeps the image of its device, and restores that before each cell.

`fscale-age` allocates the space of files, mostly without writing data, so that an image has little
more than metadata. A pattern that is written to the device beforehand shows which blocks were
written: only these are kept and restored.
"""

import contextlib
import hashlib
import json
import os
import shlex
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fscale.model import paths
from fscale.model.config import Aging, FileSystem
from fscale.model.errors import FscaleError
from fscale.model.runs import fingerprint
from fscale.model.terminal import say
from fscale.runner.machine.changes import NotUndone
from fscale.runner.progress import duration
from fscale.runner.storage import filesystem
from fscale.system.executor import CommandFailed, DryExecutor, Executor, make_directory
from fscale.system.programs import made

PERIOD = 5.0  # seconds between two lines of progress
LIMIT = 24 * 3600.0  # seconds for the aging itself
COPY_LIMIT = 3600.0

MountAt = Callable[[], contextlib.AbstractContextManager[Path]]


def refuse_small(name: str, fs: FileSystem, size: int) -> None:
    """Refuse a device of `size` bytes on which the files of the aging profile do not fit.

    Raises:
        FscaleError: the device is too small.
    """
    if fs.aged and size < fs.aged.min_size:
        raise FscaleError(
            f"{name}: the largest files of its aging profile take {fs.aged.sizes[-1][0] >> 10} "
            f"KiB, for which the medium needs at least {(fs.aged.min_size >> 20) + 1} MiB; it has "
            f"{size >> 20} MiB. Use a larger medium, or a profile of smaller files",
            fault="user",
        )


@dataclass(frozen=True)
class Image:
    """The image of an aged file system on a device of `size` bytes."""

    fs: FileSystem
    profile: Aging
    size: int

    @cached_property
    def file(self) -> Path:
        """The image. Its name depends on everything that its layout may depend on."""
        made_by = {
            "filesystem": self.fs.model_dump(
                mode="json", include={"kernel", "mkfs", "mount_options", "settings"}
            ),
            "profile": self.profile.model_dump(mode="json", exclude={"title", "source"}),
            "size": self.size,
            "mkfs": filesystem.version(self.fs),
            "program": fingerprint(made(paths.AGE)),
            "kernel": [os.uname().release, os.uname().version],
            "cpus": os.sysconf("SC_NPROCESSORS_CONF") if self.fs.sized_by_cpus else None,
        }
        digest = hashlib.sha256(json.dumps(made_by, sort_keys=True).encode()).hexdigest()[:16]
        return paths.cache_dir("aged") / f"{self.fs.kernel}-{self.size >> 20}M-{digest}.image"

    @property
    def layout(self) -> dict[str, str]:
        """How files and free space lie in the image, as a cell records it; empty without one."""
        try:
            layout = json.loads(_layout_of(self.file).read_text())["aged"]
        except FileNotFoundError:
            return {}
        values = {
            "aged files": layout["files"],
            "aged extents per file": round(layout["extents"] / layout["files"], 4),
            "aged free runs": layout.get("free_runs"),
            "aged largest free run": layout.get("largest_free_run"),
        }
        return {name: str(value) for name, value in values.items() if value is not None}

    def restore(self, node: str, mounted: MountAt, do: Executor) -> None:
        """Write the image to a device, which is aged first if there is no image yet.

        `mounted` mounts the device for a `with` block.

        Raises:
            FscaleError: the file system cannot be aged, or the image not be kept.
            CommandFailed: the image cannot be written to the device.
        """
        file = self.file
        if isinstance(do, DryExecutor) and not file.exists():
            argv = shlex.join([str(paths.AGE), *self.profile.arguments])
            do.show(f"# once, before the first cell: {file} is made by mkfs, mount and {argv}")
        elif not file.exists():
            self._make(file, node, mounted, do)
        do.run([str(paths.AGE), "--restore", str(file), node], timeout=COPY_LIMIT)
        filesystem.settle(node, do)

    def _make(self, file: Path, node: str, mounted: MountAt, do: Executor) -> None:
        what = f"{self.fs.title} of {self.size >> 20} MiB"
        refuse_small(what, self.fs, self.size)
        make_directory(file.parent)
        # Machines may share a home.
        part, progress = (
            file.with_suffix(f".{os.uname().nodename}.{kind}") for kind in ("part", "progress")
        )
        argv = [str(paths.AGE), *self.profile.arguments, f"--progress={progress}"]
        began = time.monotonic()
        say(f"aging {what}, once: {self.profile.title}", error=True)
        try:
            do.run([str(paths.AGE), "--fill", node], timeout=COPY_LIMIT)
            filesystem.make(self.fs, node, do)
            with mounted() as target, _progress_shown(progress, what):
                layout = do.run([*argv, str(target)], timeout=LIMIT)
            filesystem.settle(node, do)
            do.run([str(paths.AGE), "--save", node, str(part)], timeout=COPY_LIMIT)
            _layout_of(file).write_text(layout)
            part.replace(file)
        except NotUndone:
            raise
        except (CommandFailed, OSError) as error:
            raise FscaleError(
                f"{what} cannot be aged: {error}. The image would be kept in {file.parent} "
                "($XDG_CACHE_HOME names another place); if the file system is full, lower the "
                "utilisation of the profile"
            ) from None
        finally:
            part.unlink(missing_ok=True)
            progress.unlink(missing_ok=True)
        spent = duration(time.monotonic() - began)
        say(f"aged {what} in {spent}: {describe(json.loads(layout))}; kept as {file}", error=True)


def describe(layout: dict[str, dict[str, int]]) -> str:
    """Describe the layouts after the fill and after the churn in one sentence."""
    filled, aged = layout["filled"], layout["aged"]
    extents = [f"{one['extents'] / one['files']:.3f}" for one in (filled, aged)]
    text = (
        f"{aged['files']:,} files; filled -> aged: {extents[0]} -> {extents[1]} extents per file, "
        f"{filled['fragmented']:,} -> {aged['fragmented']:,} fragmented files"
    )
    if "free_runs" not in aged:
        return f"{text}; this file system does not report its free space (FS_IOC_GETFSMAP)"
    mean = [one["free_bytes"] // max(1, one["free_runs"]) >> 10 for one in (filled, aged)]
    return (
        f"{text}, {filled['free_runs']:,} -> {aged['free_runs']:,} runs of free space, on average "
        f"{mean[0]:,} -> {mean[1]:,} KiB, the largest {filled['largest_free_run'] >> 10:,} -> "
        f"{aged['largest_free_run'] >> 10:,} KiB"
    )


def _layout_of(image: Path) -> Path:
    return image.with_suffix(".json")


@contextlib.contextmanager
def _progress_shown(file: Path, what: str) -> Iterator[None]:
    """Show, while the `with` block runs, the part that a file says is done, and the time left."""
    ended, began = threading.Event(), time.monotonic()

    def show() -> None:
        while not ended.wait(PERIOD):
            with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
                part = float(file.read_text())
                left = (time.monotonic() - began) * (1 - part) / part
                say(f"aging {what}: {part:.0%}, about {duration(left)} left", error=True)

    shower = threading.Thread(target=show, daemon=True)
    shower.start()
    try:
        yield
    finally:
        ended.set()
        shower.join()
