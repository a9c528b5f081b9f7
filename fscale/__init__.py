# SPDX-License-Identifier: GPL-2.0-only
"""The runner: configuration -> plan -> checks -> host, media, file system -> execute -> store."""

__version__ = "0.2.0"
