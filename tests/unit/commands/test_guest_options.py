# SPDX-License-Identifier: GPL-2.0-only
"""The options of a guest, which several commands share."""

from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from fscale.commands.options.guest import GuestOptions, guest_options

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}


def run(*arguments: str) -> tuple[GuestOptions, str, list[str]]:
    """What a command that takes --smp 2 by default, and no --dry-run, gets."""
    app = typer.Typer()
    got: list[tuple[GuestOptions, str, list[str]]] = []

    @app.command(context_settings=CONTEXT)
    @guest_options("dry_run", smp=2)
    def command(context: typer.Context, suite: str, *, guest: GuestOptions) -> None:
        got.append((guest, suite, context.args))

    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return got[0]


def test_a_command_gets_its_own_defaults_and_those_of_every_guest():
    guest, suite, rest = run("quick")
    assert guest == replace(GuestOptions(), smp=2)
    assert (suite, rest) == ("quick", [])


def test_options_of_the_guest_are_read_and_others_are_left():
    guest, _, rest = run(
        *("quick", "--kernel-tree", "linux", "--module", "a.ko", "--module", "b.ko"),
        *("--deterministic", "--timeout", "7", "--fs", "ext4"),
    )
    assert guest.kernel_tree == Path("linux")
    assert guest.module == [Path("a.ko"), Path("b.ko")]
    assert (guest.deterministic, guest.timeout) == (True, 7)
    assert rest == ["--fs", "ext4"]


def test_an_omitted_option_is_none_of_the_commands():
    guest, _, rest = run("quick", "--dry-run")
    assert not guest.dry_run
    assert rest == ["--dry-run"]


def test_an_unknown_default_is_refused():
    with pytest.raises(ValueError, match="smpp"):
        guest_options(smpp=3)
