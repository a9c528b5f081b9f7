# SPDX-License-Identifier: GPL-2.0-only
"""One thing has one name: in the options of all commands, in suites and in the results."""

from collections import defaultdict
from pathlib import Path

import pytest

from fscale.model import catalogue, paths
from fscale.model.config import Suite
from fscale.model.errors import FscaleError
from fscale.model.variant import parse
from tests.support.command_lines import leaves

# Old or tempting words for what has another name.
OTHERS = {
    "--bench": "--workload",
    "--benches": "--workload",
    "--workloads": "--workload",
    "--repeat": "--repetitions",
    "--repeats": "--repetitions",
    "--rounds": "--repetitions",
    "--options": "--option",
    "--opt": "--option",
    "--filesystems": "--fs",
    "--modes": "--mode",
    "--profiles": "--profile",
    "--out": "--output",
    "--medium": "--media",
}


def options() -> dict[str, list[tuple[str, bool]]]:
    """Option -> (command, whether it is a flag) of each command that has it."""
    found = defaultdict(list)
    for name, command in leaves():
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("--"):
                    found[option].append((name, bool(getattr(parameter, "is_flag", False))))
    return found


def test_no_option_has_two_names() -> None:
    known = options()
    assert {"--workload", "--repetitions", "--option", "--json"} <= known.keys()
    assert {wrong: known[wrong] for wrong in OTHERS if wrong in known} == {}


def test_an_option_is_a_flag_everywhere_or_nowhere() -> None:
    mixed = {name: used for name, used in options().items() if len({flag for _, flag in used}) > 1}
    assert mixed == {}


def test_a_key_of_a_suite_has_one_name(tmp_path: Path) -> None:
    path = tmp_path / "old.toml"
    text = (paths.SUITES / "smoke.toml").read_text()
    path.write_text(text.replace("repetitions = 1", "repetitions = 3"))
    assert catalogue.load_toml(path, Suite).repetitions == 3
    for wrong in ("repeats", "profile_repeats", "repetition"):
        path.write_text(f"{text}{wrong} = 2\n")
        with pytest.raises(FscaleError, match=f"{wrong}: is not a key"):
            catalogue.load_toml(path, Suite)


def test_a_part_of_a_side_has_one_name() -> None:
    assert parse("ext4:binary=/x").binary == Path("/x")
    with pytest.raises(FscaleError, match="bench=/x"):
        parse("ext4:bench=/x")
