# SPDX-License-Identifier: GPL-2.0-only
"""The Vega bundle of a page, cached per user, because bundling takes seconds of CPU time."""

import contextlib
import hashlib
import os
from functools import cache
from importlib.metadata import version
from pathlib import Path

import vl_convert
from markupsafe import Markup

from fscale.model import paths
from fscale.model.errors import FscaleError
from fscale.model.files import Folder

_EXPORTS = "window.vegaEmbed = vegaEmbed;"


@cache
def library() -> Markup:
    """Vega with vega-embed as `vegaEmbed`, with the interpreter that needs no `eval`.

    It is wrapped in a block, so that the bundle's short names are not global.
    """
    return Markup(f"{{{_load_bundle(_cache_directory())}}}")


def _cache_directory() -> Path | None:
    """`$XDG_CACHE_HOME/fscale/vega`, by default in `~/.cache`; None without a home directory."""
    try:
        return paths.cache_dir("vega")
    except FscaleError:
        return None


def _load_bundle(place: Path | None) -> str:
    """The bundle of this version from `place`; if absent, it is made and, if possible, stored.

    A damaged bundle, or one in another user's directory, is not used.
    """
    made_of = f"{version('vl-convert-python')} {_EXPORTS}"
    name = f"{hashlib.sha256(made_of.encode()).hexdigest()[:16]}.js"
    with contextlib.suppress(OSError):
        if place is None or not _is_own_directory(place):
            return _build_bundle()
        with contextlib.suppress(FileNotFoundError):
            digest, _, bundle = Folder(place).read(name).partition(b"\n")
            if digest == _digest(bundle):
                return bundle.decode()
        fresh = _build_bundle()
        with contextlib.suppress(OSError):
            Folder(place).write(name, _digest(fresh.encode()) + b"\n" + fresh.encode())
        return fresh
    return _build_bundle()


def _is_own_directory(place: Path) -> bool:
    place.mkdir(parents=True, exist_ok=True)
    return place.stat().st_uid == os.geteuid()


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _build_bundle() -> str:
    bundle: str = vl_convert.javascript_bundle(_EXPORTS)
    return bundle
