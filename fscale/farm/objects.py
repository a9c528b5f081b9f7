# SPDX-License-Identifier: GPL-2.0-only
"""Input files of tasks by their content: kernels, images, modules. A machine fetches each once."""

import hashlib
import os
import re
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from fscale.model import paths
from fscale.model.errors import FscaleError
from fscale.model.files import remove_old

CHUNK = 8 << 20
KEPT_DAYS = 7
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SENDER = re.compile(r"[A-Za-z0-9-]{1,64}")


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Objects:
    """The files that the tasks of a plan need, where they lie on the machine that plans."""

    def __init__(self) -> None:
        self.paths: dict[str, Path] = {}
        self._digests: dict[Path, str] = {}

    def add(self, path: Path) -> str:
        """Add a file and return its digest; a file that was added is not read again."""
        if path not in self._digests:
            self._digests[path] = digest_of(path)
            self.paths[self._digests[path]] = path
        return self._digests[path]

    def chunks(self, digest: str) -> Iterator[bytes]:
        """Yield the content of a file in pieces of 8 MiB."""
        with self.paths[digest].open("rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk


class Cache:
    """The files that this machine has got, `~/.cache/fscale/objects` by default."""

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory or paths.cache_dir("objects")

    def path(self, digest: str) -> Path:
        """Return the place of a file, which need not exist.

        Raises:
            FscaleError: the digest is not a SHA-256.
        """
        if not _DIGEST.fullmatch(digest):
            raise FscaleError(f"{digest[:80]!r} is not a SHA-256; nothing is read or written")
        return self.directory / digest

    def missing(self, digests: Iterable[str]) -> list[str]:
        """Return which of the files are not here."""
        return sorted({one for one in digests if not self.path(one).is_file()})

    def renew(self, digests: Iterable[str]) -> None:
        """Remove the files that were not wanted for a week, other than these."""
        for path in filter(Path.is_file, map(self.path, digests)):
            os.utime(path)
        if self.directory.is_dir():
            remove_old(self.directory, KEPT_DAYS)

    def put(self, digest: str, chunks: Iterable[bytes]) -> Path:
        """Store a file; it is complete or absent, also if several processes store it at once.

        Raises:
            FscaleError: the content does not have this digest.
            OSError: the disk is full, or the directory cannot be written.
        """
        sender = f"{os.getpid()}-{threading.get_ident()}"
        for number, chunk in enumerate(chunks):
            self.append(digest, sender, number, chunk)
        return self.finish(digest, sender)

    def append(self, digest: str, sender: str, number: int, chunk: bytes) -> None:
        """Store the next piece of a file that a sender, who has a name of its own, sends.

        Raises:
            OSError: the disk is full; the pieces are removed.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        partial = self._partial(digest, sender)
        try:
            with partial.open("ab" if number else "wb") as file:
                file.write(chunk)
        except OSError:
            partial.unlink(missing_ok=True)
            raise

    def finish(self, digest: str, sender: str) -> Path:
        """Turn the pieces of a file into the file.

        Raises:
            FscaleError: the content does not have this digest; the pieces are removed.
        """
        partial, final = self._partial(digest, sender), self.path(digest)
        try:
            if (actual := digest_of(partial)) != digest:
                raise FscaleError(
                    f"a file that should be {digest[:16]} is {actual[:16]}; it was damaged on its "
                    "way"
                )
            partial.chmod(0o444)
            partial.replace(final)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        return final

    def _partial(self, digest: str, sender: str) -> Path:
        if not _SENDER.fullmatch(sender):
            raise FscaleError(f"{sender[:80]!r} cannot be a sender; use letters and digits")
        return self.path(digest).with_name(f".{digest}.{sender}")
