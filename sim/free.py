# SPDX-License-Identifier: GPL-2.0-only
"""`--free NAME`: a static object or a function of the guest's kernel costs nothing."""

import time
from collections.abc import Sequence
from dataclasses import replace

from fscale.model.errors import FscaleError
from sim.boot import Boot, BootError
from sim.campaign import start
from sim.sweep import Freed, Prepared
from sim.symbols import KERNEL, Symbols

LINE_BYTES = 64
# A guest of one CPU without points is up and down in ten seconds on an idle host.
BOOT_SECONDS = 300.0


def applied(prepared: Prepared, names: Sequence[str]) -> Prepared:
    """The sweep with all the named things free in each of its cells."""
    known = symbols(prepared)
    found = tuple(rule for name in names for rule in rules(known, name))
    freed = Freed(", ".join(names), found)
    return replace(prepared, freed={key.id: freed for key in prepared.cells})


def rules(known: Symbols, name: str) -> tuple[str, ...]:
    """The lines of an object, or the instructions of a function, each for the plugin."""
    found = known.extent(name)
    if found is None:
        raise FscaleError(
            f"--free {name}: the kernel has no such symbol; give a static object such as "
            "rename_lock, or a function whose lines are meant"
        )
    extent, code = found
    if extent.start not in KERNEL:
        raise FscaleError(
            f"--free {name}: it is a module's, which lies elsewhere in each boot; give a symbol of "
            "the kernel itself, or build the module into the kernel"
        )
    if code:
        return (f"pc:{extent.start:#x}-{extent.stop:#x}",)
    first = extent.start & ~(LINE_BYTES - 1)
    last = -(-extent.stop // LINE_BYTES) * LINE_BYTES
    return (f"va:{first:#x}-{last:#x}",)


def symbols(prepared: Prepared) -> Symbols:
    """The guest's symbols; a short boot tells them, once for each image."""
    kept = prepared.initramfs.parent / "kallsyms"
    if not kept.exists():
        partial = kept.with_suffix(".partial")
        partial.write_text(_boot(replace(prepared, parameters=prepared.parameters | {"vcpus": 1})))
        partial.replace(kept)
    return Symbols(kept.read_text().splitlines())


def _boot(prepared: Prepared) -> str:
    with Boot([], "") as boot:
        start(prepared, boot, [], 0)
        ends = time.monotonic() + BOOT_SECONDS
        while not boot.done:
            if time.monotonic() > ends:
                raise BootError("the guest that tells its symbols did not end", None)
            boot.poll()
            time.sleep(0.2)
        return boot.kallsyms()
