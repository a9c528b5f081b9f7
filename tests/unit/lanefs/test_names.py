# SPDX-License-Identifier: GPL-2.0-only
"""What pages, and the rules that name locks, name in the sources is there."""

import itertools
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from fscale.model.paths import ROOT
from tests.unit.lanefs.test_layers import FUNCTION, KERNEL, code, layer, uses

RULES = ROOT / "analysis" / "diagnosis" / "locks.toml"
SOURCES = [ROOT / "lanefs", ROOT / "tests" / "lanefs"]
PAGES = [*sorted((ROOT / "docs/design/lanefs").glob("*.md")), ROOT / "lanefs" / "README.md"]
FILE = re.compile(r"`((?:[a-z_]+/)*[a-z_]+\.[ch])`")
# Functions, and members by the prefixes that other file systems on the pages do not have.
SYMBOL = re.compile(r"`(lanefs_[a-z_]+(?=\(\))|(?:li|t|g|sh)_[a-z_]+)(?:\(\))?`")


@cache
def sources() -> dict[Path, str]:
    """The text of each file of C."""
    everything = [path for root in SOURCES for path in root.rglob("*")]
    return {path: path.read_text() for path in everything if path.suffix in {".c", ".h"}}


@cache
def words() -> set[str]:
    """All that can be a symbol."""
    return set(re.findall(r"\w+", "".join(sources().values())))


def missing(page: str) -> list[str]:
    """The files and symbols that a page names and the sources lack."""
    named = [name.split("/") for name in FILE.findall(page)]
    ends = [path.parts for path in sources()]
    lacking = [name for name in named if not any(list(end[-len(name) :]) == name for end in ends)]
    return ["/".join(name) for name in lacking] + [
        symbol for symbol in SYMBOL.findall(page) if symbol not in words()
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_what_is_named_is_there(page: Path) -> None:
    assert missing(page.read_text()) == []


def test_what_is_not_there_is_named() -> None:
    page = "`space/retry.c`, `core/logread.c`, `li_tree_sem`, `li_writeout`, `lanefs_begin()`"
    assert missing(page) == ["core/logread.c", "li_writeout", "lanefs_begin"]


def alternatives(pattern: str) -> list[str]:
    """The patterns that a pattern is short for, as `a_(b|c)` is for a_b and a_c."""
    parts = re.split(r"\(([^()]*)\)", pattern)
    return ["".join(chosen) for chosen in itertools.product(*(part.split("|") for part in parts))]


def nameless(rules: str) -> list[str]:
    """The patterns of rules for functions of lanefs that no function has as its name."""
    return [
        pattern
        for rule in tomllib.loads(rules)["lock"]
        for key in ("caller", "below", "without")
        for long in rule.get(key, [])
        for pattern in alternatives(long)
        if "lanefs_" in pattern and not any(re.fullmatch(pattern, word) for word in words())
    ]


def test_rules_name_functions_that_are_there() -> None:
    assert nameless(RULES.read_text()) == []


def test_a_rule_for_a_function_that_is_not_there_is_named() -> None:
    rule = """[[lock]]
        caller = ["lanefs_(fsync|begin)", "lanefs_stab.*"]
        below = ["lanefs_delalloc_flush"]"""
    assert nameless(rule) == ["lanefs_begin", "lanefs_delalloc_flush"]


DOCUMENTED = re.compile(
    r"^/\*\*\n((?: \*.*\n)+?) \*/\n([\w *]*?[ *])(\w+)\(((?:[^(){};]|\([^()]*\))*)\)\n\{",
    re.MULTILINE,
)


def wrong_docs(text: str) -> list[str]:
    """The functions whose kernel-doc has another name, other parameters, or lacks what they return.

    (Linux, Documentation/doc-guide/kernel-doc.rst, "Function documentation")
    """
    found = []
    for doc, result, name, parameters in DOCUMENTED.findall(text):
        plain = re.sub(r"\(\*(\w+)\)\([^()]*\)", r"\1", parameters)
        names = [re.findall(r"\w+|\.\.\.", parameter)[-1] for parameter in plain.split(",")]
        if (
            not doc.startswith(f" * {name}() - ")
            or re.findall(r"^ \* @(\w+|\.\.\.): ", doc, re.MULTILINE)
            != (names if names != ["void"] else [])
            or (" * Return: " in doc) != (result.strip() != "void")
        ):
            found.append(name)
    return found


def test_kernel_doc_is_of_the_function_below_it() -> None:
    module = [text for path, text in sources().items() if KERNEL in path.parents]
    everything = "".join(module)
    assert wrong_docs(everything) == []
    assert len(DOCUMENTED.findall(everything)) == len(re.findall(r"^/\*\*$", everything, re.M)) > 40


def test_kernel_doc_of_another_function_is_named() -> None:
    page = """/**
 * a() - do it
 * @x: how often
 *
 * Return: 0.
 */
int a(int x)
{
}

"""
    assert wrong_docs(page) == []
    renamed = (("int a(", "int b("), ("int x", "int *y"), ("int x", "int x, int (*z)(int y)"))
    changed = [page.replace(*pair) for pair in (*renamed, ("int a(", "void a("))]
    assert [wrong_docs(text) for text in changed] == [["b"], ["a"], ["a"], ["a"]]


def undocumented(kernel: Path) -> list[str]:
    """The functions that other folders of the module use, and that have no kernel-doc."""
    texts = [path.read_text() for path in kernel.rglob("*.c")]
    documented = {found[2] for text in texts for found in DOCUMENTED.findall(text)}
    functions = {name for text in code(kernel).values() for name in FUNCTION.findall(text)}
    used = {name for path, name, other in uses(kernel) if layer(path) != layer(other)}
    return sorted(used & functions - documented)


def test_what_other_folders_use_has_kernel_doc() -> None:
    assert undocumented(KERNEL) == []


def test_what_other_folders_use_without_kernel_doc_is_named(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "file").mkdir()
    (tmp_path / "journal/a.c").write_text(
        "int lanefs_own(void)\n{\n}\n\n"
        "/* Not kernel-doc. */\nint lanefs_bare(void)\n{\n\treturn lanefs_own();\n}\n\n"
        "/**\n * lanefs_told() - do it\n *\n * Return: 0.\n */\nint lanefs_told(void)\n{\n}\n"
    )
    (tmp_path / "file/b.c").write_text(
        "int lanefs_up(void)\n{\n\treturn lanefs_bare() ?: lanefs_told();\n}\n"
    )
    assert undocumented(tmp_path) == ["lanefs_bare"]
