# SPDX-License-Identifier: GPL-2.0-only
"""The squashfs images of a guest: the Debian tree, the Python packages, fscale."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pydantic

from fscale.model import catalogue, paths
from fscale.model.errors import FscaleError
from fscale.system.programs import why_not
from fscale.vm import debian
from fscale.vm.cache import digest, entry, file_digest, prune
from fscale.vm.steps import StepError, Steps, need

# Programs that the suite and init/guest.sh need in a guest, besides mkfs.
PACKAGES = (
    "busybox-static",
    "bpftrace",
    "dbench",
    "dmsetup",
    "exim4-daemon-light",
    "fio",
    "kmod",
    "libjansson4",
    "liburing2",
    "linux-perf",
    "mount",
    "procps",
    "python3",
    "rocksdb-tools",
    "strace",
    "sysbench",
    "udev",
    "util-linux",
)
PYTHONS = {"bookworm": (3, 11), "trixie": (3, 13)}
# Packages of tests and analysis: a guest never imports them, and they are most of the size.
HOST_ONLY = (
    *("mypy", "mypyc", "ruff", "selenium", "trio", "hypothesis", "pytest", "_pytest", "uv", "pip"),
    *("setuptools", "scipy", "scipy.libs", "scipy-stubs", "matplotlib", "mpl_toolkits"),
    *("fontTools", "PIL", "pillow.libs", "vl_convert", "ruptures", "fscale"),
    *("dask", "distributed", "tornado", "fsspec", "msgpack", "cloudpickle", "sortedcontainers"),
    *("partd", "locket", "toolz", "tlz", "tblib", "zict", "grimp", "textual"),
    *("pandas", "pandas-stubs", "pyarrow", "duckdb", "_duckdb", "IPython", "ipykernel", "zmq"),
    *("debugpy", "jedi", "parso", "nbclient", "nbformat", "jupyter_client", "jupyter_core"),
)
# Of the package itself: what is made here, and what only its tests need.
SKIPPED = {"build", "__pycache__", "tests"}
SQUASHFS = ("-comp", "lz4", "-no-progress", "-quiet", "-noappend")


def root_suite(python: tuple[int, int] = sys.version_info[:2]) -> str:
    """The Debian suite with the same Python version as this one, else the newest."""
    return next((suite for suite, version in PYTHONS.items() if version == python), [*PYTHONS][-1])


def images(steps: Steps) -> dict[str, Path]:
    """All images of a guest but its kernel's modules, by the names that init/initramfs.sh knows."""
    return {
        "root": root_image(steps),
        "python": python_image(steps),
        "fscale": package_image(steps),
    }


def packages() -> list[str]:
    """The Debian packages of the root, with the mkfs of every file system that is configured."""
    configured = map(catalogue.load_filesystem, catalogue.names(paths.FILESYSTEMS))
    return sorted({*PACKAGES, *(fs.package for fs in configured if fs.package)})


