# SPDX-License-Identifier: GPL-2.0-only
"""Files that tests make up."""

from collections.abc import Mapping
from pathlib import Path


def write_program(path: Path, text: str) -> Path:
    """A file that can be executed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def write_files(root: Path, files: Mapping[str, str]) -> Path:
    """Files below a directory, path by path."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
