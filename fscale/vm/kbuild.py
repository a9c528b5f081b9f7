# SPDX-License-Identifier: GPL-2.0-only
"""Builds kernels for guests, and modules against Debian's kernels; both cached by content."""

import functools
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from fscale.model.errors import FscaleError
from fscale.vm import rootfs
from fscale.vm.cache import digest, entry, file_digest
from fscale.vm.debian import SUITES, Apt
from fscale.vm.kernel import ALIASES, release_of, resolve
from fscale.vm.steps import Steps, need
from fscale.vm.vmlinux import types_in

FRAGMENTS = Path(__file__).parent / "config"
# kbuild's own needs, by the command that is missing without them.
TOOLS = {"make": "make", "gcc": "gcc", "flex": "flex", "bison": "bison", "bc": "bc"}
# Compiler and headers of a suite, to build modules for its kernel.
BUILDER = ("make", "gcc", "libc6-dev", "pahole")
# What is built lies in a directory with the name of its source, which a comparison shows.
LAYOUT = 2


def configs() -> list[str]:
    """The valid names for `--config`."""
    return sorted(path.stem for path in FRAGMENTS.glob("*.config"))


def fragment(name: str) -> str:
    """The options of a configuration: the default ones, then its own."""
    path = FRAGMENTS / f"{name}.config"
    if not path.exists():
        raise FscaleError(
            f"unknown kernel configuration {name}; choose one of {', '.join(configs())}"
        )
    text = (FRAGMENTS / "default.config").read_text()
    return text if name == "default" else text + path.read_text()


def unmet_options(wanted: str, config: str) -> list[str]:
    """The lines of a fragment that a .config does not fulfil; the last line of an option counts."""
    asked: dict[str, str] = {}
    for line in wanted.splitlines():
        if option := re.match(r"(?:# )?(CONFIG_\w+)(?:=| is not set)", line):
            asked[option[1]] = line
    have = set(config.splitlines())
    return [
        line
        for line in asked.values()
        if line not in have
        and not (line.endswith("is not set") and f"{line[2:-11]}=" not in config)
    ]


def source_digest(source: Path) -> str:
    """16 hexadecimal digits over names, sizes and times of a source tree, without build products.

    Reading a kernel tree in full takes longer than an incremental build.
    """
    whole = hashlib.sha256()
    for directory, names, files in os.walk(source):
        names[:] = sorted(name for name in names if name not in (".git", "debian"))
        for name in sorted(files):
            if name.endswith((".o", ".ko", ".cmd", ".a", ".mod", ".mod.c")):
                continue
            state = (Path(directory) / name).lstat()
            whole.update(f"{directory}/{name} {state.st_size} {state.st_mtime_ns}\n".encode())
    return whole.hexdigest()[:16]


def source_version(suite: str, latest: Callable[[], str]) -> str:
    """The version of a suite's kernel, such as 6.12, as in the name of its source package.

    A released suite keeps it. For the others `latest` is asked for the newest image package.
    """
    for version, name in ALIASES.items():
        if name == suite:
            return version
    package = latest()
    if not (match := re.match(r"linux-image-(\d+\.\d+)", package)):
        raise FscaleError(f"Debian suite {suite}: the package {package} has no kernel version")
    return match[1]


def debian_source(suite: str, steps: Steps) -> Path:
    """The unpacked source of a suite's kernel."""
    version = source_version(suite, Apt(suite, steps).latest_kernel)

    def build(directory: Path) -> None:
        (deb,) = Apt(suite, steps).download([f"linux-source-{version}"], directory)
        steps.run(
            [need("dpkg-deb", "dpkg"), "-x", str(deb), str(directory / "deb")],
            f"unpacking {deb.name}",
        )
        (archive,) = (directory / "deb").rglob("linux-source-*.tar.xz")
        (directory / "source").mkdir()
        steps.run(
            [
                *("tar", "-C", str(directory / "source"), "--strip-components=1"),
                *("-xf", str(archive)),
            ],
            f"unpacking {archive.name}",
        )
        shutil.rmtree(directory / "deb")
        deb.unlink()

    return entry("source", digest("debian", suite, version), build) / "source"


