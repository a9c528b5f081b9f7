# SPDX-License-Identifier: GPL-2.0-only
"""The page's Content Security Policy: it limits what injected markup could do."""

import base64
import hashlib
from collections.abc import Iterable

from markupsafe import Markup


def policy(style: str, scripts: Iterable[str]) -> Markup:
    """A policy that allows only these scripts and styles, no `eval`, and no loading of resources.

    It allows style attributes, which drawings need. Frames, which hold flame graphs, inherit it.
    """
    allowed = " ".join(_digest(script) for script in scripts)
    return Markup(
        f"default-src 'none'; script-src {allowed}; style-src-elem {_digest(style)}; "
        "style-src-attr 'unsafe-inline'; img-src data:; frame-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
