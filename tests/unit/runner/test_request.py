# SPDX-License-Identifier: GPL-2.0-only
"""`--set KEY=VALUE`: any key of the suite from the command line, by all commands that measure."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from fscale.cli import app
from fscale.model.errors import FscaleError
from fscale.runner.request import Request, named_in, parse_options, parse_settings, read_suite
from tests.support.runner import suite

MEASURING = {
    "run": ["run", "smoke", "--dry-run"],
    "ab": ["ab", "--base", "ext4", "--new", "xfs"],
    "noise": ["noise", "--fs", "ext4"],
    "bisect": ["bisect", "--base", "ext4", "--new", "xfs"],
}

LONG = f"duration={5000 * '9'}"
DEEP = f"media={5000 * '['}"


def said_by(command: str, tmp_path: Path, *arguments: str) -> str:
    given = [*MEASURING[command], "--output", str(tmp_path / "out"), *arguments]
    done = CliRunner().invoke(app, given)
    assert done.exit_code != 0
    assert not (tmp_path / "out").exists()
    return " ".join(f"{done.stderr} {done.exception}".split())


def test_values_are_those_of_toml() -> None:
    texts = ["latency=true", "warmup = 0.5", "order='cores'", 'options.MRPL.op="stat"']
    assert parse_settings(texts, {}) == {
        "latency": True,
        "warmup": 0.5,
        "order": "cores",
        "options": {"MRPL": {"op": "stat"}},
    }


@pytest.mark.parametrize("text", ["latency", "order=cores", "=1", "", "a=1\nb=2", LONG, DEEP])
def test_what_is_no_setting_is_refused(text: str) -> None:
    with pytest.raises(FscaleError, match="KEY=VALUE"):
        parse_settings([text], {})


@pytest.mark.parametrize("texts", [["duration=1"], ["warmup=1", "warmup=2"]])
def test_a_key_is_given_once(texts: list[str]) -> None:
    with pytest.raises(FscaleError, match="is given twice"):
        parse_settings(texts, {"duration": 2})


def test_the_suite_has_what_was_set(tmp_path: Path) -> None:
    overrides = parse_settings(["setup_limit=7", "media=['ram']", "cores='all'"], {})
    request = Request(suite(tmp_path), tmp_path / "out", overrides, options=["MRPL.op=stat"])
    found = read_suite(request)
    assert (found.setup_limit, found.media, found.cores) == (7, ["ram"], "all")
    assert found.options == {"MRPL": {"op": "stat"}}


@pytest.mark.parametrize("value", ["--5", "-", "5-", 5000 * "9", "٣"])
def test_an_options_value_that_is_no_number_is_text(value: str) -> None:
    assert parse_options([f"DWRL.fill={value}"]) == {"DWRL": {"fill": value}}


def test_an_options_number_is_one() -> None:
    assert parse_options(["fill=-5", "DWRL.fill=10"]) == {"all": {"fill": -5}, "DWRL": {"fill": 10}}


@pytest.mark.parametrize("name", ["fill", "DWRL.fill"])
def test_an_option_has_one_value(name: str) -> None:
    with pytest.raises(FscaleError, match=f"--option {name} is given twice"):
        parse_options([f"{name}=1", "keep=1", f"{name}=2"])


def test_names_that_were_set_are_explicit() -> None:
    overrides = parse_settings(["media=['ram']"], {})
    assert named_in(overrides) == {"ram"}


@pytest.mark.parametrize("command", MEASURING)
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("warmpu=1", "warmpu: is not a key that fscale knows; did you mean warmup"),
        ("duration=-1", "duration: Input should be greater than 0"),
        ("options=3", "options: Input should be a valid dictionary"),
    ],
)
def test_wrong_settings_end_every_command(
    tmp_path: Path, command: str, text: str, says: str
) -> None:
    assert says in said_by(command, tmp_path, "--set", text)


@pytest.mark.parametrize("command", ["ab", "noise", "bisect"])
def test_what_paired_runs_decide_cannot_be_set(tmp_path: Path, command: str) -> None:
    assert "--set repetitions: a paired run" in said_by(command, tmp_path, "--set", "repetitions=3")


def test_guests_have_no_device(tmp_path: Path) -> None:
    sides = ["--base", "kernel:6.1", "--new", "kernel:6.12"]
    given = ["ab", *sides, "--output", str(tmp_path / "out"), "--device", "/dev/null"]
    assert "--device: not supported with guests" in str(CliRunner().invoke(app, given).exception)
