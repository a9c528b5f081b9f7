# SPDX-License-Identifier: GPL-2.0-only
"""Results directories of strangers: how they are made, and what commands may do with them."""

import contextlib
import gzip
import json
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Collection
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from fscale import cli
from fscale.analysis.prediction.curves import Prediction, starts
from fscale.analysis.prediction.stored import keep, stored
from fscale.analysis.reader import load
from fscale.model import paths
from fscale.model.results import CellKey
from tests.support.synthetic import cell, grid, write_run

SECONDS = 20  # of CPU time a command; a good directory takes one or two
HANGS = 250.0  # seconds by the wall clock after which a command waits for something
MEMORY = 2 << 30  # beyond what the tests' own process has
GOLDEN = paths.ROOT / "tests/golden/profiles"
PROFILES = {"locks": "DWOM-ext4-locks", "cpu": "DWOM-xfs-cpu", "offcpu": "DWSL-ext4-offcpu"}


def good(directory: Path) -> Path:
    """A small run with profiles, whose directory has all that commands read."""
    cells = grid([1, 2], 12, ["DWOM"], ["ext4"])
    for name, file in PROFILES.items():
        for cores in (1, 2):
            key = cells[0].key.model_copy(update={"profile": name, "cores": cores})
            path = f"profiles/{key.id}/{name}.json.gz"
            cells.append(cell(key, 1000, profiles={name: path}))
            (directory / path).parent.mkdir(parents=True)
            shutil.copy(GOLDEN / f"{file}.json.gz", directory / path)
    write_run(directory, cells, workloads=["DWOM"], filesystems=["ext4"])
    (directory / "tags.json").write_text('["mine"]')
    results = load(directory)
    (start,) = starts(results)
    made = Prediction(start, {1: 1.0, 2: 2.0, 16: 8.0}, 2, 16, "another machine")
    keep(results, stored(results, results, [made]))
    return directory


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int | None
    output: str
    error: str
    seconds: float


def run(
    scratch: Path, *arguments: object, stdout: int | None = None, encoding: str = "utf-8"
) -> Done:
    """Run a command of fscale in a process with little time and memory; code None: it was killed.

    `stdout`: a descriptor for its standard output, which then is not in what is returned.

    The process is forked, because the imports take longer than most commands.
    """
    out, err = scratch / "stdout", scratch / "stderr"
    out.write_text("")
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        written = os.open(out, os.O_WRONLY) if stdout is None else stdout
        _child(written, err, [str(a) for a in arguments], encoding)
    status = 0
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        if time.monotonic() - began > HANGS:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.005)
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    seconds = time.monotonic() - began
    return Done(code, out.read_text(errors="replace"), err.read_text(errors="replace"), seconds)


def _child(out: int, err: Path, arguments: list[str], encoding: str) -> None:
    code = 99
    try:
        os.dup2(out, 1)
        os.dup2(os.open(err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 2)
        sys.stdout = os.fdopen(1, "w", encoding=encoding, closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        used = int(time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (used + SECONDS, used + SECONDS))
        sys.argv = ["fscale", *arguments]
        cli.main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        import traceback  # noqa: PLC0415 - only here

        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def snapshot(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    """All that is in a directory: mode, time of change, content."""
    found = {}
    for path in [directory, *sorted(directory.rglob("*"))]:
        about = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path.relative_to(directory))] = (about.st_mode, about.st_mtime_ns, content)
    return found


class Page(HTMLParser):
    """What of a page could act: scripts, handlers, addresses, elements that load something."""

    def __init__(self, text: str, own: Collection[str] = ()) -> None:
        """`own`: the addresses that it may have besides places in itself."""
        super().__init__(convert_charrefs=True)
        self.own = own
        self.scripts: list[str] = []
        self.policies: list[str] = []
        self.frames: list[str] = []
        self.acting: list[str] = []
        self._in_script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._in_script = tag == "script" and given.get("type") != "application/json"
        if self._in_script:
            self.scripts.append("")
        if tag in ("object", "embed", "base", "form", "img", "applet", "foreignobject", "set"):
            self.acting.append(tag)
        if tag == "meta" and given.pop("http-equiv", None) is not None:
            self.policies.append(given["content"])
        if tag == "iframe":
            self.frames.append(given.get("src", ""))
            if given.get("sandbox") != "":
                self.acting.append("iframe without sandbox")
        for name, value in given.items():
            if name.startswith("on") or name in ("srcdoc", "http-equiv", "action", "formaction"):
                self.acting.append(f"{tag} {name}={value}")
            if name in ("href", "xlink:href", "src", "data"):
                own = value.startswith("#") or value == "data:," or value in self.own
                flame = tag == "iframe" and value.startswith("data:image/svg+xml;base64,")
                if not own and not flame:
                    self.acting.append(f"{tag} {name}={value}")

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False


def rename(directory: Path, file: Path, **changes: Any) -> Path | None:
    """Change the key of a cell so that file, id and key agree; None where no file can have it."""
    try:
        content = json.loads(file.read_text())
        content["key"] |= changes
        key = CellKey.model_validate(content["key"])
        content["id"] = key.id
        path = directory / "cells" / f"{key.id}.json"
        path.write_text(json.dumps(content))
    except (ValueError, TypeError, KeyError, OSError):  # other changes came before this one
        return None
    if path != file:
        file.unlink()
    return path


def bomb(megabytes: int) -> bytes:
    """A profile of a thousandth of the size that it unpacks to."""
    filler = b" " * (megabytes << 20)
    return gzip.compress(b'{"output": "' + filler + b'"}', mtime=0)
