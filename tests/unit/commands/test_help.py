# SPDX-License-Identifier: GPL-2.0-only
"""Each command's help begins with what it does and an example; each option says what it is."""

import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fscale import commands
from fscale.cli import OVERVIEW, app
from fscale.commands.options.helptext import laid_out
from fscale.model.errors import Exit
from tests.support.command_lines import COMMAND, SUBSTITUTED, leaves, refusal, words_of

TREE = COMMAND


COMMANDS = dict(leaves())


def test_there_are_commands() -> None:
    assert {"fscale run", "fscale vm run", "fscale history trend"} <= COMMANDS.keys()


def examples(command: Any) -> list[str]:
    """The command lines after the summary, and those in the examples at the end."""
    _, first, *_ = command.help.split("\n\n")
    marked = [first.removeprefix("Example: ")] if first.startswith("Example: ") else []
    _, more, listed = (command.epilog or "").partition("More examples:\n\n")
    lines = re.sub(r"\\\n *", "", listed.partition("\n\n")[0]).splitlines()
    assert bool(lines) is bool(more)
    return marked + lines


@pytest.mark.parametrize("name", COMMANDS)
def test_help_begins_with_a_summary_and_an_example(name: str) -> None:
    summary, example, *_ = COMMANDS[name].help.split("\n\n")
    assert re.fullmatch(r"[A-Z].*[.?]", summary)
    assert example.startswith("Example: ")
    assert re.search(rf"{name}\b", example)
    assert "\n" not in example


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_are_taken(name: str) -> None:
    found = examples(COMMANDS[name])
    assert found
    for example in found:
        _, said, arguments = SUBSTITUTED.sub("PATH", example).partition("fscale ")
        assert said, example
        assert refusal(words_of(arguments)) is None, example


def test_a_wrong_example_is_noticed() -> None:
    assert refusal(words_of("run quick --file-system ext4 --output x  # comment"))
    assert refusal(words_of("run quick --output x  # comment")) is None


@pytest.mark.parametrize("name", COMMANDS)
def test_exit_codes_are_told_in_one_way(name: str) -> None:
    text = COMMANDS[name].help.lower()
    assert len(re.findall("exit code", text)) == len(re.findall(r"\nexit codes[^.]*: ", text)) <= 1


@pytest.mark.parametrize("name", COMMANDS)
def test_many_options_are_grouped(name: str) -> None:
    options = [p for p in COMMANDS[name].params if not getattr(p, "hidden", False)]
    plain = [p for p in options if not getattr(p, "rich_help_panel", None)]
    assert len(options) <= 12 or len(plain) <= 6


def test_the_overview_has_each_command_with_the_first_sentence_of_its_help() -> None:
    modules = {module.name for module in pkgutil.iter_modules(commands.__path__)} - {"options"}
    assert modules == TREE.commands.keys()
    overview = {name: text for names in OVERVIEW.values() for name, text in names.items()}
    assert overview == {name: one.help.split("\n\n")[0] for name, one in TREE.commands.items()}


def test_paragraphs_wrap_and_examples_do_not() -> None:
    text = """One
    two.

    More:

        fscale a
        fscale b
    """
    assert laid_out(text) == "One two.\n\nMore:\n\nfscale a\nfscale b"


@pytest.mark.parametrize("name", COMMANDS)
def test_each_option_says_what_it_is(name: str) -> None:
    parameters = [p for p in COMMANDS[name].params if not getattr(p, "hidden", False)]
    unsaid = [p.name for p in parameters if not getattr(p, "help", None)]
    assert unsaid in ([], ["help"])


@pytest.mark.parametrize(("locale", "ascii_only"), [("C", True), ("C.UTF-8", False)])
def test_help_suits_the_locale_and_flags_have_no_value(locale: str, ascii_only: bool) -> None:
    env = {"LC_ALL": locale, "TERM": "xterm", "COLUMNS": "80"}
    for words in (["--help"], ["show", "--help"], ["history", "--help"]):
        text = CliRunner(env=env).invoke(app, words).output
        assert text.isascii() is ascii_only
        assert "--help" in text
        assert "<bool>" not in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run smoke --duration 10s", "give a number, without a unit"),
        ("run smoke --repetitions 1.5x", "give a whole number, without a unit"),
        ("run smoke --workload DRBL DWAL", "several values of an option by commas"),
    ],
)
def test_mistakes_are_told_in_words(words: str, said: str) -> None:
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, words.split())
    assert done.exit_code == Exit.USAGE
    assert said in done.output
    assert "Input should be" not in done.output
    assert "--output is" not in done.output


@pytest.mark.parametrize(
    ("words", "named"), [("run quick", "quick"), ("ab --base ext4 --new xfs", "ab")]
)
def test_results_have_a_default_place_by_date(
    words: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, [*words.split(), "--cores", "nonsense"])
    assert re.search(rf"--output is results/\d{{8}}-\d{{6}}-{named}; ", done.output)
    assert not list(tmp_path.iterdir())
