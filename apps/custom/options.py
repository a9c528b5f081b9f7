# SPDX-License-Identifier: GPL-2.0-only
"""The options of a load of a user's own, as a cell has them."""

from collections.abc import Mapping

from fscale.apps.base import AppError, Options, Site
from fscale.model.loadfile import LoadOption

_MB = 1 << 20


def filled(declared: Mapping[str, LoadOption], given: Options, site: Site) -> Options:
    """The values of the options, those in MiB bounded by their share of the space.

    Raises:
        AppError: the share is less than 1 MiB.
    """
    values: Options = {}
    for name, option in declared.items():
        value = given.get(name, option.default)
        if option.share_of is not None:
            parts = site.workers if option.share_of == "cores" else option.share_of
            value = min(int(value), site.space // parts // _MB)
            if value < 1:
                raise AppError(
                    f"{site.space} bytes of space are too few for {parts} files; use a larger "
                    "medium or fewer files",
                    fault="user",
                )
        values[name] = value
    return values
