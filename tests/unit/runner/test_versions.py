# SPDX-License-Identifier: GPL-2.0-only
"""The versions that a run records, by which a comparison tells what else changed."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from fscale.apps.adapter import AppLoad
from fscale.apps.process import command_output
from fscale.runner.prepare import _versions
from tests.support.synthetic import machine


def app_load(version: str, lacks: str | None = None) -> AppLoad:
    app = SimpleNamespace(
        **dict.fromkeys(("descriptor", "sliced", "oversubscribes", "user")),
        missing=lambda: lacks,
        version=lambda: version,
    )
    return AppLoad(cast(Any, app))


def test_programs_of_loads_and_the_c_library(tmp_path: Path) -> None:
    (tmp_path / "bench").touch()
    loads = {"jobs": app_load("fio-3.40"), "mail": app_load("", lacks="exim"), "other": None}
    selection: Any = SimpleNamespace(loads=loads, filesystems={})
    found = _versions(machine(1), selection, {"jobs", "mail"}, tmp_path / "bench")
    assert found["libc"].startswith(("glibc ", "musl"))
    programs = {name: value for name, value in found.items() if name.startswith("program of ")}
    assert programs == {"program of jobs": "fio-3.40"}


def test_a_program_that_cannot_be_started_has_an_unknown_version(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF of another machine")
    program.chmod(0o755)
    assert command_output(str(program), "--version") == "unknown"
