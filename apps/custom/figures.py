# SPDX-License-Identifier: GPL-2.0-only
"""Reads the figures of a command from what it prints."""

import json
import math
import re
from typing import Any

from fscale.apps.base import AppError
from fscale.model.loadfile import CommandLoad

_SCALE = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
# Figure -> percentile, as in the latencies of a cell.
_QUANTILES = {"p50": "50", "p90": "90", "p99": "99", "p99_9": "99.9", "max": "100"}


def figures(command: CommandLoad, text: str) -> dict[str, float]:
    """Figure -> value in the output of one copy.

    Raises:
        AppError: a figure is missing or no number, or the output is not JSON although it should be.
    """
    values: dict[str, float] = {}
    for pattern in command.regex:
        matches = list(re.finditer(pattern, text))
        if not matches:
            raise AppError(f"the output has no match of {pattern!r}; it ends with: {_end(text)}")
        for name, value in matches[-1].groupdict().items():
            if value is not None:
                values[name] = _number(name, value)
    if command.json_:
        document = _parse(text)
        for name, place in command.json_.items():
            values[name] = _number(name, _at(document, place))
    return values


def latencies(command: CommandLoad, copies: list[dict[str, float]]) -> dict[str, Any] | None:
    """The latencies of a cell: each percentile is that of the copy in which it is largest.

    None if the command tells none. There is no count, because the command alone knows it.
    """
    scale = _SCALE[command.latency_unit]
    quantiles = {
        percentile: scale * max(values)
        for name, percentile in _QUANTILES.items()
        if (values := [one[name] for one in copies if name in one])
    }
    return {"unit": "ns", "quantiles": quantiles} if quantiles else None


def _parse(text: str) -> Any:
    begins = [at for at in (text.find("{"), text.find("[")) if at >= 0]
    try:
        return json.JSONDecoder().raw_decode(text[min(begins, default=0) :])[0]
    except ValueError:
        raise AppError(f"the output is not JSON; it ends with: {_end(text)}") from None


def _at(document: Any, place: str) -> Any:
    for step in place.split("."):
        try:
            document = document[int(step)] if isinstance(document, list) else document[step]
        except (KeyError, IndexError, TypeError, ValueError):
            raise AppError(f"the JSON of the command has no {place}: it ends at {step}") from None
    return document


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number) or number < 0:
        raise AppError(f"the figure {name} is {str(value)[:60]!r}, which is not a number from 0 on")
    return number


def _end(text: str) -> str:
    return text.strip()[-200:] or "nothing"
