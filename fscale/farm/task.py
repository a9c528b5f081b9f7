# SPDX-License-Identifier: GPL-2.0-only
"""A task: cells of one plan that one machine measures, and all that it needs for them."""

import functools
import hashlib
from typing import Annotated, Any, Literal

from pydantic import Field

from fscale import __version__
from fscale.model import paths
from fscale.model.bench import Strict
from fscale.model.results import CellKey
from fscale.model.revision import revision

Kind = Literal["simulate", "commute", "guest", "run", "ab", "doctor", "restore"]
Role = Annotated[
    str,
    Field(pattern=r"^((modules|cells|images|control)/)?[A-Za-z0-9_][A-Za-z0-9_.+-]*$"),
]
"""a name below the directory of a task's input files"""
_CODE = {".py", ".toml", ".sh"}


@functools.cache
def identity() -> str:
    """Identify this fscale: its version, its commit if known, and a digest of its code.

    Two machines may share the cells of a plan only if theirs are equal. Programs in C are not part
    of it: a task brings those that it needs, by their digests.
    """
    whole = hashlib.sha256()
    for path in paths.package_files():
        if path.suffix in _CODE:
            name = str(path.relative_to(paths.PACKAGE))
            whole.update(name.encode() + b"\0" + path.read_bytes())
    parts = (__version__, revision() or "", whole.hexdigest()[:16])
    return " ".join(part for part in parts if part)


class Task(Strict):
    """What `fscale cell` reads: the unit that an engine hands to a machine."""

    kind: Kind
    identity: str = Field(description="of the fscale that made the plan, as in `identity()`")
    plan: str = Field(
        pattern=r"^[0-9a-f]{16}$",
        description="the plan that the cells belong to; names the directory of finished cells on "
        "each machine, which outlives a worker",
    )
    keys: list[CellKey] = Field(description="empty: the machine finds out what it measures")
    host: str | None = Field(
        default=None, description="the only machine that may run it; null: any"
    )
    files: dict[Role, str] = Field(
        default_factory=dict,
        description="role of an input file -> its SHA-256; each machine fetches it once",
    )
    work: dict[str, Any] = Field(default_factory=dict, description="arguments of the kind")

    @functools.cached_property
    def id(self) -> str:
        """A digest of everything in the task, 16 hexadecimal digits."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]
