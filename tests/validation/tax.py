# SPDX-License-Identifier: GPL-2.0-only
"""Microbenchmarks that are slower by a set amount, made with `syscall_tax`."""

import subprocess
from pathlib import Path

from fscale.model.paths import BENCH, ROOT

BUILD = ROOT / "build" / "validation"


def build() -> Path:
    """Compile `syscall_tax`."""
    BUILD.mkdir(parents=True, exist_ok=True)
    binary = BUILD / "syscall_tax"
    source = Path(__file__).with_name("syscall_tax.c")
    flags = ["-O2", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["gcc", *flags, "-o", str(binary), str(source)], check=True)
    return binary


def bench(instructions: int) -> Path:
    """A microbenchmark whose system calls execute that many more instructions each."""
    script = BUILD / f"fscale-bench-tax-{instructions}"
    script.write_text(f'#!/bin/sh\nexec {build()} {instructions} {BENCH} "$@"\n')
    script.chmod(0o755)
    return script
