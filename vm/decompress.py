# SPDX-License-Identifier: GPL-2.0-only
"""Kernels and modules as distributions pack them."""

import lzma
import subprocess
import zlib

from vm.steps import need


def unpacked(data: bytes) -> bytes | None:
    """What gzip, xz or zstd has packed; None where none of them has."""
    if data.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(wbits=31).decompress(data)
    if data.startswith(b"\xfd7zXZ\0"):
        return lzma.decompress(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        argv = [need("zstd", "zstd"), "-dcq"]
        return subprocess.run(argv, input=data, capture_output=True, check=True).stdout
    return None
