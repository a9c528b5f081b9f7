# SPDX-License-Identifier: GPL-2.0-only
"""What a newcomer is told works: docs/design/extending.md's files are written, its commands run."""

import random
import re
import subprocess
from pathlib import Path

import pytest

from fscale.model.paths import ROOT
from tests.support.clone import CODE, copy_clone
from tests.support.synthetic import grid, write_run

PAGE = (ROOT / "docs/design/extending.md").read_text()
BOX = re.compile(r"^```(\w+)(?: (\S+)(?: after: ([^\n]*))?)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WAYS = re.compile(r"^## The way of a cell$.*?^`TABLE`", re.MULTILINE | re.DOTALL)
(STEPS,) = WAYS.findall((ROOT / "CONTRIBUTING.md").read_text())

COMMANDS = [text for kind, *_, text in BOX.findall(PAGE) if kind == "sh"]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository as somebody has it who did everything that the page says."""
    root = tmp_path_factory.mktemp("contributing")
    copy_clone(root, *CODE, "docs")
    (root / ".venv").symlink_to(ROOT / ".venv")
    for _, path, after, text in BOX.findall(PAGE):
        file = root / path
        if not path:
            continue
        if after:
            assert file.read_text().count(f"{after}\n") == 1, f"{path} has not one line {after!r}"
            file.write_text(file.read_text().replace(f"{after}\n", f"{after}\n{text}"))
        else:
            assert not file.exists(), f"{path} is there already"
            file.write_text(text)
    write_run(root / "results/one", grid([1, 2], 2, ["DRBL"], ["ext4"]))
    for name, ops_per_second in (("before", 1000.0), ("after", 900.0)):
        cells = grid([1], 30, ["DRBL"], ["ext4"], rate=lambda key, mean=ops_per_second: (
            mean * (1 + 0.01 * random.Random(f"{mean} {key.id}").gauss(0, 1))
        ))  # fmt: skip
        write_run(root / "results" / name, cells)
    return root


@pytest.mark.root
@pytest.mark.parametrize("commands", COMMANDS)
def test_commands_work(commands: str, copy: Path) -> None:
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-ec", commands],
        cwd=copy, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_boxes_are_found() -> None:
    kinds = [kind for kind, *_ in BOX.findall(PAGE)]
    assert kinds.count("sh") == PAGE.count("```sh\n") == 6
    assert len(kinds) == PAGE.count("```") / 2


@pytest.mark.parametrize("step", re.findall(r"^    .*", STEPS, re.MULTILINE))
def test_a_step_is_where_the_page_says(step: str) -> None:
    subject, (path, name) = step[4:28].strip("-> "), step.rpartition(" ")[2].split(":")
    text = (ROOT / path).read_text()
    assert re.search(rf"^(?:class|def) {name}\b", text, re.MULTILINE)
    if subject[0].isupper():
        assert re.search(rf"\b{subject.removesuffix('s')}", text), f"{path} has no {subject}"
