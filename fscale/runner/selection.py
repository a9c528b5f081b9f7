# SPDX-License-Identifier: GPL-2.0-only
"""What a request selects: its media, file systems, profilers and loads, all of which exist."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fscale.model import catalogue, variant
from fscale.model.bench import Descriptor
from fscale.model.config import FileSystem, Medium, Suite
from fscale.model.errors import FscaleError
from fscale.model.load import Load
from fscale.model.results import Mounted
from fscale.model.variant import Variant
from fscale.runner import guard, microbench, options
from fscale.runner.profilers import Profiler, parse_names, usable
from fscale.runner.request import Request, parse_options, read_suite
from fscale.runner.storage import mounted
from fscale.system.executor import Executor


@dataclass(frozen=True)
class Selection:
    """What a request selects, by the names in results."""

    suite: Suite
    """with the requested profilers, not the usable ones: a resumed run may find more of them"""
    described: Mapping[str, Medium]
    """the media as they are described; `media` adds the directory to be measured by default"""
    media: Mapping[str, Medium]
    variants: Mapping[str, Variant]
    filesystems: Mapping[str, FileSystem | None]  # None: the file system of the directory
    existing: Mounted | None  # the mount below the directory, if that is the medium
    profilers: Mapping[str, Profiler]
    unusable: Mapping[str, str]  # profiler -> why it is left out
    loads: Mapping[str, Load]

    @property
    def descriptors(self) -> dict[str, Descriptor]:
        """The descriptors of all loads by id."""
        return {name: load.descriptor for name, load in self.loads.items()}


def select(request: Request) -> Selection:
    """Find what a request names.

    Raises:
        FscaleError: something does not exist, or a directory cannot be measured.
    """
    asked = read_suite(request)
    described = media_of(request, asked)
    media = _with_directory(described, request.output)
    variants = variants_of(request, asked, media)
    profilers, unusable = profilers_of(asked)
    existing = any(m.kind == "dir" for m in media.values())
    loads = loads_of(request, asked)
    return Selection(
        suite=_resolved(request, asked, loads).model_copy(
            update={"media": list(media), "filesystems": list(variants)}
        ),
        described=described,
        media=media,
        variants=variants,
        filesystems={
            name: None if existing else catalogue.load_variant(one)
            for name, one in variants.items()
        },
        existing=existing_mount(media),
        profilers=profilers,
        unusable=unusable,
        loads=loads,
    )


def check(request: Request, elsewhere: Collection[str]) -> Suite:
    """Check what can be checked of a request for another machine, and return its suite.

    `elsewhere` are names of file systems that only the other machine has.

    Raises:
        FscaleError: a key, a name or an option of a workload is not valid.
    """
    suite = read_suite(request)
    media_of(request, suite)
    parse_names(",".join(suite.profiles))
    for name in suite.filesystems:
        asked = variant.parse(name)
        if asked.name not in elsewhere:
            catalogue.load_variant(asked)
    _resolved(request, suite, loads_of(request, suite))
    return suite


def media_of(request: Request, suite: Suite) -> dict[str, Medium]:
    """Load the media, by short name, with the path of the requested device or directory."""
    media = {}
    for name in suite.media:
        described = catalogue.load_medium(name)
        path = {"device": request.device, "dir": request.directory}.get(described.kind)
        if path:
            described = described.model_copy(update={"path": str(path.absolute())})
        media[catalogue.short_name(name)] = described
    return media


def _with_directory(media: Mapping[str, Medium], output: Path) -> dict[str, Medium]:
    """Let a directory without a path be the one of the results."""
    beside_results = {"path": str(guard.existing(output))}
    return {
        name: m if m.path or m.kind != "dir" else m.model_copy(update=beside_results)
        for name, m in media.items()
    }


def filesystem_of(where: Path) -> str:
    """Return the name of the file system below a path.

    Raises:
        FscaleError: it cannot be found out.
    """
    argv = ["findmnt", "--noheadings", "--output", "FSTYPE", "--target", str(where)]
    try:
        return Executor().run(argv).split()[-1]
    except FscaleError:
        # A chroot does not see the mount of its root, so findmnt fails. ext2, ext3 and ext4 share a
        # magic number and a driver.
        kind = Executor().run(["stat", "--file-system", "--format=%T", str(where)]).strip()
        return "ext4" if kind == "ext2/ext3" else kind


def variants_of(request: Request, suite: Suite, media: Mapping[str, Medium]) -> dict[str, Variant]:
    """Parse the file systems of a suite, by their names in results.

    If an existing directory is measured, its own file system replaces them.

    Raises:
        FscaleError: one is not valid, two of them would have the same name, or the directory cannot
            be measured or does not fit what the user asked for.
    """
    asked = [variant.parse(name) for name in dict.fromkeys(suite.filesystems)]
    if any(m.kind == "dir" for m in media.values()):
        asked = [_of_directory(request, asked, media)]
    variants: dict[str, Variant] = {}
    for one in asked:
        if one.label in variants:
            raise FscaleError(
                f"two file systems would be called {one.label} in the results; rename the file "
                f"{one.text}"
            )
        variants[one.label] = one
    return variants


def _of_directory(
    request: Request, asked: Sequence[Variant], media: Mapping[str, Medium]
) -> Variant:
    """Return the file system of the directory that is measured."""
    (first, *others) = media.values()
    if others:
        raise FscaleError(
            f"an existing directory cannot be measured together with other media "
            f"({', '.join(media)}); measure it in a run of its own"
        )
    where = Path(first.path or "")
    guard.check_directory(where)
    there = filesystem_of(where)
    if "filesystems" in request.overrides:
        if [one.name for one in asked] != [there]:
            raise FscaleError(
                f"{where} lies on {there}, not on {', '.join(one.text for one in asked)}; leave "
                "--fs out, or measure another medium"
            )
        asked[0].refuse_existing()
    return Variant(there, there)


def existing_mount(media: Mapping[str, Medium]) -> Mounted | None:
    """Return the mount below the measured directory; None without one, or if it is not visible."""
    paths = [m.path for m in media.values() if m.kind == "dir" and m.path]
    return mounted.read(Path(paths[0])) if paths else None


def profilers_of(suite: Suite) -> tuple[dict[str, Profiler], dict[str, str]]:
    """Return the usable profilers of a suite, and why others are left out."""
    found, left_out = usable(parse_names(",".join(suite.profiles)))
    reasons = {f"profile {name}": reason for name, reason in left_out.items()}
    return {profiler.name: profiler for profiler in found}, reasons


def loads_of(request: Request, suite: Suite) -> dict[str, Load]:
    """Return all loads by id; applications only if the suite names its workloads."""
    loads: dict[str, Load] = {w.descriptor.id: w for w in microbench.find(request.binary)}
    if suite.workloads != "all":
        files = [name for name in suite.workloads if catalogue.is_path(name)]
        for load in request.applications(list(dict.fromkeys(files))):
            if load.descriptor.id in loads:
                raise FscaleError(
                    f"two loads would be called {load.descriptor.id} in the results; rename the "
                    "TOML file"
                )
            loads[load.descriptor.id] = load
    return loads


def _resolved(request: Request, suite: Suite, loads: Mapping[str, Load]) -> Suite:
    """Return a suite with the short names of its workloads, and with the values of their options.

    FscaleError if a workload, an option or a value does not exist, or a requested option is idle.
    """
    if suite.workloads != "all":
        short = [catalogue.short_name(name) for name in suite.workloads]
        suite = suite.model_copy(update={"workloads": short})
    descriptors = {name: load.descriptor for name, load in loads.items()}
    resolved = options.resolve(suite, descriptors)
    options.refuse_idle(parse_options(request.options), resolved, descriptors)
    return resolved
