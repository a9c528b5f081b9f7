# SPDX-License-Identifier: GPL-2.0-only
"""What a run found about scaling, in a sentence."""

from pathlib import Path

import pytest

from fscale.analysis.conclusion import sentences
from fscale.analysis.reader import load
from fscale.model.results import Cell, CellKey
from tests.support.synthetic import grid, write_run

GAINS = {"DRBL": 2.0, "MWCL": 1.5, "MWCM": 0.4, "MRPL": 1.0, "DRBM": 4.0}


def rate(key: CellKey) -> float:
    return 1000.0 * (GAINS[key.workload] if key.cores == 2 else 1)


def said(directory: Path, cells: list[Cell]) -> list[str]:
    write_run(directory, cells, workloads=GAINS)
    return sentences(load(directory))


@pytest.mark.parametrize(
    ("workloads", "cores", "sentence"),
    [
        (
            [*GAINS],
            (1, 2),
            "of 5 curves up to 2 cores, 1 falls, 1 shows no clear change, 1 stays well below "
            "linear, 1 scales, 1 is faster than linear, which is doubtful; lowest: MWCM on ext4, "
            "0.4 times the throughput of 1 core with 2",
        ),
        (["MWCM"], (1, 2), "MWCM on ext4 falls: 0.4 times the throughput of 1 core with 2"),
        (
            ["DRBL", "DRBM"],
            (1, 2),
            "of 2 curves up to 2 cores, 1 scales, 1 is faster than linear, which is doubtful",
        ),
        (
            ["DRBL", "MWCM"],
            (1,),
            "no speed-up, because no curve has figures at its base and at more cores",
        ),
    ],
)
def test_a_run_ends_with_what_its_curves_do(
    workloads: list[str], cores: tuple[int, ...], sentence: str, tmp_path: Path
) -> None:
    assert said(tmp_path, grid(cores, 3, workloads, ("ext4",), rate=rate)) == [sentence]


def test_disturbed_repetitions_are_told_first(tmp_path: Path) -> None:
    cells = grid((1, 2), 2, ("DRBL",), ("ext4",), rate=rate)
    for cell in cells[:2]:
        cell.disturbed = "other processes took 1.00 CPUs"
    (sentence,) = said(tmp_path, cells)
    assert sentence.startswith(
        "doubtful, because other load disturbed 2 of 4 repetitions: DRBL on ext4 scales: 2 times"
    )


def test_media_have_a_sentence_each(tmp_path: Path) -> None:
    cells = grid((1, 2), 2, ("DRBL",), ("ext4",), ("ram", "null_blk"), rate=rate)
    assert [text.split(":")[0] for text in said(tmp_path, cells)] == [
        "null_blk medium, buffered I/O",
        "ram medium, buffered I/O",
    ]
