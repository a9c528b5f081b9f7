# SPDX-License-Identifier: GPL-2.0-only
"""Input files of tasks by their content: kernels, images, modules. A machine fetches each once."""

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from fscale.model import paths
from fscale.model.errors import FscaleError

CHUNK = 8 << 20
_DIGEST = re.compile(r"[0-9a-f]{64}")


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Objects:
    """The files that the tasks of a plan need, where they lie on the machine that plans."""

    def __init__(self) -> None:
        self.paths: dict[str, Path] = {}

    def add(self, path: Path) -> str:
        """Add a file and return its digest."""
        digest = digest_of(path)
        self.paths[digest] = path
        return digest

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

    def put(self, digest: str, chunks: Iterable[bytes]) -> Path:
        """Store a file; it is complete or absent, also if several processes store it at once.

        Raises:
            FscaleError: the content does not have this digest.
            OSError: the disk is full, or the directory cannot be written.
        """
        final = self.path(digest)
        self.directory.mkdir(parents=True, exist_ok=True)
        whole = hashlib.sha256()
        descriptor, name = tempfile.mkstemp(dir=self.directory, prefix=f".{digest[:16]}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                for chunk in chunks:
                    whole.update(chunk)
                    file.write(chunk)
            if whole.hexdigest() != digest:
                raise FscaleError(
                    f"a file that should be {digest[:16]} is {whole.hexdigest()[:16]}; it was "
                    "damaged on its way"
                )
            Path(name).replace(final)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        return final
