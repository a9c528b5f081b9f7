# SPDX-License-Identifier: GPL-2.0-only
"""File systems that guests build from source: what is built, and what a job gets of it."""

import contextlib
import subprocess
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from fscale.model import paths
from fscale.model.errors import FscaleError
from fscale.vm import kbuild, module_build
from fscale.vm.kernel import Kernel
from fscale.vm.module_build import Parts
from fscale.vm.place import Job
from fscale.vm.steps import StepError, Steps

KERNEL = Kernel("Debian trixie", "6.12.1", Path("i"), Path("r"), None)
MAKEFILE = """\
tools:
	printf '#!/bin/sh\\n' >$(OUT)/mkfs.my && chmod +x $(OUT)/mkfs.my
	touch $(OUT)/mkfs.o
	echo made >>made
"""


@pytest.fixture
def steps():
    return Steps(Console(file=StringIO()))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(module_build, "lacking", lambda _, names: {*names} - {"ext4", "tmpfs"})


@pytest.fixture
def source(tmp_path):
    directory = tmp_path / "my"
    directory.mkdir()
    (directory / "Makefile").write_text(MAKEFILE)
    (directory / "Kbuild").write_text("obj-m := my.o\n")
    return directory


def test_tools_are_built_once_for_the_same_sources(source, steps):
    for _ in range(2):
        (tool,) = module_build.build_tools(source, steps)
        assert tool.name == "mkfs.my"
    assert (source / "made").read_text() == "made\n"
    (source / "a.c").write_text("int a;\n")
    module_build.build_tools(source, steps)
    assert (source / "made").read_text() == "made\nmade\n"


def test_the_makefile_of_a_module_builds_no_tools(source, steps):
    (source / "Kbuild").unlink()
    assert module_build.build_tools(source, steps) == []


def test_tools_that_do_not_build_are_an_error(source, steps):
    (source / "Makefile").write_text("tools:\n\tfalse\n")
    with pytest.raises(StepError, match="building the tools of my"):
        module_build.build_tools(source, steps)
    (source / "Makefile").write_text("tools:\n\ttrue\n")
    with pytest.raises(FscaleError, match="left no program"):
        module_build.build_tools(source, steps)


def test_a_file_system_of_the_users_own_is_built_from_beside_its_file(
    tmp_path, source, steps, monkeypatch
):
    described = tmp_path / "my.toml"
    described.write_text(
        'title = "t"\nkernel = "my"\nmkfs = ["mkfs.my", "{device}"]\nsource = "my"\n'
    )
    asked = []

    def build_module(directory, target, steps):
        asked.append((directory, target.suite, target.release))
        return [Path("/cache/my.ko")]

    monkeypatch.setattr(kbuild, "build_module", build_module)
    parts = module_build.build_parts(
        ["my:2", "my", "ext4", "what?"], [described], KERNEL, "6.12", None, steps
    )
    assert asked == [(source, "trixie", "6.12.1")]
    assert parts.modules == (Path("/cache/my.ko"),)
    assert list(parts.files) == ["bin/mkfs.my"]


def test_nothing_is_built_for_file_systems_of_the_kernels_own(steps):
    assert (
        module_build.build_parts(["ext4", "tmpfs"], [], KERNEL, "no-suite", None, steps) == Parts()
    )


def test_a_kernel_without_the_file_system_is_refused_before_its_boot(tmp_path, steps):
    def build(*given):
        return module_build.build_parts(["xfs"], [], KERNEL, "./bzImage", None, steps, given)

    with pytest.raises(FscaleError, match=r"kernel 6\.12\.1 of \./bzImage has no xfs"):
        build()
    assert build(compiled(tmp_path / "a.ko", "name=xfs")) == Parts()


def test_a_module_given_by_hand_replaces_the_built_one():
    parts = Parts((Path("/cache/my.ko"), Path("/cache/more.ko")), {"bin/a": Path("/cache/a")})
    job = parts.added(Job(argv=["true"], modules=[Path("/home/my.ko")], files={"s": Path("/s")}))
    assert job.modules == [Path("/home/my.ko"), Path("/cache/more.ko")]
    assert job.files == {"s": Path("/s"), "bin/a": Path("/cache/a")}


def compiled(module: Path, information: str) -> Path:
    """A file with one field of a module's information."""
    text = f'char said[] __attribute__((section(".modinfo"))) = "{information}";'
    subprocess.run(["cc", "-x", "c", "-c", "-o", module, "-"], input=text.encode(), check=True)
    return module


@pytest.mark.parametrize(
    ("release", "fits"),
    [
        ("6.12.118+deb13-amd64 SMP preempt mod_unload", True),
        ("6.1.0-56-amd64 SMP", False),
        ("6.120.1 SMP", False),
        ("", True),
    ],
)
def test_a_module_for_another_version_of_linux_is_refused(
    release: str, fits: bool, tmp_path: Path, steps: Steps
) -> None:
    module = compiled(tmp_path / "my.ko", f"vermagic={release}")
    refused = contextlib.nullcontext() if fits else pytest.raises(FscaleError, match=r"6\.12\.1")
    with refused:
        module_build.build_parts(["ext4"], [], KERNEL, "trixie", None, steps, [module])


def test_a_file_that_is_no_module_is_refused(tmp_path: Path, steps: Steps) -> None:
    (tmp_path / "my.ko").write_text("text")
    for module, said in (("my.ko", "is not a kernel"), ("", "is not a"), ("no.ko", "does not")):
        with pytest.raises(FscaleError, match=said):
            module_build.build_parts(
                ["ext4"], [], KERNEL, "trixie", None, steps, [tmp_path / module]
            )


def test_a_file_that_describes_no_file_system_is_refused(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text("text")
    for path in (tmp_path / "my.toml", tmp_path / "none.toml"):
        with pytest.raises(FscaleError, match=path.name):
            module_build.check_user_files([path], ["my", "none"])


def test_a_file_of_a_file_system_that_is_not_measured_is_refused(tmp_path: Path) -> None:
    my, own = tmp_path / "my.toml", tmp_path / "own.v2.toml"
    for path in (my, own):
        path.write_text((paths.FILESYSTEMS / "ext4.toml").read_text())
    named = ["ext4:mount=data=journal", "my:2", "./other/own.v2.toml"]
    module_build.check_user_files([my, own], named)
    with pytest.raises(FscaleError, match=r"--filesystem /x/mine.toml: mine is not measured"):
        module_build.check_user_files([my, Path("/x/mine.toml")], named)


def test_a_module_is_the_same_one_under_another_file_name(tmp_path: Path) -> None:
    given, built = (compiled(tmp_path / name, "name=my") for name in ("given.ko", "my.ko"))
    job = Parts((built, Path("/cache/more.ko"))).added(Job(argv=["true"], modules=[given]))
    assert job.modules == [given, Path("/cache/more.ko")]
