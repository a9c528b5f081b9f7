# SPDX-License-Identifier: GPL-2.0-only
"""The directories of a boot: those that the guest reads, writes, and cannot reach."""

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
from fscale.vm.cache import cache_root

INIT = Path(__file__).parent / "init" / "guest.sh"
# Modules that nothing else loads; a kernel may lack them or have them built in. Modules of file
# systems are loaded at their first mount: loading all would take an emulated guest seconds.
MODULES = ("loop", "configfs")
TOOLS = "bin/"
"""directory of programs among a job's files"""


@dataclass(frozen=True)
class Job:
    """The job of a guest."""

    argv: Sequence[str]
    output: Path | None = None
    """host directory that is /results in the guest"""
    modules: Sequence[Path] = ()
    """modules under test, loaded in this order"""
    files: Mapping[str, Path] = field(default_factory=dict)
    """host files by their names in the guest's /control"""
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 3600.0
    held: Path | None = None
    """directory for the sockets of the controller of a paused guest (paused_guest.py)"""


@dataclass(frozen=True)
class Share:
    """A host directory that a guest mounts by its tag."""

    tag: str
    path: Path
    writable: bool


@dataclass(frozen=True)
class QemuFiles:
    """The files of a boot of QEMU."""

    base: Path

    @property
    def console(self) -> Path:
        """The console log of the guest's kernel."""
        return self.base / "console.log"

    @property
    def errors(self) -> Path:
        """The output of QEMU."""
        return self.base / "qemu.log"

    @property
    def monitor(self) -> Path:
        """The socket of QEMU's monitor."""
        return self.base / "monitor"


@dataclass(frozen=True)
class JobFiles(QemuFiles):
    """The directories of a boot that runs a job; the guest can see the shares only."""

    @property
    def control(self) -> Path:
        """The job, and messages of the host during it; read-only in the guest."""
        return self.base / "control"

    @property
    def state(self) -> Path:
        """`heartbeat` and `status`, which the guest writes."""
        return self.base / "state"

    def shares(self, job: Job) -> list[Share]:
        """All directories of the host that the guest can see."""
        return [
            Share("control", self.control, writable=False),
            Share("state", self.state, writable=True),
            Share("results", job.output or self.base / "results", writable=True),
        ]


@contextlib.contextmanager
def place(job: Job, about: Mapping[str, object]) -> Iterator[JobFiles]:
    """Create the directories of one boot of `job`; remove those of killed processes.

    `about` describes the guest for its results.
    """
    base = cache_root() / "run"
    base.mkdir(parents=True, exist_ok=True)
    for stale in base.iterdir():
        pid = stale.name.split("-")[0]
        if pid.isdecimal() and not Path("/proc", pid).exists():
            shutil.rmtree(stale, ignore_errors=True)
    made = JobFiles(Path(tempfile.mkdtemp(dir=base, prefix=f"{os.getpid()}-")))
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
        if name.startswith(TOOLS):  # from another machine it comes without its mode
            (control / name).chmod(0o755)
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
    """The 9p mapping that stores owners, modes and types of a guest's files in `directory`.

    With each mapping, a guest's link or device is a plain file on the host. The attributes are
    stored in extended attributes, or in `.virtfs_metadata` if the file system has no user
    attributes, such as tmpfs before Linux 6.6.
    """
    try:
        os.getxattr(directory, "user.virtfs.mode")
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            return "mapped-file"
    return "mapped-xattr"
