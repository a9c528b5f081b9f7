# SPDX-License-Identifier: GPL-2.0-only
"""The programs of fscale's own C code, which are compiled when they are needed.

A need is a program, or a file with its path, or several of these that do the same.
"""

import fcntl
import os
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

from fscale.model import filetest, paths
from fscale.model.errors import FscaleError, MissingTool
from fscale.system.executor import which

Need = str | tuple[str, ...]

COMPILER: dict[Need, str] = {"gcc": "build-essential", "make": "build-essential"}
_JANSSON: dict[Need, str] = {"/usr/include/jansson.h": "libjansson-dev"}
_BPF: dict[Need, str] = {"clang": "clang", "/usr/include/bpf/libbpf.h": "libbpf-dev"}
_URING: dict[Need, str] = {"/usr/include/liburing.h": "liburing-dev"}
# Debian has the script among the files of a package; it needs only perl, which every Debian has.
FLAME_GRAPHS = (
    "inferno-flamegraph",
    "flamegraph.pl",
    "/usr/share/perl5/Devel/NYTProf/flamegraph.pl",
)
# Directory of the package -> what compiles it -> the Debian package that brings that.
COMPILED_WITH: dict[str, dict[Need, str]] = {
    "apps": COMPILER,
    "calibrate": COMPILER | _JANSSON,
    "commute": COMPILER,
    "lockprofile": COMPILER | _BPF | _JANSSON,
    "microbench": COMPILER | _JANSSON | _URING,
    "sim": COMPILER,
}
_LINES = 4  # of a compiler's errors
PERIOD = 5  # seconds


def found(need: Need) -> str | None:
    """The path of what is needed; None if this machine has nothing of it."""
    for one in (need,) if isinstance(need, str) else need:
        path = one if one.startswith("/") and filetest.exists(one) else which(one)
        if path is not None:
            return path
    return None


def made(program: Path) -> Path:
    """Compile a program of `paths.BUILD` unless it is newer than its sources, and return its path.

    A package that contains compiled programs compiles none. Any other path is returned as it is.

    Raises:
        MissingTool: what compiles it is not installed, or a package with programs lacks it.
        FscaleError: it cannot be compiled, or not written there.
    """
    part = program.parent.name
    if program.parent.parent != paths.BUILD or part not in COMPILED_WITH:
        return program
    if paths.BUILD == paths.PREBUILT:
        if not program.exists():
            raise MissingTool(f"{program.name} is not among the compiled programs in {paths.BUILD}")
        return program
    _make(part, program.exists())
    if not program.exists():  # a Makefile leaves out what this machine has no compiler for
        raise MissingTool(f"{program.name} cannot be compiled; {_advice(part)}")
    return program


def why_not(program: Path) -> str | None:
    """Return why a program of `paths.BUILD` cannot be had; None if it is there now."""
    try:
        made(program)
    except FscaleError as error:
        return str(error)
    return None


def _advice(part: str) -> str:
    return f"apt-get install {' '.join(sorted(set(COMPILED_WITH[part].values())))}"


def _followed(compiling: subprocess.Popen[str], part: str, out: Path) -> str:
    """Wait for make and return its messages; print every PERIOD how far it is."""
    began = time.monotonic()
    try:
        while True:
            try:
                return compiling.communicate(timeout=PERIOD)[1]
            except subprocess.TimeoutExpired:
                files = sum(len(names) for _, _, names in os.walk(out))
                waited = time.monotonic() - began
                print(f"compiling {part}: {files} files after {waited:.0f} s", file=sys.stderr)
    finally:
        compiling.kill()  # if this command ends before it


@cache
def _make(part: str, there: bool) -> None:
    """Run a part's Makefile, one process at a time. It is quiet about what is up to date."""
    make = which("make")
    if make is None:
        if there:
            return
        raise MissingTool(f"{part} cannot be compiled without make; {_advice(part)}")
    sources, out = paths.PACKAGE / part, paths.BUILD / part
    if not there:
        print(f"compiling {part} into {out}", file=sys.stderr)
    with (sources / "Makefile").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        jobs = len(os.sched_getaffinity(0))
        with subprocess.Popen(
            [make, "-s", "-C", str(sources), f"-j{jobs}", f"OUT={out}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PATH": paths.TOOL_PATH, "LC_ALL": "C", "MAKEFLAGS": ""},
        ) as compiling:
            messages = _followed(compiling, part, out)
    if compiling.returncode:
        errors = [line for line in messages.splitlines() if "rror" in line]
        reason = "; ".join(errors[:_LINES]) or "no reason given"
        raise FscaleError(f"{part} cannot be compiled into {out}: {reason}; {_advice(part)}")
