# SPDX-License-Identifier: GPL-2.0-only
"""Generated pages are what code and data make, and the check of words finds faults."""

from pathlib import Path

import pytest

from docs.scripts import check, reference, results
from fscale.model.paths import ROOT

KEPT, BUILT = reference.kept(), reference.built()
RESULTS = results.pages()


@pytest.mark.parametrize("name", sorted(KEPT))
def test_reference_is_not_stale(name: str) -> None:
    written = ROOT / "docs/reference" / name
    assert written.read_text() == KEPT[name], "run `make generated`"


def test_each_command_of_a_box_has_a_prompt() -> None:
    lines = [line for text in BUILT.values() for line in text.splitlines()]
    assert [line for line in lines if line.startswith("fscale ")] == []
    assert sum(line.startswith("$ fscale ") for line in lines) > 50


@pytest.mark.parametrize("name", sorted(RESULTS))
def test_results_are_made_of_their_data(name: str) -> None:
    assert (ROOT / "docs/results" / name).read_text() == RESULTS[name], "run `make generated`"


def test_no_page_of_results_is_written_by_hand() -> None:
    there = {path.name for path in (ROOT / "docs/results").glob("*.md")}
    assert there == {*RESULTS, "index.md"}


def test_every_key_of_a_suite_is_described() -> None:
    page = (ROOT / "docs/reference/suite-keys.md").read_text()
    assert ": —" not in page


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The run goes on with the next cell.", "goes on with"),
        ("It does 200 operations a second.", "operations a second"),
        ("What is measured follows.", "What is measured follows"),
        ("It stops. Who waits is woken.", "Who waits"),
        ("The pages were written over.", "written over"),
        ("A run resumes. What stops it?", None),
        ("`What it is` names a column.", None),
        ("Of these, one is read.", None),
        ("It does 200 operations per second.", None),
    ],
)
def test_wording(text: str, found: str | None) -> None:
    said = check.wording(text)
    assert bool(said) == (found is not None)
    assert found is None or found.lower() in " ".join(said).lower()


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page in a tree of its own, with a glossary."""
    (tmp_path / "docs").mkdir()
    for name in ("README.md", "CONTRIBUTING.md"):
        (tmp_path / name).write_text(f"# {name}\n")
    terms = "\n\n".join(
        f"## {term}\n\nIt is a term."
        for term in sorted(
            ["faster", "less", "more", "newly shared", "same", "slower", "undecided"]
        )
    )
    (tmp_path / "docs/glossary.md").write_text(f"# Glossary\n\n{terms}\n")
    links = " ".join(
        f"[x](glossary.md#{term})"
        for term in ("faster", "less", "more", "newly-shared", "same", "slower", "undecided")
    )
    written = tmp_path / "docs/page.md"
    written.write_text("# A page\n\n## A part\n\n" + links.replace(") ", ")\n") + "\n")
    monkeypatch.setattr(check, "ROOT", tmp_path)
    return written


def test_a_good_page_has_no_fault(page: Path) -> None:
    assert list(check.faults()) == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("[x](gone.md)", "leads nowhere"),
        ("[x](#nothing)", "no heading"),
        ("[x](reference/commands/run.md)", "repository lacks"),
        ("![x](img/none.png)", "leads nowhere"),
        ("word " * 30, "columns"),
        ("\n" * 400, "lines"),
        ("Who reads it is not named.", "subject"),
        ("- It is resumed, 3 cells a point.", "per"),
    ],
)
def test_a_fault_of_a_page_is_found(page: Path, more: str, said: str) -> None:
    page.write_text(f"{page.read_text()}\n{more}\n\nThe end.\n")
    assert any(said in fault.what for fault in check.faults())


@pytest.mark.parametrize("good", ["[x](#a-part)", "`[x](gone.md)`", "```\n[x](gone.md)\n```"])
def test_what_is_no_link_is_not_followed(page: Path, good: str) -> None:
    page.write_text(f"{page.read_text()}\n{good}\n")
    assert list(check.faults()) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("## same\n\nIt is a term.", "## same\n\nIt\nis\na\nlong\nterm.", "lines"),
        ("## same\n", "## zebra\n", "alphabet"),
        ("## slower\n", "## slower still\n", "no page links"),
        ("## undecided\n\nIt is a term.\n", "", "is a verdict"),
    ],
)
def test_a_fault_of_the_glossary_is_found(page: Path, old: str, new: str, said: str) -> None:
    glossary = page.with_name("glossary.md")
    glossary.write_text(glossary.read_text().replace(old, new))
    assert any(said in fault.what for fault in check.faults())


def test_messages_of_errors_are_read(page: Path, tmp_path: Path) -> None:
    (tmp_path / "fscale/vm").mkdir(parents=True)
    (tmp_path / "fscale/vm/x.py").write_text(
        'raise FscaleError(f"{run}: the run cannot be gone on with")\n'
    )
    assert [fault.where for fault in check.faults()] == ["fscale/vm/x.py:1"]
