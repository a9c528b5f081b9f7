# SPDX-License-Identifier: GPL-2.0-only
"""Files that are broken, or of another program: each is refused in a sentence with its name."""

import gzip
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fscale.analysis.imports.run import Stated
from fscale.model.errors import FscaleError
from fscale.model.files import MAX_BYTES
from tests.support.imports import FILES, PROGRAMS, check_robust, read

GOOD = {
    "fio": FILES / "fio-loop1.json",
    "fxmark": FILES / "fxmark.log",
    "hyperfine": FILES / "hyperfine-sleeps.json",
    "perf-bench": FILES / "perf-pipe.txt",
    "sysbench": FILES / "sysbench-cpu-1.txt",
    "will-it-scale": FILES / "page_fault1.csv",
}
STATED = Stated("2026-11-29")


def refused(program: str, path: Path) -> str:
    """The sentence with which a file is refused."""
    with pytest.raises(FscaleError) as raised:
        read(program, [path], STATED)
    text = str(raised.value)
    assert str(path) in text
    assert text.isprintable()
    assert len(text) < 500
    return text


def test_there_is_a_file_of_each_program() -> None:
    assert GOOD.keys() == PROGRAMS.keys()
    for program, path in GOOD.items():
        assert read(program, [path], STATED).cells


@pytest.mark.parametrize("program", GOOD)
@pytest.mark.parametrize("other", GOOD)
def test_a_file_of_another_program_is_refused(program: str, other: str) -> None:
    if program != other:
        refused(program, GOOD[other])


BROKEN: dict[str, bytes] = {
    "html": b"<!DOCTYPE html>\n<html><body>\n<h1>404 Not Found</h1></body></html>\n",
    "binary": random.Random(1).randbytes(5000),
    "elf": b"\x7fELF\x02\x01\x01" + bytes(4000),
    "json of nobody": b'{\n "results": 3, "jobs": []\n}\n',
    "list": b"[1, 2, 3]\n",
    "deep": b"[" * 100_000,
    "deep object": b'{"a":' * 100_000,
    "one line": b"hello",
    "torn gzip": gzip.compress(b"fio" * 1000)[:20],
    "bomb": gzip.compress(bytes(300 << 20)),
}


@pytest.mark.parametrize("program", GOOD)
@pytest.mark.parametrize("kind", BROKEN)
def test_no_file_of_a_program_is_refused(program: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "broken"
    path.write_bytes(BROKEN[kind])
    refused(program, path)


@pytest.mark.parametrize("program", GOOD)
@pytest.mark.parametrize("content", [b"", b"\n\n", bytes(4096)])
def test_an_empty_file_is_refused(program: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.write_bytes(content)
    assert refused(program, path).endswith("is empty")


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    assert "larger than 16 MiB" in refused("fio", path)


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: None])
def test_what_cannot_be_read_is_said(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "there")
    assert "cannot read" in refused("fio", tmp_path / "there")


@pytest.mark.parametrize("program", GOOD)
def test_a_copy_is_refused(program: str, tmp_path: Path) -> None:
    copy = tmp_path / GOOD[program].name
    copy.write_bytes(GOOD[program].read_bytes())
    with pytest.raises(FscaleError, match="a copy is not a repetition"):
        read(program, [GOOD[program], copy], STATED)


@pytest.mark.parametrize("packed", [gzip.compress, lambda text: text.decode().encode("utf-16")])
@pytest.mark.parametrize("program", GOOD)
def test_files_may_be_packed_or_utf_16(
    packed: Callable[[bytes], bytes], program: str, tmp_path: Path
) -> None:
    other = tmp_path / GOOD[program].name
    other.write_bytes(packed(GOOD[program].read_bytes()))
    assert read(program, [other], STATED).cells == read(program, [GOOD[program]], STATED).cells


@pytest.mark.parametrize("program", ["fio", "hyperfine", "sysbench", "will-it-scale"])
def test_a_truncated_file_has_no_wrong_figure(program: str, tmp_path: Path) -> None:
    whole = {cell.id: cell.ops_per_second for cell in read(program, [GOOD[program]], STATED).cells}
    content = GOOD[program].read_bytes().rstrip()
    path = tmp_path / GOOD[program].name
    for size in range(10, len(content), 37):
        path.write_bytes(content[:size])
        try:
            cells = read(program, [path], STATED).cells
        except FscaleError:
            continue
        assert whole.items() >= {cell.id: cell.ops_per_second for cell in cells}.items()


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    program=st.sampled_from(sorted(GOOD)),
    line=st.integers(0, 60),
    text=st.one_of(st.text(max_size=40), st.sampled_from(["{", "-1", "nan", "1e999", '"x": -1,'])),
)
def test_no_line_breaks_a_reader(tmp_path: Path, program: str, line: int, text: str) -> None:
    lines = GOOD[program].read_text().splitlines()
    lines[line % len(lines)] = text
    path = tmp_path / GOOD[program].name
    path.write_text("\n".join(lines), errors="replace")
    check_robust(lambda: read(program, [path], STATED))
