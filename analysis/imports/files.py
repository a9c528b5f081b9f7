# SPDX-License-Identifier: GPL-2.0-only
"""Reads the files of other programs as text."""

import codecs
import hashlib
from collections.abc import Sequence
from pathlib import Path

from fscale.model.errors import FscaleError
from fscale.model.files import Folder, printable, unpack

_GZIP = b"\x1f\x8b"


def read_texts(paths: Sequence[Path]) -> dict[Path, str]:
    """Read files, which may be compressed or UTF-16.

    Raises:
        FscaleError: one cannot be read, is empty, or is a copy of another, which is no repetition.
    """
    texts: dict[Path, str] = {}
    for path in paths:
        text = _read_text(path)
        if not text.strip("\0 \t\r\n"):
            raise FscaleError(f"{path} is empty")
        if same := [other for other, known in texts.items() if known == text]:
            raise FscaleError(
                f"{path} has the same content as {same[0]}: a copy is not a repetition; leave it "
                "out"
            )
        texts[path] = text
    return texts


def describe_source(texts: dict[Path, str]) -> str:
    """Name the files, with digests of their texts."""
    return "; ".join(
        f"{printable(str(path))} (sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]})"
        for path, text in texts.items()
    )


def _read_text(path: Path) -> str:
    try:
        content = Folder(path.parent).read(path.name)
        if content.startswith(_GZIP):
            content = unpack(content)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise FscaleError(f"cannot read {path}: {reason}") from None
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", errors="replace")
    return content.decode("utf-8-sig", errors="replace")
