# SPDX-License-Identifier: GPL-2.0-only
"""Decompresses kernels and modules of distributions."""

import lzma
import subprocess
import zlib

from fscale.vm.steps import need


def decompress(data: bytes) -> bytes | None:
    """The content decompressed by gzip, xz or zstd; None if it is none of these formats."""
    if data.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(wbits=31).decompress(data)
    if data.startswith(b"\xfd7zXZ\0"):
        return lzma.decompress(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        argv = [need("zstd", "zstd"), "-dcq"]
        return subprocess.run(argv, input=data, capture_output=True, check=True).stdout
    return None
