# SPDX-License-Identifier: GPL-2.0-only
"""`doctor` names for each feature what is missing, and the Debian package that brings it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fscale.cli import app
from fscale.model import paths
from fscale.runner import features
from fscale.runner.doctor import examine
from fscale.runner.features import FEATURES, Feature


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which nothing is installed."""
    monkeypatch.setattr(features, "found", lambda _: None)


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
@pytest.mark.usefixtures("bare")
def test_each_missing_package_is_named(feature: Feature) -> None:
    found = {finding.name: finding for finding in examine([])}[feature.name]
    assert not found.good
    assert found.help is not None
    assert set(found.help.split()[2:]) == set(feature.needs.values())


@pytest.mark.usefixtures("bare")
def test_what_a_package_brings_compiled_needs_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "BUILD", paths.PREBUILT)
    lacking = {feature.name for feature in FEATURES if feature.missing()}
    assert lacking == {feature.name for feature in FEATURES if not feature.compiled}


def test_the_command_lists_the_features() -> None:
    said = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    assert {feature.name for feature in FEATURES} <= {finding["name"] for finding in said}


def test_one_of_several_that_do_the_same_is_enough(tmp_path: Path) -> None:
    script = tmp_path / "flamegraph.pl"
    needed = ("no-such-program", str(script))
    assert Feature("a", {needed: "some-package"}).missing() == {str(script): "some-package"}
    script.touch()
    assert not Feature("a", {needed: "some-package"}).missing()
