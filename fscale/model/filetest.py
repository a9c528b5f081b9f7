# SPDX-License-Identifier: GPL-2.0-only
"""Whether there is a file, for this user, who may stand where he may not search.

pathlib raises PermissionError there, so that a word which could have been a path, such as the name
of a file system, would end a command.
"""

import os


def exists(path: str | os.PathLike[str]) -> bool:
    """Return whether the user can see that something is there."""
    return os.path.exists(path)  # noqa: PTH110


def is_file(path: str | os.PathLike[str]) -> bool:
    """Return whether the user can see that a regular file is there."""
    return os.path.isfile(path)  # noqa: PTH113


def is_dir(path: str | os.PathLike[str]) -> bool:
    """Return whether the user can see that a directory is there."""
    return os.path.isdir(path)  # noqa: PTH112
