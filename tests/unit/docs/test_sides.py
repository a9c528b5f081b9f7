# SPDX-License-Identifier: GPL-2.0-only
"""Pages of simulated curves beside measured ones."""

import json
from typing import Any

from docs.scripts import pack_sides, sides


def cells(workload: str, rates: dict[int, float]) -> list[list[Any]]:
    return [[workload, "ext4", "brd", cores, 1, rate, 0] for cores, rate in rates.items()]


def data(made: list[list[Any]]) -> dict[str, Any]:
    machine = {"cpu": "cores", "cpus": 16, "kernel": "6.18", "memory_bytes": None}
    return {"machine": machine, "runs": [], "cells": made}


def page(before: list[list[Any]], after: list[list[Any]], measured: list[list[Any]]) -> str:
    both = {"before": data(before), "after": data(after)}
    stored = json.loads(pack_sides.text({"title": "T", "beside": "real.json", "sides": both}))
    return sides.page(stored, data(measured), "made.json")


def row(text: str, *begin: str) -> list[str]:
    (found,) = [line for line in text.splitlines() if line.startswith(f"| {' | '.join(begin)} |")]
    return [word.strip() for word in found.strip("|").split("|")][len(begin) :]


def test_curves_are_scored_beside_trivial_predictors() -> None:
    real = cells("DWOM", {1: 10, 2: 10, 8: 20, 16: 20}) + cells(
        "control_syscall", {1: 1, 2: 2, 16: 16}
    )
    text = page(
        cells("DWOM", {1: 10, 16: 40}),
        cells("DWOM", {1: 10, 16: 20}),
        real,
    )
    assert row(text, "contended", "before")[:3] == ["1", "0.69", "+0.69"]
    assert row(text, "contended", "after")[:3] == ["1", "0.00", "+0.00"]
    assert row(text, "contended", "linear")[:3] == ["1", "2.08", "+2.08"]
    assert row(text, "contended", "flat")[:3] == ["1", "0.69", "-0.69"]
    assert row(text, "DWOM", "ext4")[:3] == ["2.00", "4.00", "2.00"]


def test_primitives_are_compared_by_rates() -> None:
    real = cells("primitive_atomic", {1: 10, 16: 20})
    text = page(
        cells("primitive_atomic", {1: 10, 16: 10}), cells("primitive_atomic", {1: 5, 16: 20}), real
    )
    assert row(text, "primitive_atomic", "before") == ["1.00", "0.50"]
    assert row(text, "mean factor", "after") == ["2.00", "1.00"]
