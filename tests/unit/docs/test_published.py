# SPDX-License-Identifier: GPL-2.0-only
"""The table of published kernel changes: ratios, verdicts, and what trivial predictors have."""

import math
import tomllib
from pathlib import Path
from typing import Any

import pytest

from docs.scripts import pack_published, published
from tests.validation.published import CHANGES, REVERTS, changes, patched, refuse_changed


def data() -> dict[str, Any]:
    """One change: 2.0 was published at 4 cores; simulated are 3.0, and linear curves."""
    rates = {
        "parent": {1: [100], 2: [150], 4: [90, 100, 110]},
        "child": {1: [100], 2: [200], 4: [290, 300, 330]},
    }
    cells = [
        ["c", side, cores, number, rate, None, None, 0]
        for side, curve in rates.items()
        for cores, found in curve.items()
        for number, rate in enumerate(found, 1)
    ]
    change = {
        "title": "a change",
        "subject": "fs: a change",
        "release": "1.0",
        "source": "https://example.org/",
        "benchmark": "b",
        "published": [[4, 2.0, 2.0], [8, 2.0, 2.0]],
        "workload": "MRPH",
        "differs": "nothing",
        "command": "fscale simulate",
        "started": "2026-01-02T03:04",
    }
    about = {"title": "t", "machine": "m", "kernel": "7.2", "qemu": "10"}
    return {**about, "changes": {"c": change}, "waiting": {}, "cells": cells}


def test_a_row_has_the_ratio_of_medians_and_what_single_boots_allow() -> None:
    (row,) = published.rows(data())  # 8 cores were not simulated
    assert row.cores == 4
    assert row.predicted == 3
    assert row.band == (290 / 110, 330 / 90)
    # Amdahl's law: a serial third of the parent, none of the child.
    assert row.from_two == pytest.approx(4 * (1 / 3 + 2 / 3 / 4))


@pytest.mark.parametrize(
    ("bounds", "predicted", "verdict"),
    [
        ((2.0, 2.0), 2.2, "near"),
        ((2.0, 2.0), 3.0, "too much"),
        ((2.0, 2.0), 1.5, "too little"),
        ((2.0, 2.0), 1.01, "no gain"),
        ((2.0, 2.0), 0.9, "wrong sign"),
        ((1.04, 1.16), 1.1, "near"),
        ((1.04, 1.16), 1.0, "near"),
        ((1.0, 1.0), 1.5, "wrong sign"),
    ],
)
def test_a_prediction_has_a_verdict(
    bounds: tuple[float, float], predicted: float, verdict: str
) -> None:
    row = published.Row("c", 4, bounds, predicted, (predicted, predicted), None)
    assert row.verdict(predicted) == verdict


def test_within_the_published_values_there_is_no_error() -> None:
    row = published.Row("c", 4, (1.04, 1.16), 1.1, (1, 1), None)
    assert row.error(1.1) == 0
    assert row.error(2.32) == pytest.approx(math.log(2))


def test_the_page_scores_the_simulator_beside_trivial_predictors() -> None:
    page = published.page(data(), "d.json")
    scores = {
        line.split(" | ")[0].removeprefix("| "): line.split(" | ")[1:5]
        for line in page.splitlines()
        if line.startswith(("| the simulator", "| no change", "| Amdahl"))
    }
    assert scores["the simulator"] == ["1", "0", "1", f"{math.log(1.5):.2f}"]
    assert scores["no change"] == ["1", "0", "0", f"{math.log(2):.2f}"]
    assert scores["Amdahl's law, two simulated cores"] == ["1", "1", "1", "0.00"]


def test_the_first_paragraph_says_whether_trivial_predictors_are_beaten() -> None:
    first = published.page(data(), "d.json").splitlines()[2]
    assert "At the 1 points of 1 simulated changes the simulator errs by a factor of 1.50" in first
    assert 'It beats "no change", which errs by 2.00, and is nearer than that at 1 of 1' in first
    assert 'It does not beat "Amdahl\'s law, two simulated cores", which errs by 1.00' in first


def test_what_was_not_simulated_is_listed_with_the_command_or_the_reason() -> None:
    told = data()
    change = told["changes"]["c"]
    told["waiting"] = {
        "patched": {**change, "title": "patched", "published": [[16, 1.5, 1.5]]},
        "large": {**change, "title": "large", "not_simulated": "it is large"},
    }
    page = published.page(told, "d.json")
    assert "| a change | 8 | 2.00 | it was not run |" in page
    assert "| patched | 16 | 1.50 | it was not run |" in page
    assert "| large | 4 | 2.00 | it is large |" in page
    assert "--changes c,patched` simulates those" in page
    assert "4 published points were not simulated." in page.splitlines()[2]


def test_packing_keeps_cells_of_changes_without_runs(tmp_path: Path) -> None:
    before = data()
    changes = {
        "c": {"title": "another title", "published": [[4, 2.0, 2.0]]},
        "new": {"title": "n", "published": [[4, 1.0, 1.0]]},
    }
    made = pack_published.packed(changes, tmp_path, before)
    assert made["cells"] == sorted(before["cells"])
    assert made["changes"]["c"]["title"] == "another title"
    assert made["changes"]["c"]["started"] == "2026-01-02T03:04"
    assert list(made["waiting"]) == ["new"]


def test_each_published_change_has_its_source_and_a_patch_or_the_reason_why_not() -> None:
    told = tomllib.loads(CHANGES.read_text(encoding="utf-8"))
    assert len({one["subject"] for one in told.values()}) >= 20
    for name, one in told.items():
        assert one["source"].startswith("http"), name
        assert ("workload" in one) != ("not_simulated" in one), name
        assert all(0 < low <= high for _, low, high in one["published"]), name


def test_each_change_has_its_patch_and_core_counts_that_were_published() -> None:
    for change in changes():
        assert (REVERTS / f"{change.patch}.patch").exists()
        assert len(change.cores) > 2


def test_a_source_with_a_patch_of_a_killed_build_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, reverts = tmp_path / "source", tmp_path / "reverts"
    source.mkdir()
    reverts.mkdir()
    (source / "a.c").write_text("new\n")
    patch = reverts / "one.patch"
    patch.write_text("--- a/a.c\n+++ b/a.c\n@@ -1 +1 @@\n-new\n+old\n")
    monkeypatch.setattr("tests.validation.published.REVERTS", reverts)
    refuse_changed(source)
    before = (source / "a.c").stat().st_mtime_ns
    with patched(source, patch):
        assert (source / "a.c").read_text() == "old\n"
        with pytest.raises(SystemExit, match=r"one\.patch.*unpack it anew"):
            refuse_changed(source)
    refuse_changed(source)
    assert (source / "a.c").read_text() == "new\n"
    assert (source / "a.c").stat().st_mtime_ns == before, "objects are newer"
