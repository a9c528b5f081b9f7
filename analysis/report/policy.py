# SPDX-License-Identifier: GPL-2.0-only
"""The page's Content Security Policy: what a stranger's text cannot do, were it ever markup."""

import base64
import hashlib
from collections.abc import Iterable

from markupsafe import Markup


def policy(style: str, scripts: Iterable[str]) -> Markup:
    """Scripts and styles of these contents alone act, without `eval`; nothing is fetched.

    Drawings carry style attributes. Frames, which hold flame graphs, inherit it all.
    """
    allowed = " ".join(_digest(script) for script in scripts)
    return Markup(
        f"default-src 'none'; script-src {allowed}; style-src-elem {_digest(style)}; "
        "style-src-attr 'unsafe-inline'; img-src data:; frame-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
