# SPDX-License-Identifier: GPL-2.0-only
"""Programs are compiled when they are needed, wherever fscale is installed, or it says why not."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fscale.model import paths
from fscale.model.errors import FscaleError, MissingTool
from fscale.system import programs

pytestmark = pytest.mark.slow


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of an installation of its own, which is not compiled yet."""
    package, build = tmp_path / "fscale", tmp_path / "build"
    package.mkdir()
    (package / "microbench").mkdir()
    shutil.copy(paths.PACKAGE / "microbench/compile.mk", package / "microbench")
    shutil.copytree(paths.PACKAGE / "calibrate", package / "calibrate")
    monkeypatch.setattr(paths, "PACKAGE", package)
    monkeypatch.setattr(paths, "BUILD", build)
    programs._make.cache_clear()
    return build / "calibrate" / "fscale-primitives"


def made_anew(program: Path) -> Path:
    """As the next command does."""
    programs._make.cache_clear()
    return programs.made(program)


def test_it_is_compiled_once_and_again_when_its_source_changes(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert programs.made(program) == program
    assert os.access(program, os.X_OK)
    assert str(program.parent) in capsys.readouterr().err
    first = program.stat().st_mtime_ns
    made_anew(program)
    assert program.stat().st_mtime_ns == first
    assert not capsys.readouterr().err
    source = paths.PACKAGE / "calibrate" / "main.c"
    later = first + 10**9
    os.utime(source, ns=(later, later))
    made_anew(program)
    assert program.stat().st_mtime_ns != first


def test_it_says_how_far_it_is(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(programs, "PERIOD", 0.2)
    assert os.access(programs.made(program), os.X_OK)
    first, *others = capsys.readouterr().err.splitlines()
    assert first.startswith("compiling calibrate into ")
    assert all(re.fullmatch(r"compiling calibrate: \d+ files after \d+ s", line) for line in others)
    assert others


def test_two_commands_compile_it_one_after_the_other(program: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from fscale.model import paths; "
        f"paths.PACKAGE, paths.BUILD = Path({str(paths.PACKAGE)!r}), Path({str(paths.BUILD)!r}); "
        "from fscale.system.programs import made; made(Path(sys.argv[1]))"
    )
    argv = [sys.executable, "-c", code, str(program)]
    both = [subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for one in both:
        said = one.communicate()[1]
        assert one.returncode == 0, said
    assert os.access(program, os.X_OK)


def test_without_make_the_packages_are_named(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "which", lambda _: None)
    with pytest.raises(MissingTool, match="libjansson-dev"):
        programs.made(program)
    assert "libjansson-dev" in (programs.why_not(program) or "")


def test_without_make_a_program_that_is_there_is_used(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs.made(program)
    monkeypatch.setattr(programs, "which", lambda _: None)
    assert made_anew(program) == program


def test_a_header_that_is_missing_is_in_the_message(program: Path) -> None:
    main = paths.PACKAGE / "calibrate" / "main.c"
    main.write_text(f"#include <no-such-header.h>\n{main.read_text()}")
    with pytest.raises(FscaleError, match=r"no-such-header\.h.*libjansson-dev"):
        programs.made(program)


@pytest.mark.parametrize("there", [True, False])
def test_a_package_with_compiled_programs_compiles_none(
    program: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    monkeypatch.setattr(paths, "PREBUILT", paths.BUILD)
    monkeypatch.setattr(programs, "which", lambda _: pytest.fail("make was looked for"))
    if there:
        program.parent.mkdir(parents=True)
        program.touch()
        assert programs.made(program) == program
    else:
        with pytest.raises(MissingTool, match="fscale-primitives"):
            programs.made(program)


def test_other_programs_are_left_alone(program: Path, tmp_path: Path) -> None:
    for own in (tmp_path / "own", paths.BUILD / "validation" / "own"):
        assert programs.made(own) == own
    assert not program.exists()


def test_a_place_that_cannot_be_written_is_named(program: Path) -> None:
    paths.BUILD.write_text("a file where a directory should be")
    with pytest.raises(FscaleError, match=str(paths.BUILD)):
        programs.made(program)
