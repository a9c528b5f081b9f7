# SPDX-License-Identifier: GPL-2.0-only
"""Fetches Debian packages of any suite on any host, with a private apt and its own state."""

import re
import subprocess
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from fscale.model.errors import FscaleError
from fscale.vm.cache import cache_root, locked
from fscale.vm.steps import StepError, Steps, need

MIRROR = "http://deb.debian.org/debian"
SECURITY = "http://deb.debian.org/debian-security"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# Debian's releases, and the development suites, which have no separate updates.
RELEASED = ("bookworm", "trixie")
SUITES = (*RELEASED, "sid")
# The settings of apt that say how archives are reached and what of them is believed.
REACH = re.compile(r'(Acquire::(?:https?|ftp|ForceIPv|Retries|Check-)\S*) "(.*)";')
# Package lists older than this are fetched again.
_LISTS_SECONDS = 24 * 3600


def recent(file: Path) -> bool:
    """Return whether what a file says of the package lists is still used.

    A file of the future was written before a wrong clock was set.
    """
    return file.exists() and 0 <= time.time() - file.stat().st_mtime < _LISTS_SECONDS


def sources(suite: str) -> str:
    """The sources.list lines of a suite, with the updates and security fixes of a released one."""
    places = [(MIRROR, suite)]
    if suite in RELEASED:
        places += [(MIRROR, f"{suite}-updates"), (SECURITY, f"{suite}-security")]
    return "".join(f"deb [signed-by={KEYRING}] {mirror} {name} main\n" for mirror, name in places)


def reach() -> dict[str, str]:
    """How this machine's apt reaches archives (proxies, retries, checks): values by setting."""
    shown = subprocess.run(
        [need("apt-config", "apt"), "dump"], capture_output=True, text=True, check=True
    )
    matches = map(REACH.match, shown.stdout.splitlines())
    return {match[1]: match[2] for match in matches if match}


class Apt:
    """apt-get on the packages of one suite, with all its state in the cache."""

    def __init__(self, suite: str, steps: Steps) -> None:
        if suite not in SUITES:
            raise FscaleError(f"unknown Debian suite {suite}; choose one of {', '.join(SUITES)}")
        self.suite = suite
        self.steps = steps
        self.base = cache_root() / "apt" / suite
        self._apt_get = need("apt-get", "apt")
        self._apt_cache = need("apt-cache", "apt")

    @cached_property
    def _reach(self) -> dict[str, str]:
        return reach()

    def _options(self) -> list[str]:
        pairs = {
            **self._reach,
            "Dir": self.base,
            "Dir::State": self.base / "state",
            "Dir::State::status": self.base / "status",
            "Dir::Cache": self.base / "cache",
            "Dir::Etc": self.base / "etc",
            "Dir::Etc::parts": "/dev/null",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "APT::Architecture": "amd64",
            # The download runs as the caller: the sandbox user cannot write to a home directory.
            "APT::Sandbox::User": "root",
        }
        return [f"-o{name}={value}" for name, value in pairs.items()]

    def _update(self) -> None:
        """Fetch the lists unless they are recent; apt-get fails if another process fetches them."""
        self.base.mkdir(parents=True, exist_ok=True)
        with locked(self.base / "lock"):
            self._update_alone()

    def _update_alone(self) -> None:
        stamp = self.base / "updated"
        if recent(stamp):
            return
        for directory in ("state/lists/partial", "cache/archives/partial", "etc"):
            (self.base / directory).mkdir(parents=True, exist_ok=True)
        (self.base / "status").touch()
        (self.base / "etc" / "sources.list").write_text(sources(self.suite))
        try:
            self.steps.run(
                # Without this mode, apt-get only warns if it cannot reach a mirror.
                [self._apt_get, *self._options(), "-oAPT::Update::Error-Mode=any", "-qq", "update"],
                f"fetching the package lists of {self.suite}",
            )
        except StepError as error:
            reason = str(error).splitlines()[-1]
            if not any((self.base / "state" / "lists").glob("*_Packages*")):
                raise FscaleError(
                    f"cannot fetch the package lists of {self.suite}: {reason}; connect this "
                    "machine to a network, or give a local --kernel (a bzImage, a .deb or a tree)"
                ) from None
            self.steps.note(f"{reason}; using the package lists that were fetched before")
            return
        stamp.touch()

    def latest_kernel(self) -> str:
        """The image package on which `linux-image-amd64` currently depends."""
        self._update()
        packages = self._needs("linux-image-amd64", "linux-image-")
        if not packages:
            raise FscaleError(f"Debian suite {self.suite} has no package linux-image-amd64")
        return packages[0]

    def kernel_parts(self, package: str) -> list[str]:
        """The packages that contain the kernel of an image package.

        Up to Debian 13 that is the package itself; later ones have separate packages for the kernel
        and its modules.
        """
        self._update()
        parts = ("linux-base-", "linux-binary-", "linux-modules-")
        return self._needs(package, *parts) or [package]

    def _needs(self, package: str, *prefixes: str) -> list[str]:
        """The dependencies of a package whose names have the given prefix."""
        shown = subprocess.run(
            [self._apt_cache, *self._options(), "show", "--no-all-versions", package],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # what there is not is said by who looks for it
            text=True,
            check=False,
        )
        depends = re.search(r"^Depends: (.*)$", shown.stdout, re.MULTILINE)
        names = re.findall(r"(?:^|, )([^ ,]+)", depends[1]) if depends else []
        return [name for name in names if name.startswith(prefixes)]

    def download(self, packages: Sequence[str], directory: Path) -> list[Path]:
        """Fetch the .deb of each package into `directory`; StepError if there is none."""
        self._update()
        self.steps.run(
            [self._apt_get, *self._options(), "-qq", "download", *packages],
            f"fetching {' and '.join(packages)} of {self.suite}",
            cwd=directory,
        )
        return sorted(directory.glob("*.deb"))
