# SPDX-License-Identifier: GPL-2.0-only
"""The claims of papers: those that fscale has, a user's own, and the cells that they need."""

from pathlib import Path

import pytest

from fscale.model import catalogue, paths
from fscale.model.errors import FscaleError
from fscale.model.paper import Paper, choose, load_paper, questions
from tests.support.synthetic import key

HEAD = 'title = "t"\nsource = "s"\nsetting = "m"\ncores = 8\n'
WHO = '[[claim]]\nname = "a"\nsection = "1"\n'
SHAPE = f'{WHO}workloads = ["DRBL"]\nfilesystems = ["ext4"]\nshape = "scales"\n'
RATIO = f'{WHO}workloads = ["DRBL"]\nnew = "xfs"\nbase = "ext4"\nratio = 2\ncores = 4\n'


def loaded(directory: Path, claims: str) -> Paper:
    path = directory / "mine.toml"
    path.write_text(HEAD + claims)
    return load_paper(path)


@pytest.mark.parametrize("name", ["fxmark", "spanfs", "jbd2", "scalelfs"])
def test_a_paper_of_fscale_says_where_and_what(name: str) -> None:
    paper = load_paper(Path(name))
    claims = paper.claim
    assert all(one.section and paper.theirs(one) for one in claims)
    assert any(one.cannot for one in claims)
    assert any(not one.cannot for one in claims)


def test_each_paper_is_tested() -> None:
    assert catalogue.names(paths.PAPERS) == ["fxmark", "jbd2", "scalelfs", "spanfs"]


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        (WHO, "give a shape, or a ratio, or why it cannot be asked"),
        (f"{SHAPE}ratio = 2\n", "give a shape, or a ratio, or why it cannot be asked"),
        (f'{WHO}shape = "scales"\nworkloads = ["DRBL"]\n', "give workloads, and filesystems"),
        (f'{WHO}ratio = 2\nworkloads = ["DRBL"]\nnew = "xfs"\n', "and new and base"),
        (f'{RATIO}metric = "speed"\n', "speed is no metric of a ratio"),
        (f"{RATIO}speed = 1\n", "claim.0.speed: is not a key"),
        (SHAPE + RATIO, "two claims have the name a"),
        (SHAPE + SHAPE.replace('"a"', '"b"'), "two claims are about DRBL, ext4, buffered"),
        (f"{SHAPE}options = {{ block = 1 }}\n" + RATIO.replace('"a"', '"b"'), "different options"),
        (f"suite = {{ duration = -1 }}\n{SHAPE}", "duration: Input should be greater than 0"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(tmp_path: Path, claims: str, said: str) -> None:
    with pytest.raises(FscaleError) as error:
        loaded(tmp_path, claims)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_claims_are_chosen_by_name_and_by_pattern() -> None:
    paper = load_paper(Path("fxmark"))
    assert [one.name for one in paper.chosen(["MRP*", "DRBL"])] == ["DRBL", "MRPL", "MRPM", "MRPH"]
    with pytest.raises(FscaleError, match="no such claim; did you mean MRPL or"):
        paper.chosen(["MRPX"])


def test_a_suite_has_what_its_claims_need_and_no_other_cell_is_measured(tmp_path: Path) -> None:
    paper = loaded(tmp_path, SHAPE.replace("DRBL", "MWCL") + RATIO.replace('"a"', '"b"'))
    suite = paper.suite_of(paper.claim, quick=False)
    assert suite is not None
    assert (suite.workloads, suite.filesystems) == (["MWCL", "DRBL"], ["ext4", "xfs"])
    assert suite.cores == [1, 2, 4, 8, "100%"]
    cells = [
        key(workload=workload, filesystem=name, cores=cores)
        for workload in ("MWCL", "DRBL")
        for name in ("ext4", "xfs", "none")
        for cores in (1, 2)
    ]
    chosen = {
        (one.workload, one.filesystem, one.cores)
        for one in choose(paper.claim, cells)
        if not one.control
    }
    # The ratio needs four cores, and is looked at with those that there are.
    curve = {("MWCL", "ext4", 1), ("MWCL", "ext4", 2)}
    assert chosen == curve | {("DRBL", "ext4", 2), ("DRBL", "xfs", 2)}


def test_claims_of_one_workload_sweep_its_options(tmp_path: Path) -> None:
    append = f"{SHAPE}options = {{ keep = 4 }}\n"
    paper = loaded(tmp_path, append + append.replace('"a"', '"b"').replace("4 }", "8 }"))
    suite = paper.suite_of(paper.claim, quick=True)
    assert suite is not None
    assert suite.options == {"DRBL": {"keep": [4, 8]}}
    first, second = questions(paper.claim)
    assert first.about(key(options={"keep": 4})) and not second.about(key(options={"keep": 4}))
