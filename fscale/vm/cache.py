# SPDX-License-Identifier: GPL-2.0-only
"""The cache of everything that takes long to build: root file systems, kernels, images.

An entry is a directory named after the digest of its inputs, so that it never becomes stale. It is
created by a single rename, so that it is complete or absent.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from fscale.model import paths
from fscale.model.errors import FscaleError
from fscale.model.files import remove_old


def cache_root() -> Path:
    """`$XDG_CACHE_HOME/fscale/vm`, by default in `~/.cache`."""
    return paths.cache_dir("vm")


def digest(*parts: object) -> str:
    """16 hexadecimal digits of the SHA-256 of JSON-able parts."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def file_digest(paths: Iterable[Path]) -> str:
    """16 hexadecimal digits over the contents of files, in the order given."""
    whole = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()[:16]


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a path: only one process is in the `with` block; the others wait."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def entry(kind: str, key: str, build: Callable[[Path], None]) -> Path:
    """The cache entry `kind/key`; if absent, `build` fills a temporary directory that becomes it.

    If two processes need the same entry, the second waits until the first has built it.
    """
    directory = cache_root() / kind
    final = directory / key
    if final.is_dir():
        return final
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FscaleError(
            f"cannot create {directory}: {error.strerror}; set XDG_CACHE_HOME to a directory with "
            "about 2 GiB of space"
        ) from None
    with locked(directory / f".{key}.lock"):
        if final.is_dir():
            return final
        partial = Path(tempfile.mkdtemp(dir=directory, prefix=f".{key}."))
        try:
            # mkdtemp makes the directory private, but other users read the cache.
            partial.chmod(0o755)
            build(partial)
            partial.rename(final)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    return final


def prune(keep: Path, days: float = 7) -> None:
    """Remove the entries of the same kind as `keep` that were last kept more than `days` ago."""
    os.utime(keep)
    remove_old(keep.parent, days)
