# SPDX-License-Identifier: GPL-2.0-only
"""The guide's notebook and the lines of its page do what they say."""

import base64
import io
from pathlib import Path
from typing import Any

import matplotlib as mpl
import nbformat
import numpy as np
import pytest
from matplotlib import image
from matplotlib import pyplot as plt

from docs.scripts import notebook
from tests.support.guide import boxes, page
from tests.support.synthetic import cell, grid, key, write_run

PICTURES = 4


def texts(made: Any) -> list[str]:
    """What its cells print and the texts of their values, without those of pictures."""
    outputs = [output for one in made.cells for output in one.get("outputs", [])]
    values = [o.data for o in outputs if "data" in o and "image/png" not in o.data]
    return [o.text for o in outputs if "text" in o] + [value["text/plain"] for value in values]


@pytest.mark.slow
def test_the_notebook_has_the_outputs_that_it_makes(tmp_path: Path) -> None:
    made = notebook.execute(tmp_path)
    kept = nbformat.reads(notebook.NOTEBOOK.read_text(), as_version=4)  # type: ignore[no-untyped-call]
    assert texts(made) == texts(kept)
    data = [o.data for one in made.cells for o in one.get("outputs", []) if "data" in o]
    pictures = [one["image/png"] for one in data if "image/png" in one]
    assert len(pictures) == PICTURES
    for one in pictures:
        pixels = image.imread(io.BytesIO(base64.b64decode(one)))
        assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) > 20
    assert 'class="answer"' in data[0]["text/html"]


@pytest.mark.slow
def test_the_lines_of_the_page_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(mpl.rcParams, "backend", "agg")
    today = grid((1, 2), 2, ("MWCM",), ("ext4",))
    today += grid((1, 2), 1, ("DWSL",), ("ext4",), media=("ram", "ssd"), modes=("direct",))
    today += [
        cell(key(1, workload="DWAL", cores=cores, options={"block": block}), 5.0 * cores)
        for block in (4096, 16384)
        for cores in (1, 2)
    ]
    write_run(tmp_path / "results/today", today, workloads=("MWCM", "DWSL", "DWAL"))
    for name, factor in (("6.17", 1.0), ("6.18", 0.6)):
        made = [
            one.model_copy(update={"ops_per_second": factor * one.ops_per_second})
            for one in grid((1, 2), 8, ("MWCM",), ("ext4",))
        ]
        write_run(tmp_path / "results" / name, made, workloads=["MWCM"])
    names: dict[str, Any] = {"axes": plt.subplots(1, 2)[1]}
    told = []
    for line in "\n".join(boxes(page("notebooks.md"), "python")).splitlines():
        exec(line, names)
        code, _, value = line.partition("  # '")
        if value:
            assert eval(code, names) == value.removesuffix("'")
            told.append(value)
    assert len(told) == 2
    assert len(names["quiet"]) == len(today)
    assert names["verdicts"].worse.any()
    plt.close("all")
