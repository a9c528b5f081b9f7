# SPDX-License-Identifier: GPL-2.0-only
"""No circle in the module: folders call only folders below them, and files only files below."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

from fscale.model.paths import ROOT

KERNEL = ROOT / "lanefs" / "kernel"
# The folders, and the files of each, from top to bottom.
ORDER = {
    "super": "super inode_ops options state sysfs",
    "dir": "namei rename names span dir",
    "file": "file direct fallocate fiemap gc data orphans evict rewrite shift size writeout"
    " delalloc free holes overwrite readpath",
    "inode": "export symlink acl inode attr icache xattr ialloc table ibitmap ioctl shards slab",
    "tree": "extents tree",
    "space": "retry discard streams victims alloc groups segments space throttle count scan owners",
    "journal": "journal checkpoint durable commit recovery reader stable superblock write buf error"
    " handle replay blockio coop flush slots throttled trace",
}
LAYERS = (*ORDER, "")  # "": headers of all
PLACES = {
    f"{folder}/{name}.c": place
    for folder, names in ORDER.items()
    for place, name in enumerate(names.split())
}
# A commit compares the task with the checkpoint's thread, whose sleep in it may be frozen.
EXCEPTIONS = [("journal/commit.c", "lanefs_checkpoint_thread")]

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
INLINE = re.compile(
    r"^static inline [\w *]*[ *](\w+)\([^;{}]*\)\s*\{(.*?)^\}", re.MULTILINE | re.DOTALL
)
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


def uses(kernel: Path) -> list[tuple[str, str, str]]:
    """Each file, a symbol of another one that it uses, and the path of that one.

    What an inline function of a header uses, whoever names the function uses.
    """
    defined = symbols(kernel)
    inlines = {
        name: set(re.findall(r"\w+", body))
        for path, text in code(kernel).items()
        if path.endswith(".h")
        for name, body in INLINE.findall(text)
    }
    found = []
    for path, text in code(kernel).items():
        names: set[str] = set()
        more = set(re.findall(r"\w+", text))
        while more:
            names |= more
            more = set().union(*(inlines.get(name, ()) for name in more)) - names
        found += [
            (path, name, defined[name])
            for name in sorted(names & defined.keys())
            if defined[name] != path
        ]
    return found


def upward_uses(kernel: Path) -> list[tuple[str, str]]:
    """Each file with a symbol of a folder above its own."""
    return [(path, name) for path, name, other in uses(kernel) if layer(other) < layer(path)]


def upward_in_folder(kernel: Path) -> list[tuple[str, str]]:
    """Each source file with a symbol of a file of its folder that is above it."""
    return [
        (path, name)
        for path, name, other in uses(kernel)
        if path in PLACES and layer(other) == layer(path) and PLACES[other] < PLACES[path]
    ]


def test_headers_of_folders_above_are_not_included() -> None:
    assert upward_includes(KERNEL) == []


def test_folders_above_are_not_called() -> None:
    assert upward_uses(KERNEL) == []


def test_files_above_are_not_called() -> None:
    assert upward_in_folder(KERNEL) == EXCEPTIONS


def test_symbols_are_found() -> None:
    found = symbols(KERNEL)
    assert len(found) > 250
    assert found["lanefs_handle_start"] == "journal/handle.c"
    assert found["lanefs_aops"] == "file/data.c"


def test_every_file_has_a_place() -> None:
    assert {path for path in sources(KERNEL) if path.endswith(".c")} == PLACES.keys()


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


def test_what_leads_upward_in_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir/dir.h").write_text(
        "int lanefs_up(void);\nstatic inline int lanefs_by(void)\n{\n\treturn lanefs_up();\n}\n"
    )
    (tmp_path / "dir/namei.c").write_text("int lanefs_up(void)\n{\n\treturn lanefs_down();\n}\n")
    (tmp_path / "dir/span.c").write_text("int lanefs_down(void)\n{\n\treturn lanefs_by();\n}\n")
    assert upward_in_folder(tmp_path) == [("dir/span.c", "lanefs_up")]


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