def build_kernel(source: str, config: str, jobs: int, steps: Steps) -> Path:
    """Build `source` (a tree, or a Debian suite) with a configuration of ours; the built tree.

    The tree can be given to `--kernel-tree`. An unchanged source is not built again.
    """
    for tool, package in TOOLS.items():
        need(tool, package)
    if not Path("/usr/include/libelf.h").exists():
        raise FscaleError("libelf.h is missing; apt-get install libelf-dev")
    wanted = fragment(config)
    suite = ALIASES.get(source, source)
    tree = debian_source(suite, steps) if suite in SUITES else Path(source).resolve()
    if not (tree / "Kconfig").exists():
        raise FscaleError(f"{tree} is not a kernel source tree: it has no Kconfig")
    if (tree / ".config").exists():
        raise FscaleError(
            f"{tree} was built in place, so kbuild refuses to build it in another directory; run "
            "`make mrproper` there, or give the built tree with --kernel-tree"
        )

    def build(directory: Path) -> None:
        asked = directory / "fragment"
        asked.write_text(wanted)
        built = directory / tree.name
        make = ["make", "-s", "-C", str(tree), f"O={built}"]
        built.mkdir()
        steps.run([*make, f"KCONFIG_ALLCONFIG={asked}", "allnoconfig"], f"configuring {config}")
        lacking = unmet_options(wanted, (built / ".config").read_text())
        if lacking:
            raise FscaleError(
                f"{tree} does not support {', '.join(lacking)}: a dependency was renamed or is "
                "missing"
            )
        steps.run(
            ["nice", "-n", "19", *make, f"-j{jobs}", "bzImage", "modules"],
            f"building with {jobs} jobs (about ten minutes on two cores)",
        )
        steps.note(f"built {config}")

    key = digest(LAYOUT, str(tree), source_digest(tree), wanted)
    return entry("built", key, build) / tree.name


def module_files(source: Path) -> list[Path]:
    """The files of a module's source directory, build products left out."""
    return sorted(
        path
        for path in source.rglob("*")
        if path.is_file()
        and not path.name.endswith(".mod.c")
        and (path.suffix in (".c", ".h") or path.name in ("Makefile", "Kbuild"))
    )


@dataclass(frozen=True)
class BuildTarget:
    """The kernel for which to build a module: a Debian suite's, or a built tree."""

    suite: str | None
    release: str
    tree: Path | None
    key: str


def suite_target(kernel: str, release: str) -> BuildTarget:
    """The kernel `release` of a Debian suite, which `kernel` names as `--kernel` does."""
    suite = kernel.partition(":")[0]
    suite = ALIASES.get(suite, suite)
    if suite not in SUITES:
        raise FscaleError(
            f"cannot build a module for {kernel}; use {' or '.join(SUITES)}, or a built tree "
            "(--kernel-tree)"
        )
    return BuildTarget(suite, release, None, release)


def tree_target(tree: Path) -> BuildTarget:
    """A built kernel tree (or its O= directory)."""
    image = tree / "arch" / "x86" / "boot" / "bzImage"
    if not image.exists():
        raise FscaleError(f"{tree} contains no arch/x86/boot/bzImage; run make there first")
    tree = tree.resolve()
    return BuildTarget(None, release_of(image), tree, f"{tree} {file_digest([image])}")


def latest(kernel: str, steps: Steps) -> BuildTarget:
    """The newest kernel of a Debian suite."""
    suite = ALIASES.get(kernel, kernel)
    release = Apt(suite, steps).latest_kernel().removeprefix("linux-image-")
    return suite_target(suite, release)


