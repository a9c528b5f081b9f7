# SPDX-License-Identifier: GPL-2.0-only
"""Each command's help says what it does and has an example; each option says what it is."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from fscale.cli import app

ROOT = typer.main.get_command(app)


def leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", {})
    for word, inner in below.items():
        yield from leaves(inner, f"{name} {word}")
    if not below:
        yield name, command


COMMANDS = dict(leaves(ROOT, "fscale"))


def test_there_are_commands() -> None:
    assert {"fscale run", "fscale vm ab", "fscale history trend"} <= COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_an_example_of_itself(name: str) -> None:
    command = COMMANDS[name]
    assert command.help
    text = f"{command.help} {command.epilog or ''}"
    assert "Example" in text
    assert name in text.partition("Example")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_option_says_what_it_is(name: str) -> None:
    parameters = [p for p in COMMANDS[name].params if not getattr(p, "hidden", False)]
    unsaid = [p.name for p in parameters if not getattr(p, "help", None)]
    assert unsaid in ([], ["help"])