def root_image(steps: Steps) -> Path:
    """The Debian tree as a squashfs image, bootstrapped on the first call (about a minute)."""
    suite, wanted = root_suite(), packages()

    def build(directory: Path) -> None:
        steps.note(f"making the guest's root file system from Debian {suite}, once")
        tree = directory / "tree"
        bootstrap(suite, "minbase", wanted, tree, steps)
        listing = subprocess.run(
            [
                need("dpkg-query", "dpkg"),
                f"--admindir={tree / 'var/lib/dpkg'}",
                "--show",
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        (directory / "packages.txt").write_text(listing.stdout)
        image(tree, directory / "root.squashfs", steps)
        shutil.rmtree(tree)

    return entry("root", digest(suite, wanted), build) / "root.squashfs"


def bootstrap(
    suite: str, variant: str, packages: Iterable[str], target: Path, steps: Steps
) -> None:
    """Make a Debian tree of `suite` in `target` with mmdebstrap."""
    if not debian.KEYRING.exists():
        raise FscaleError(f"{debian.KEYRING} is missing; apt-get install debian-archive-keyring")
    with_updates = [line.strip() for line in debian.sources(suite).splitlines()]
    steps.run(
        [
            need("mmdebstrap", "mmdebstrap"),
            f"--variant={variant}",
            f"--include={','.join(packages)}",
            '--aptopt=APT::Install-Recommends "false"',
            *(f'--aptopt={name} "{value}"' for name, value in debian.reach().items()),
            suite,
            str(target),
            *with_updates,
        ],
        f"bootstrapping {suite} ({variant})",
    )


def image(tree: Path, target: Path, steps: Steps, *options: str) -> None:
    """Pack a directory into a squashfs image whose files belong to root."""
    steps.run(
        [
            need("mksquashfs", "squashfs-tools"),
            str(tree),
            str(target),
            *SQUASHFS,
            *options,
        ],
        f"packing {target.name}",
    )


def python_image(steps: Steps) -> Path:
    """The Python packages that fscale runs with as an image; anew when one changes.

    If the guest's Python is another version than this one, pip fetches them for the guest's.
    """
    packages = Path(pydantic.__file__).parents[1]
    distributions = list(metadata.distributions(path=[str(packages)]))
    installed = sorted(f"{one.name} {one.version}" for one in distributions)
    python = PYTHONS[root_suite()]

    def build(directory: Path) -> None:
        tree = directory / "tree"
        tree.mkdir()
        if python == sys.version_info[:2]:
            _copy_packages(packages, tree)
        else:
            _fetch_packages(distributions, python, tree, steps)
        compile_python(tree, "/python", [tree], steps)
        image(tree, directory / "python.squashfs", steps, "-all-root")
        shutil.rmtree(tree)

    key = digest(installed, python, sys.version_info[:2], HOST_ONLY, 2)
    return entry("python", key, build) / "python.squashfs"


def _copy_packages(packages: Path, tree: Path) -> None:
    for path in packages.iterdir():
        if path.is_dir() and path.name not in HOST_ONLY:
            shutil.copytree(path, tree / path.name, ignore=shutil.ignore_patterns("*.pyc"))
        elif path.is_file():
            shutil.copy(path, tree / path.name)


def _fetch_packages(
    distributions: Iterable[metadata.Distribution],
    python: tuple[int, int],
    tree: Path,
    steps: Steps,
) -> None:
    version = ".".join(map(str, python))
    try:
        steps.run(
            pip_command(distributions, version, tree), f"fetching packages for Python {version}"
        )
    except StepError as error:
        known = " or ".join(f"{major}.{minor}" for major, minor in PYTHONS.values())
        raise FscaleError(
            f"guests have Python {version}, this machine another one, and pip cannot fetch the "
            f"same packages for it: {error}; install fscale with pipx, or in a virtual environment "
            f"of Python {known}"
        ) from None


def pip_command(
    distributions: Iterable[metadata.Distribution], version: str, tree: Path
) -> list[str]:
    """The command that puts the releases that fscale needs here, for another Python, into `tree`.

    Beside them may lie packages of the operating system, which no index has.
    """
    there = {_normalized(one.name): one for one in distributions}
    names = ["fscale"] if "fscale" in there else list(there)
    for name in names:  # grows
        wanted = [one for one in there[name].requires or () if "extra ==" not in one]
        found = (_normalized(re.split(r"[^\w.-]", one)[0]) for one in wanted)
        names += [one for one in found if one in there and one not in names]
    pins = sorted(
        f"{name}=={there[name].version}"
        for name in dict.fromkeys(names)
        if not {name, *(path.parts[0] for path in there[name].files or ())} & {*HOST_ONLY}
    )
    return [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--only-binary", ":all:", "--no-compile"),
        *("--python-version", version, "--target", str(tree), *pins),
    ]


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def compile_python(tree: Path, inside: str, names: Iterable[Path], steps: Steps) -> None:
    """Compile Python files below `tree`, which is `inside` in the guest.

    A guest would need seconds for it at every start, because the images are read-only. It does if
    its Python is another version.
    """
    if PYTHONS[root_suite()] != sys.version_info[:2]:
        return
    steps.run(
        [
            sys.executable,
            *("-m", "compileall", "-q", "-j0", "--invalidation-mode", "unchecked-hash"),
            *("-s", str(tree), "-p", inside),
            *map(str, names),
        ],
        f"compiling the Python files of {inside}",
    )


def package_files() -> dict[Path, Path]:
    """What a guest needs of fscale: path below its import path -> file here, sorted.

    Programs are compiled here; a guest finds them in the package.
    """
    package = paths.PACKAGE
    files = {
        Path(package.name) / path.relative_to(package): path
        for path in paths.package_files()
        if not SKIPPED & set(path.relative_to(package).parts)
    }
    for part in (paths.BENCH, paths.LOCKS, paths.APPS / "fscale-personality"):
        if why_not(part) is None:
            built = [path for path in part.parent.iterdir() if path.is_file()]
            files |= {Path(package.name, "build", part.parent.name, p.name): p for p in built}
    if paths.IN_CLONE:  # tests of file systems have parts that run in guests
        files |= {path.relative_to(paths.ROOT): path for path in paths.ROOT.glob("tests/**/*.py")}
    return dict(sorted(files.items()))


def package_image(steps: Steps) -> Path:
    """fscale as an image, packed anew when one of its files changes."""
    files = package_files()

    def build(directory: Path) -> None:
        tree = directory / "tree"
        for name, path in files.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, tree / name)
        compile_python(tree, "/fscale", [tree], steps)
        image(tree, directory / "fscale.squashfs", steps, "-all-root")
        shutil.rmtree(tree)

    made = entry(
        "package", digest([str(name) for name in files], file_digest(files.values())), build
    )
    # Each change of fscale makes a new entry; the other kinds change rarely.
    prune(made)
    return made / "fscale.squashfs"