def build_module(source: Path, target: BuildTarget, steps: Steps) -> list[Path]:
    """Build an out-of-tree module; the .ko files, cached by content.

    For a Debian kernel it is built in a Debian tree of the suite, with that suite's compiler: the
    headers of 6.12 do not work with the gcc of bookworm. That needs root, for chroot.

    Raises:
        FscaleError: it is no source of a module, or does not build one.
    """
    files = module_files(source)
    if not any((source / name).exists() for name in ("Makefile", "Kbuild")):
        raise FscaleError(f"{source} is not the source of a module: it has no Makefile or Kbuild")

    def build(directory: Path) -> None:
        if target.suite is None:
            work = directory / "work"
            make = ["make", "-s", "-C", str(target.tree)]
            inside = work
        else:
            headers = f"linux-headers-{target.release}"
            builder = rootfs_builder(target.suite, headers, steps)
            inside = Path("/build") / directory.name
            work = builder / inside.relative_to("/")
            make = [*inside_of(builder), "make", "-s", "-C", f"/usr/src/{headers}"]
        try:
            _copy(files, source, work)
            steps.run(
                [*make, f"M={inside}", "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"],
                f"building {source.name} for {target.release}",
            )
            if target.suite is not None:
                _add_types(work, builder, target, steps)
            named = directory / source.resolve().name
            named.mkdir()
            objects = list(work.rglob("*.ko"))
            if not objects:
                raise FscaleError(
                    f"the Makefile of {source} builds no module for {target.release}: there is no "
                    ".ko; its obj-m may need an option, as in `obj-m += NAME.o`"
                )
            for path in objects:
                shutil.copy(path, named / path.name)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    if target.suite is not None and os.geteuid() != 0:
        raise FscaleError(
            "building in a Debian tree needs root (chroot); build the module yourself and give "
            "it with --module"
        )
    names = [str(path.relative_to(source)) for path in files]
    made = entry("module", digest(LAYOUT, target.key, BUILDER, names, file_digest(files)), build)
    return sorted(made.glob("*/*.ko"))


def _add_types(work: Path, builder: Path, target: BuildTarget, steps: Steps) -> None:
    """Give modules their types (BTF), on top of the kernel's, so that profiles name members.

    The kernel's own makefile needs a vmlinux for that, which the headers package does not contain.
    """
    kernel = resolve(f"{target.suite}:linux-image-{target.release}", steps)
    types = types_in(kernel.image.read_bytes())
    if types is None:
        return
    (work / "kernel.btf").write_bytes(types)
    inside = Path("/") / work.relative_to(builder)
    for path in work.rglob("*.ko"):
        steps.run(
            [
                *(*inside_of(builder), "env", "LLVM_OBJCOPY=objcopy", "pahole", "-J"),
                *("--btf_base", str(inside / "kernel.btf"), str(inside / path.relative_to(work))),
            ],
            f"adding types to {path.name}",
        )


@functools.cache
def inside_of(tree: Path) -> tuple[str, ...]:
    """What runs a command with this Debian tree as its root.

    objtool of newer kernels reads /proc/self/maps, so /proc is mounted, for the command alone.
    Where that is not allowed (in a container) older kernels can be built for.
    """
    mounted = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    ways = ["private"]
    # In a chroot "/" need not be a mount point, and then its propagation cannot be changed. On a
    # shared mount /proc would appear outside, too.
    if " shared:" not in Path("/proc/self/mountinfo").read_text():
        ways.append("unchanged")
    for propagation in ways:
        with_proc = (*mounted, "--propagation", propagation, f"--root={tree}")
        tried = subprocess.run([*with_proc, "true"], capture_output=True, check=False)
        if tried.returncode == 0:
            return with_proc
    return ("chroot", str(tree))


def rootfs_builder(suite: str, headers: str, steps: Steps) -> Path:
    """A Debian tree with the compiler and the kernel headers of `suite`."""

    def build(directory: Path) -> None:
        packages = [*BUILDER, headers]
        rootfs.bootstrap(suite, "minbase", packages, directory / "tree", steps)

    return entry("builder", digest(suite, headers, BUILDER), build) / "tree"


def _copy(files: Iterable[Path], source: Path, target: Path) -> None:
    for path in files:
        copied = target / path.relative_to(source)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copied)
