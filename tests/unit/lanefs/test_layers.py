# SPDX-License-Identifier: GPL-2.0-only
"""Each folder of the module includes and calls only folders below it, so no circle is possible."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

from fscale.model.paths import ROOT

KERNEL = ROOT / "lanefs" / "kernel"
LAYERS = ("super", "dir", "file", "inode", "tree", "space", "journal", "")  # "": headers of all

# No use of a symbol: comments, strings, tags, and macros, which expand where they are used.
OTHER = re.compile(
    r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\b(?:struct|enum)\s+\w+(?=\s*[{;*])"""
    r"""|\#\s*define(?:\\\n|[^\n])*""",
    re.DOTALL,
)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
# What has a symbol: a function with its body, or an object with its contents.
FUNCTION = re.compile(
    r"^(?!static)[A-Za-z][\w *]*[ *](\w+)\((?:[^(){};]|\([^()]*\))*\)\s*\{", re.MULTILINE
)
STATIC = re.compile(r"^static [\w *]*[ *](\w+)\([^;{}]*\)\s*\{", re.MULTILINE)
OBJECT = re.compile(r"^(?!static)[\w ]+[ *](\w+)(?:\[\])? = \{", re.MULTILINE)


@cache
def sources(kernel: Path) -> dict[str, str]:
    """The text of each file by its path within the module."""
    return {
        path.relative_to(kernel).as_posix(): path.read_text()
        for path in sorted(kernel.rglob("*.[ch]"))
    }


def layer(path: str) -> int:
    """The place of the file's folder in LAYERS; ValueError: it has none."""
    return LAYERS.index(path.rpartition("/")[0])


def upward_includes(kernel: Path) -> list[tuple[str, str]]:
    """Each file with a header of a folder above its own."""
    files = sources(kernel)
    return [
        (path, header)
        for path, text in files.items()
        for header in INCLUDE.findall(text)
        if header in files and layer(header) < layer(path)
    ]


@cache
def code(kernel: Path) -> dict[str, str]:
    """The same without what uses no symbol."""
    return {path: OTHER.sub("x", text) for path, text in sources(kernel).items()}


def symbols(kernel: Path) -> dict[str, str]:
    """The path of the file that defines each symbol."""
    return {
        name: path
        for path, text in code(kernel).items()
        for pattern in (FUNCTION, OBJECT)
        for name in pattern.findall(text)
        if path.endswith(".c")
    }


def upward_uses(kernel: Path) -> list[tuple[str, str]]:
    """Each file with a symbol of a folder above its own."""
    defined = symbols(kernel)
    return [
        (path, name)
        for path, text in code(kernel).items()
        for name in sorted(set(re.findall(r"\w+", text)))
        if name in defined and layer(defined[name]) < layer(path)
    ]


def test_headers_of_folders_above_are_not_included() -> None:
    assert upward_includes(KERNEL) == []


def test_folders_above_are_not_called() -> None:
    assert upward_uses(KERNEL) == []


def test_symbols_are_found() -> None:
    found = symbols(KERNEL)
    assert len(found) > 250
    assert found["lanefs_handle_start"] == "journal/handle.c"
    assert found["lanefs_aops"] == "file/data.c"


def test_every_folder_is_a_layer() -> None:
    folders = {path.parent.name for path in KERNEL.rglob("*.c")}
    assert folders == set(LAYERS) - {""}


def test_what_leads_upward_is_named(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "file").mkdir()
    (tmp_path / "file/file.h").write_text("int lanefs_up(int (*call)(void));\n")
    (tmp_path / "file/a.c").write_text(
        "int lanefs_up(int (*call)(void))\n{\n\treturn lanefs_down();\n}\n"
        "const struct ops lanefs_table = {\n};\n"
    )
    (tmp_path / "journal/b.c").write_text(
        '#include "file/file.h"\n/* lanefs_table */\n'
        "int lanefs_down(void)\n{\n\treturn lanefs_up(NULL);\n}\n"
    )
    assert upward_includes(tmp_path) == [("journal/b.c", "file/file.h")]
    assert upward_uses(tmp_path) == [("journal/b.c", "lanefs_up")]


def static_in_several_files(kernel: Path) -> list[str]:
    """The names of static functions of several files, which one cannot tell apart in a profile."""
    files = [text for path, text in code(kernel).items() if path.endswith(".c")]
    found = Counter(name for text in files for name in set(STATIC.findall(text)))
    return [name for name, count in found.items() if count > 1]


def test_each_function_has_a_name_of_its_own(tmp_path: Path) -> None:
    assert static_in_several_files(KERNEL) == []
    for name in ("a.c", "b.c"):
        (tmp_path / name).write_text("static int lanefs_same(int a)\n{\n\treturn a;\n}\n")
    assert static_in_several_files(tmp_path) == ["lanefs_same"]
