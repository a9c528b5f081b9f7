# SPDX-License-Identifier: GPL-2.0-only
"""The types of a simulated kernel: the location of slabs, and the members of their objects."""

import bisect
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, replace
from pathlib import Path

from fscale.model import catalogue
from fscale.model.config import FileSystem
from fscale.runner.profilers import memory
from fscale.runner.profilers.btf import Btf
from fscale.runner.profilers.locks import caches_of, layouts, structs_of
from fscale.runner.profilers.memory import KernelMemory
from fscale.sim.symbols import DIRECT_MAP, VMEMMAP
from fscale.vm.kernel import Kernel, module_of
from fscale.vm.module_build import own_name
from fscale.vm.vmlinux import types_in

# A member of at most this many bytes is one object (a lock, a list head); a larger one has several.
SMALL = 64
# Caches for any object of a size: mm/slab_common.c.
_ANYTHING = re.compile(r"kmalloc-(?:cg-|rnd-\d+-)?(\d+)(k?)")
_CLASSES = (0, 8, 16, 32, 64, 96, 128, 192, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10)


def btf_of(elf: bytes, base: Btf | None = None) -> Btf | None:
    """The type information in an ELF file, which may have lost its section names.

    `elf` is a kernel, or a module of the kernel with the types `base`. None if it has no types.
    """
    types = types_in(elf)
    return Btf(types, base) if types is not None else None


def memory_of(btf: Btf) -> KernelMemory | None:
    """The memory layout of a kernel without KASLR; None if its pages are organised otherwise."""
    shape = memory.shape_of(btf)
    if shape is None:
        return None
    return replace(shape, direct_map=DIRECT_MAP.start, page_array=VMEMMAP.start)


class Types:
    """The static knowledge about a kernel's memory."""

    def __init__(
        self,
        btf: Btf,
        caches: Mapping[str, str],
        structs: Iterable[str],
        modules: Iterable[Btf] = (),
    ) -> None:
        """`caches`: the struct in a slab cache, if its name differs from the cache's.

        `structs`: structs with locks that may be in a cache for any object of a size. `modules`:
        types on top of the kernel's.
        """
        self._all = [btf, *modules]
        self._caches = caches
        self._locks = {
            name: members
            for name in structs
            for members in layouts([name], self._with(name)).values()
        }

    @property
    def slab(self) -> str | None:
        """How the plugin finds slab objects (sim/slab.h); None for another memory layout."""
        memory = memory_of(self._all[0])
        return ":".join(str(number) for number in astuple(memory)) if memory else None

    def _with(self, name: str) -> Btf:
        """The types that a struct is among, the kernel's before a module's."""
        return next((btf for btf in self._all if btf.size(name) is not None), self._all[0])

    def member(self, cache: str, offset: int) -> str:
        """The members at `offset` bytes in an object of a slab cache."""
        name = self._caches.get(cache, cache)
        offsets, paths = self._members(name)
        at = bisect.bisect_right(offsets, offset) - 1
        if at < 0:
            place = f"{cache}+{offset:#x}" if offset else cache
            guess = self._guess(cache, offset)
            return f"{place} ({guess}?)" if guess else place
        return f"{name}.{paths[at]}"

    def _guess(self, cache: str, offset: int) -> str | None:
        """The only known struct of that size class that has a lock there."""
        match = _ANYTHING.fullmatch(cache)
        if match is None:
            return None
        most = int(match[1]) << (10 if match[2] else 0)
        least = max(size for size in _CLASSES if size < most)
        names = {
            f"{name}.{path}"
            for name, members in self._locks.items()
            if least < (self._with(name).size(name) or 0) <= most
            for at, path, _ in members
            if at == offset
        }
        return names.pop() if len(names) == 1 else None

    @functools.cache  # noqa: B019 - a kernel's types live as long as the program
    def _members(self, name: str) -> tuple[list[int], list[str]]:
        """Offsets in ascending order, and paths, of the members that are single objects."""
        members = sorted(self._things(name))
        return [offset for offset, _ in members], [path for _, path in members]

    def _things(self, name: str) -> Iterator[tuple[int, str]]:
        opened: set[str] = set()
        inside: str | None = None
        btf = self._with(name)
        for member in btf.members(name):
            if inside is not None and member.path.startswith((f"{inside}.", f"{inside}[")):
                continue
            if member.path in opened:  # an union or struct without a name in one that was opened
                continue
            size = btf.size(member.type) if member.type else None
            if size is not None and size > SMALL:
                opened.add(member.path)
                continue
            inside = member.path
            yield member.offset, member.path


def load(
    kernel: Kernel,
    filesystems: Mapping[str, FileSystem],
    mounts: Iterable[str],
    own: Iterable[Path],
) -> dict[str, Types]:
    """What is known with each of some file systems; nothing where a kernel has no types.

    A guess among the structs of all of them would name one that is not mounted. `mounts` are file
    systems that workloads mount themselves. `own` are the files of modules that come before the
    kernel's of the same name.
    """
    btf = btf_of(kernel.image.read_bytes())
    if btf is None:
        return {}
    given = {own_name(path): path.read_bytes() for path in own}
    names = {*mounts, *(fs.kernel for fs in filesystems.values())} - given.keys()
    found = [module_of(kernel, name) for name in sorted(names)]
    read = [btf_of(module, btf) for module in (*given.values(), *found) if module]
    modules = [one for one in read if one]
    caches = caches_of(catalogue.filesystems())
    return {name: Types(btf, caches, structs_of([fs]), modules) for name, fs in filesystems.items()}
