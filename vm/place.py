# SPDX-License-Identifier: GPL-2.0-only
"""The directories of a boot: what the guest reads, what it writes, what it cannot reach."""

import contextlib
import errno
import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fscale.model.errors import FscaleError
from fscale.model.revision import revision
from vm.cache import cache_root

INIT = Path(__file__).parent / "init" / "guest.sh"
# What nothing else loads; a kernel may lack it or have it built in. A file system's module comes
# with its first mount: all of them would take an emulated guest seconds.
MODULES = ("loop", "configfs")


@dataclass(frozen=True)
class Job:
    """What a guest is to do."""

    argv: Sequence[str]
    output: Path | None = None
    """host directory that the guest sees as /results"""
    modules: Sequence[Path] = ()
    """modules under test, loaded in this order"""
    files: Mapping[str, Path] = field(default_factory=dict)
    """host files by the name they get in the guest's /control"""
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 3600.0
    held: Path | None = None
    """directory for the sockets of who stops and continues the guest (held.py)"""


@dataclass(frozen=True)
class Share:
    """A host directory that a guest mounts by its tag."""

    tag: str
    path: Path
    writable: bool


@dataclass(frozen=True)
class Boot:
    """Where a boot of QEMU keeps its files."""

    base: Path

    @property
    def console(self) -> Path:
        """What the guest's kernel said."""
        return self.base / "console.log"

    @property
    def errors(self) -> Path:
        """What QEMU said."""
        return self.base / "qemu.log"

    @property
    def monitor(self) -> Path:
        """The socket of QEMU's monitor."""
        return self.base / "monitor"


@dataclass(frozen=True)
class Place(Boot):
    """The same where a job is done for the host; only the shares are the guest's to see."""

    @property
    def control(self) -> Path:
        """What the guest is to do, and what the host tells it meanwhile; read-only in there."""
        return self.base / "control"

    @property
    def state(self) -> Path:
        """`heartbeat` and `status`, which the guest writes."""
        return self.base / "state"

    def shares(self, job: Job) -> list[Share]:
        """All that the guest sees of the host."""
        return [
            Share("control", self.control, writable=False),
            Share("state", self.state, writable=True),
            Share("results", job.output or self.base / "results", writable=True),
        ]


@contextlib.contextmanager
def place(job: Job, about: Mapping[str, object]) -> Iterator[Place]:
    """The directories of one boot of `job`; those whose process was killed are removed.

    `about` describes the guest to the results that it makes.
    """
    base = cache_root() / "run"
    base.mkdir(parents=True, exist_ok=True)
    for stale in base.iterdir():
        pid = stale.name.split("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            shutil.rmtree(stale, ignore_errors=True)
    made = Place(Path(tempfile.mkdtemp(dir=base, prefix=f"{os.getpid()}-")))
    try:
        for share in made.shares(job):
            share.path.mkdir(parents=True, exist_ok=True)
        write_control(made.control, job, about)
        yield made
    finally:
        shutil.rmtree(made.base, ignore_errors=True)


def write_control(control: Path, job: Job, about: Mapping[str, object]) -> None:
    """Fill the directory that the guest's init reads."""
    modules = control / "modules"
    modules.mkdir()
    shutil.copy(INIT, control / "init")
    (modules / "wanted").write_text("".join(f"{name}\n" for name in MODULES))
    names = []
    for path in job.modules:
        if not path.is_file():
            raise FscaleError(f"the module {path} does not exist")
        shutil.copy(path, modules / path.name)
        names.append(f"{path.name}\n")
    (modules / "order").write_text("".join(names))
    for name, path in job.files.items():
        if not path.is_file():
            raise FscaleError(f"{path} does not exist")
        (control / name).parent.mkdir(exist_ok=True)
        shutil.copy(path, control / name)
    variables = {
        "PYTHONPATH": "/fscale:/python",
        "FSCALE_GUEST": json.dumps(about),
        "FSCALE_REVISION": revision() or "",
        # pydantic looks for plugins among all installed packages.
        "PYDANTIC_DISABLE_PLUGINS": "__all__",
        **job.environment,
    }
    exports = "".join(f"export {name}={shlex.quote(text)}\n" for name, text in variables.items())
    (control / "job").write_text(
        f"{exports}cd /fscale\n{shlex.join(job.argv)}\necho $? >/run/job-status\n"
    )


def mapping(directory: Path) -> str:
    """How 9p keeps the owners, modes and kinds that a guest gives its files in `directory`.

    Either way a guest's link or device is a plain file here. In extended attributes, but for a
    file system that has none for users, as tmpfs before Linux 6.6: there in `.virtfs_metadata`.
    """
    try:
        os.getxattr(directory, "user.virtfs.mode")
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            return "mapped-file"
    return "mapped-xattr"
