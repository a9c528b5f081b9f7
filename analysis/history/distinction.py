# SPDX-License-Identifier: GPL-2.0-only
"""Names series that look alike by the facts in which their definitions differ."""

from collections.abc import Mapping, Sequence
from typing import Any

from fscale.analysis.labels import unshared
from fscale.model.facts import format_value
from fscale.model.files import printable

LONGEST = 60  # characters of a fact


def tell_apart(definitions: Sequence[Mapping[str, Any]]) -> list[str]:
    """The facts of each definition that not all definitions of the same point share.

    `definitions`: each has facts by key (`fscale.analysis.compare.definition.meaning`). A fact is
    written `KEY=VALUE`, without the names that the definitions have in common; of a list, such as
    mount options, only the items count that not all have. Long values are cut.
    """
    told: list[list[str]] = [[] for _ in definitions]
    for key in sorted(set().union(*definitions)):
        values = [facts.get(key) for facts in definitions]
        if any(value != values[0] for value in values):
            name = f"medium {_last(key)}" if key.startswith("media.") else _last(key)
            for facts, text in zip(told, _texts(values), strict=True):
                facts.append(f"{name}={text}")
    return [", ".join(facts) for facts in told]


def _last(key: str) -> str:
    return key.rpartition(".")[2]


def _texts(values: Sequence[Any]) -> list[str]:
    """The values of a fact as text; a definition may be without it (None)."""
    lists = [[] if value is None else value for value in values]
    if all(isinstance(value, list) for value in lists):
        values = [" ".join(map(str, items)) or None for items in unshared(lists)]
    return ["none" if value is None else _short(format_value(value)) for value in values]


def _short(text: str) -> str:
    text = printable(" ".join(text.split()))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}\u2026"
