# SPDX-License-Identifier: GPL-2.0-only
"""`--free NAME`: a static object or a function of the guest's kernel or modules costs nothing."""

import time
from collections.abc import Sequence
from dataclasses import replace

from fscale.model.errors import FscaleError
from fscale.sim.boot import Boot, BootError
from fscale.sim.campaign import start
from fscale.sim.rules import CODE, DATA, rule
from fscale.sim.sweep import Freed, Prepared
from fscale.sim.symbols import Symbols

# A guest with one CPU and no points boots and ends within ten seconds on an idle host.
BOOT_SECONDS = 300.0


def free_objects(prepared: Prepared, names: Sequence[str]) -> Prepared:
    """The sweep, with all named objects free in each of its cells."""
    known = symbols(prepared)
    found = tuple(rule_of(known, name) for name in names)
    freed = Freed(", ".join(names), found)
    return replace(prepared, freed={key.id: freed for key in prepared.cells})


def rule_of(known: Symbols, name: str) -> str:
    """A rule for the lines of an object, or for the instructions of a function."""
    found = known.extent(name)
    if found is None:
        raise FscaleError(
            f"--free {name}: the kernel has no such symbol; give a static object such as "
            "rename_lock, or a function, to make the lines free that it takes"
        )
    extent, code = found
    told = rule(known, CODE if code else DATA, extent)
    if told is None:
        raise FscaleError(
            f"--free {name}: its address differs between boots, or two symbols have this name; "
            "give another symbol"
        )
    return told


def symbols(prepared: Prepared) -> Symbols:
    """The guest's symbols, from a short boot, once per image."""
    kept = prepared.initramfs.parent / "kallsyms"
    if not kept.exists():
        partial = kept.with_suffix(".partial")
        partial.write_text(_boot(replace(prepared, parameters=prepared.parameters | {"vcpus": 1})))
        partial.replace(kept)
    return Symbols(kept.read_text().splitlines())


def _boot(prepared: Prepared) -> str:
    with Boot([], "", ()) as boot:
        start(prepared, boot, [], 0)
        ends = time.monotonic() + BOOT_SECONDS
        while not boot.done:
            if time.monotonic() > ends:
                raise BootError("the short boot that lists the guest's symbols did not end", None)
            boot.poll()
            time.sleep(0.2)
        return boot.kallsyms()
