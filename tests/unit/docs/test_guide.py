# SPDX-License-Identifier: GPL-2.0-only
"""The pages of the guide: short, with commands that fscale takes and links that lead somewhere."""

import itertools
import re
from pathlib import Path

import pytest

from docs.scripts.check import MAX_LINES, WIDTH
from tests.support.command_lines import SUBSTITUTED, refusal, words_of
from tests.support.guide import ELLIPSIS, GUIDE, PAGES, commands, examples, page, same_shape

LINK = re.compile(r"\]\(([^)#:]+?\.\w+)(?:#[\w-]+)?\)")
PLACEHOLDER = "@@"


def each_page() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)


def lines_of_fscale() -> list[tuple[str, str]]:
    return [(path.name, line) for path in PAGES for line in commands(path.read_text())]


def test_there_are_pages() -> None:
    assert len(PAGES) >= 14
    assert all(commands(path.read_text()) for path in PAGES if path.name != "index.md")


@each_page()
def test_a_page_is_short(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert len(lines) <= MAX_LINES["docs/guide"]
    assert [n for n, line in enumerate(lines, 1) if len(line) > WIDTH] == []
    assert PLACEHOLDER not in path.read_text()


@each_page()
def test_a_page_says_what_to_do_next(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("# ")
    assert path.name == "index.md" or "\n## Next\n" in text


@each_page()
def test_links_lead_to_files(path: Path) -> None:
    targets = [path.parent / name for name in LINK.findall(path.read_text())]
    missing = [str(one) for one in targets if not one.exists()]
    assert missing == []


def test_the_index_has_every_page() -> None:
    linked = set(LINK.findall(page("index.md")))
    assert linked >= {path.name for path in PAGES if path.name != "index.md"}


@pytest.mark.parametrize(("where", "line"), lines_of_fscale())
def test_command_is_taken(where: str, line: str) -> None:
    refused = refusal(words_of(SUBSTITUTED.sub("PATH", line))[1:])
    assert refused is None, f"{where}: {refused}"


def test_commands_are_found_in_blocks_and_sentences() -> None:
    text = (
        "Try `bin/fscale list\nmedia`.\n\n```console\n$ bin/fscale run a \\\n    --b\nout\n"
        "$ ls\n```\n\n```sh\nmake\nbin/fscale show x\n```\n"
    )
    assert [" ".join(line.split()) for line in commands(text)] == [
        "bin/fscale run a --b",
        "bin/fscale show x",
        "bin/fscale list media",
    ]
    assert [one.shown for one in examples(text)] == [("out",), ()]


SHOWN = ["a 1.5K", ELLIPSIS, "same  +3.2%  ...", "/tmp/x is done"]


@pytest.mark.parametrize(
    ("printed", "equal"),
    [
        (["a   12", "faster -1% for a reason", "/srv/y is done"], True),
        (["a   12", "b", "c", "faster -1% for a reason", "/srv/y is done"], True),
        (["warning: hot", "a 3", "", "undecided 0.1%", "/srv/y is done"], True),
        (["a 12", "faster -1% for a reason"], False),
        (["b 12", "faster -1% for a reason", "/srv/y is done"], False),
        (["a 12", "faster -1% for a reason", "/srv/y is done", "more"], False),
        ([], False),
    ],
)
def test_outputs_are_compared_in_shape(printed: list[str], equal: bool) -> None:
    assert same_shape(SHOWN, printed) is equal


def test_each_runnable_page_has_outputs() -> None:
    runnable = ("first-run.md", "why-does-it-stop.md", "did-my-patch-change-it.md")
    shown = itertools.chain.from_iterable(examples(page(name)) for name in runnable)
    assert all(one.shown for one in shown)
    assert GUIDE.is_dir()
