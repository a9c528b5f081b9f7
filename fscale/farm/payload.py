# SPDX-License-Identifier: GPL-2.0-only
"""What a machine without fscale gets for the tasks that it runs: its code, programs and packages.

A package is copied as it is here, so that machine needs the same version of Python. Compiled code
goes with it, which a machine under test would take a minute to make.
"""

import gzip
import importlib.util
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from fscale.model import paths
from fscale.system.programs import why_not

# Those that `fscale cell` imports; a release of one may not need all of them.
PACKAGES = (
    *("annotated_doc", "annotated_types", "click", "hdrh", "markdown_it", "mdurl", "pydantic"),
    *("pydantic_core", "pygments", "pyhdrh", "rich", "shellingham", "typer", "typing_extensions"),
    "typing_inspection",
)
_BUILD = "build"
_COMPILED = f".{sys.implementation.cache_tag}.pyc"


def payload_files() -> dict[Path, Path]:
    """The files: path below the directory of imports -> file here. Programs are compiled first."""
    package = paths.PACKAGE
    files = {
        Path(package.name) / path.relative_to(package): path
        for path in paths.package_files()
        if _needed(path.relative_to(package))
    }
    for part in (paths.BENCH, paths.LOCKS, paths.APPS / "fscale-personality"):
        if why_not(part) is None:
            built = [path for path in part.parent.iterdir() if path.is_file()]
            files |= {Path(package.name, "build", part.parent.name, p.name): p for p in built}
    for name in PACKAGES:
        files |= _files_of(name)
    return files


def _files_of(name: str) -> Iterator[tuple[Path, Path]]:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return
    origin = Path(spec.origin)
    if not spec.submodule_search_locations:
        yield Path(origin.name), origin
        return
    for path in origin.parent.rglob("*"):
        if path.is_file() and _needed(path.relative_to(origin.parent)):
            yield Path(name) / path.relative_to(origin.parent), path


def _needed(name: Path) -> bool:
    compiled = name.parent.name == "__pycache__"
    return _BUILD not in name.parts and (not compiled or name.name.endswith(_COMPILED))


def write_payload(file: IO[bytes]) -> None:
    """Write the files as a tar archive, with times, by which compiled code knows its source."""
    packed = gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1)
    with packed, tarfile.open(fileobj=packed, mode="w|") as archive:
        for name, path in payload_files().items():
            about = tarfile.TarInfo(str(name))
            state = path.stat()
            about.size, about.mtime = state.st_size, int(state.st_mtime)
            about.mode = 0o755 if state.st_mode & 0o100 else 0o644
            with path.open("rb") as content:
                archive.addfile(about, content)
