# SPDX-License-Identifier: GPL-2.0-only
"""The bundle of Vega is kept for the next report, and is never anything else than what was made."""

import os
from pathlib import Path

import pytest

from fscale.analysis import vega

BUNDLE = "let vega = 'µ';\n"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The bundles that were made, in a home without any."""
    times: list[str] = []

    def make() -> str:
        times.append(BUNDLE)
        return BUNDLE

    monkeypatch.setattr(vega, "_build_bundle", make)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return times


def got() -> str:
    return str(vega.library.__wrapped__())


def test_it_is_made_once(made: list[str], tmp_path: Path) -> None:
    assert got() == got() == f"{{{BUNDLE}}}"
    assert len(made) == 1
    assert len(list(tmp_path.rglob("*.js"))) == 1


@pytest.mark.parametrize("content", [b"", b"\n", b"0" * 64 + b"\nalert(1)", b"\xff" * 99])
def test_what_is_damaged_is_made_anew(made: list[str], tmp_path: Path, content: bytes) -> None:
    got()
    (kept,) = tmp_path.rglob("*.js")
    whole = kept.read_bytes()
    kept.write_bytes(content)
    assert got() == f"{{{BUNDLE}}}"
    assert len(made) == 2
    assert kept.read_bytes() == whole


@pytest.mark.parametrize("kind", ["link", "directory", "file above", "none of ours"])
def test_what_cannot_be_kept_is_made_each_time(
    made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    got()
    (kept,) = tmp_path.rglob("*.js")
    if kind == "link":
        kept.rename(tmp_path / "elsewhere")
        kept.symlink_to(tmp_path / "elsewhere")
    elif kind == "directory":
        kept.unlink()
        kept.mkdir()
    elif kind == "file above":
        monkeypatch.setenv("XDG_CACHE_HOME", str(kept))
    else:
        monkeypatch.setattr(os, "geteuid", lambda: kept.stat().st_uid + 1)
    assert got() == got() == f"{{{BUNDLE}}}"
    assert len(made) == 3
    assert vega._cache_directory() is not None


def test_without_a_home_it_is_made(made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", homeless)
    assert got() == f"{{{BUNDLE}}}"
    assert len(made) == 1
