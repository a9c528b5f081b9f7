# SPDX-License-Identifier: GPL-2.0-only
"""The user as which a load of a user's own runs."""

import os
import pwd
from collections.abc import Iterable
from pathlib import Path

from fscale.apps.base import AppError


class Account:
    """A user by name. Where fscale is not root, a load runs as the user who runs fscale."""

    def __init__(self, name: str) -> None:
        """AppError if there is no such user, or if only root could become root."""
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            raise AppError(
                f"there is no user {name}, as which the load should run; give another user in its "
                "TOML file",
                fault="user",
            ) from None
        self._root = os.geteuid() == 0
        if not self._root and entry.pw_uid == 0:
            raise AppError(
                "the load should run as root; run fscale as root, or give another user",
                fault="user",
            )
        self.uid: int | None = entry.pw_uid if self._root else None
        self.gid: int | None = entry.pw_gid if self._root else None
        self.name = name if self._root else pwd.getpwuid(os.geteuid()).pw_name

    def owns(self, directories: Iterable[Path]) -> None:
        """Give it the directories, so that it can make files there."""
        if self.uid is not None and self.gid is not None:
            for directory in directories:
                os.chown(directory, self.uid, self.gid)
