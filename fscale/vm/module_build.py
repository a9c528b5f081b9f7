# SPDX-License-Identifier: GPL-2.0-only
"""Builds modules and tools of file systems with local sources for a guest's kernel."""

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fscale.model import catalogue, filetest, paths
from fscale.model.config import FileSystem
from fscale.model.errors import FscaleError
from fscale.model.variant import split_partitions
from fscale.vm import kbuild
from fscale.vm.cache import digest, entry, file_digest
from fscale.vm.initramfs import module_name
from fscale.vm.kernel import Kernel, lacking
from fscale.vm.place import TOOLS, Job
from fscale.vm.steps import Steps, need


@dataclass(frozen=True)
class Parts:
    """Additional parts for a guest: modules to load, and tools as /control/bin/NAME."""

    modules: tuple[Path, ...] = ()
    files: Mapping[str, Path] = field(default_factory=dict)

    def besides(self, given: Iterable[Path]) -> list[Path]:
        """The modules without those that a module given by the user replaces by its name."""
        replaced = {own_name(path) for path in given}
        return [path for path in self.modules if own_name(path) not in replaced]

    def with_given(self, given: Sequence[Path]) -> "Parts":
        """These parts with modules given by the user, which replace those of their names."""
        return replace(self, modules=(*self.besides(given), *given))

    def added(self, job: Job) -> Job:
        """The job with these parts, unless a module given by the user replaces them."""
        modules = [*job.modules, *self.besides(job.modules)]
        return replace(job, modules=modules, files={**job.files, **self.files})


def own_name(module: Path) -> str:
    """The kernel's name of a module, which may differ from its file name."""
    return _modinfo(module, "name") or module_name(str(module))


def _modinfo(module: Path, key: str) -> str | None:
    """A field of a module's information; empty if it has none, None if it is not a module."""
    argv = [need("modinfo", "kmod"), "-F", key, str(module)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def _check_built_for(kernel: Kernel, modules: Iterable[Path]) -> None:
    """FscaleError if a module is built for another version of Linux (X.Y) than this kernel's.

    Whether one for another release of the same version can be loaded is the kernel's decision.
    """
    for module in modules:
        magic = _modinfo(module, "vermagic")
        if magic is None:
            what = "is not a kernel module" if filetest.exists(module) else "does not exist"
            raise FscaleError(f"the module {module} {what}; give a .ko file")
        release = magic.partition(" ")[0]
        if release and _version(release) != _version(kernel.release):
            raise FscaleError(
                f"{module} is built for Linux {release}, but the guest's kernel is "
                f"{kernel.release}; choose the module's kernel (--kernel {_version(release)}, or "
                f"kernel={_version(release)} of a side), or build the module for the guest's kernel"
            )


def _version(release: str) -> str:
    """The version of a kernel's release: 6.12.118+deb13-amd64 -> 6.12."""
    return ".".join(release.split(".")[:2])


def check_user_files(user_files: Iterable[Path], names: Iterable[str]) -> None:
    """FscaleError if a TOML file of the user describes no file system, or one that is not named."""
    used = {catalogue.short_name(split_partitions(name)[0]) for name in names}
    for path in user_files:
        if path.stem not in used:
            raise FscaleError(
                f"--filesystem {path}: {path.stem} is not measured; name it with --fs or as a side"
            )
        catalogue.load_toml(path, FileSystem)


def build_parts(
    names: Iterable[str],
    user_files: Iterable[Path],
    kernel: Kernel,
    spec: str,
    tree: Path | None,
    steps: Steps,
    given: Sequence[Path] = (),
) -> Parts:
    """Build the modules and tools of the named file systems from source; cached by content.

    `user_files` are TOML files of the user. `spec` and `tree` are the inputs from which
    `kernels.of_guest` made the kernel. `given` are modules that the user has built: FscaleError if
    they are for another version of Linux, or if the kernel lacks a file system. Unknown names are
    ignored here: the guest refuses them.
    """
    _check_built_for(kernel, given)
    if tree is None and filetest.is_dir(spec):
        tree = Path(spec)
    files = {path.stem: path for path in user_files}
    modules: list[Path] = []
    tools: dict[str, Path] = {}
    for name in dict.fromkeys(split_partitions(name)[0] for name in names):
        named = Path(name) if catalogue.is_path(name) else paths.FILESYSTEMS / f"{name}.toml"
        path = files.get(name, named)
        if not filetest.exists(path):
            continue
        described = catalogue.load_toml(path, FileSystem)
        if not described.source:
            if described.kernel not in map(own_name, given) and lacking(kernel, [described.kernel]):
                raise FscaleError(
                    f"kernel {kernel.release} of {spec} has no {described.kernel}: it is not built "
                    "in, and no module; give the kernel's modules with --modules (for a side with "
                    "modules=), or another kernel"
                )
            continue
        source = (path.parent / described.source).resolve()
        target = kbuild.tree_target(tree) if tree else kbuild.suite_target(spec, kernel.release)
        # File systems of the same source with different options share one module.
        modules += [m for m in kbuild.build_module(source, target, steps) if m not in modules]
        tools |= {f"{TOOLS}{tool.name}": tool for tool in build_tools(source, steps)}
    return Parts(tuple(modules), tools)


def build_tools(source: Path, steps: Steps) -> list[Path]:
    """The programs that `make -C SOURCE OUT=DIR tools` leaves in DIR.

    None if there is no Kbuild beside the Makefile, because then the Makefile is the module's. The
    programs are built on this host: a guest's root has the libraries of the host's Debian suite.
    """
    if not all((source / name).exists() for name in ("Makefile", "Kbuild")):
        return []

    def build(directory: Path) -> None:
        argv = [need("make", "make"), "-s", "-C", str(source), f"OUT={directory}", "tools"]
        steps.run(argv, f"building the tools of {source.name}")
        if not _programs(directory):
            raise FscaleError(
                f"`make -C {source} OUT={directory} tools` left no program in {directory}"
            )

    files = kbuild.module_files(source)
    names = [str(path.relative_to(source)) for path in files]
    return _programs(entry("tools", digest(names, file_digest(files)), build))


def _programs(directory: Path) -> list[Path]:
    return sorted(p for p in directory.iterdir() if p.is_file() and os.access(p, os.X_OK))
