# SPDX-License-Identifier: GPL-2.0-only
"""Aging profiles: what is refused, what a variant makes of them, and where runs differ by them."""

from pathlib import Path

import pytest

from fscale.ab.slices import why_one_image
from fscale.model import catalogue, paths, variant
from fscale.model.errors import FscaleError
from fscale.model.facts import compare_values, find_rule
from fscale.runner.machine.journal import Journal
from fscale.runner.setup import Setup
from fscale.runner.storage.aged import Image, describe, refuse_small
from fscale.runner.storage.medium import Ready
from fscale.runner.storage.volumes import Volumes
from fscale.system.executor import Executor


@pytest.mark.parametrize("name", catalogue.names(paths.AGING))
def test_each_profile_ages_a_file_system(name: str) -> None:
    fs = catalogue.load_filesystem(f"xfs:aged={name}")
    assert fs.aged
    assert fs.aged.source
    refuse_small("xfs", fs, 4 << 30)


def test_a_profile_is_part_of_the_name_and_of_the_identity() -> None:
    assert catalogue.split_filesystems("ext4,ext4:aged=agrawal,xfs:aged={agrawal,filled}") == [
        "ext4", "ext4:aged=agrawal", "xfs:aged=agrawal", "xfs:aged=filled",
    ]  # fmt: skip
    assert (
        variant.parse("ext4:mount=commit=1:aged=agrawal").label
        == "ext4:mount=commit=1:aged=agrawal"
    )
    assert variant.label("./my.toml:aged=/home/x/old.toml:mount=sync") == "my:aged=old:mount=sync"
    key = "filesystems.ext4:aged=agrawal.aged"
    aged = catalogue.load_filesystem("ext4:aged=agrawal").model_dump()["aged"]
    rule = find_rule(key)
    assert (rule.on_resume, rule.on_compare) == ("refuse", "refuse")
    assert compare_values(key, aged, aged | {"churn": 11.0})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"sizes": [[8192, 1], [4096, 1]]}, "ascend"),
        ({"sizes": [[4096, 0]]}, "weight"),
        ({"levels": [[1, 0]]}, "weight"),
        ({"levels": [[0, 1]]}, "levels"),
        ({"utilisation": 1.0}, "utilisation"),
        ({"churn": -1}, "churn"),
        ({"streams": 65}, "streams"),
        ({"depth": 3}, "depth"),
    ],
)
def test_a_profile_with_a_mistake_is_refused(
    tmp_path: Path, changes: dict[str, object], says: str
) -> None:
    known: dict[str, object] = {
        "title": "a", "source": "b", "utilisation": 0.5, "churn": 1, "lifetime_sigma": 1,
        "sizes": [[4096, 1]], "levels": [[1, 1]],
    }  # fmt: skip
    path = tmp_path / "mine.toml"

    def write(keys: dict[str, object]) -> None:
        quoted = {k: f'"{v}"' if isinstance(v, str) else v for k, v in keys.items()}
        path.write_text("".join(f"{k} = {v}\n" for k, v in quoted.items()))

    write(known)
    assert catalogue.load_filesystem(f"ext4:aged={path}").aged
    write(known | changes)
    with pytest.raises(FscaleError, match=says):
        catalogue.load_filesystem(f"ext4:aged={path}")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tmpfs:aged=agrawal", "medium of its own"),
        ("ext4:8:aged=agrawal", "partitions"),
        ("ext4:aged=agrawl", "did you mean agrawal"),
    ],
)
def test_what_cannot_be_aged_is_refused(text: str, says: str) -> None:
    with pytest.raises(FscaleError, match=says):
        catalogue.load_filesystem(text)


def test_an_existing_directory_is_not_aged() -> None:
    with pytest.raises(FscaleError, match="aged="):
        variant.parse("ext4:aged=agrawal").refuse_existing()


def test_a_medium_must_hold_some_of_the_largest_files() -> None:
    fs = catalogue.load_filesystem("ext4:aged=agrawal")
    assert fs.aged
    refuse_small("ext4", fs, fs.aged.min_size)
    with pytest.raises(FscaleError, match="at least 161 MiB; it has 100 MiB"):
        refuse_small("ext4", fs, 100 << 20)
    refuse_small("ext4", catalogue.load_filesystem("ext4"), 1)


def test_loads_get_what_files_leave_of_a_medium(tmp_path: Path) -> None:
    fs = catalogue.load_filesystem("ext4:aged=agrawal")
    journal = Journal(tmp_path / "journal", Executor())
    fresh, aged = (Volumes(fs, Ready(1 << 30), 0, journal, filled) for filled in (0.0, 0.75))
    assert aged.space == fresh.space // 4


def test_an_image_is_found_by_all_that_its_layout_depends_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "fscale-age"
    program.write_text("1")
    monkeypatch.setattr(paths, "AGE", program)

    def name(text: str, size: int = 1 << 30, **changes: object) -> str:
        fs = catalogue.load_filesystem(text)
        assert fs.aged
        return Image(fs, fs.aged.model_copy(update=changes), size).file.name

    texts = ["ext4:aged=agrawal", "ext4:aged=filled", "xfs:aged=agrawal",
             "ext4:aged=agrawal:mount=nodelalloc", "ext4:aged=agrawal:mkfs=-I 512",
             "ext4:aged=agrawal:set=/proc/sys/vm/dirty_ratio=5"]  # fmt: skip
    names = [name(text) for text in texts]
    names += [name(texts[0], size=(1 << 30) + 4096), name(texts[0], seed=2)]
    assert len(set(names)) == len(names)
    assert name(texts[0], title="other words") == names[0]
    program.write_text("2")
    assert name(texts[0]) != names[0]


def test_two_copies_of_one_image_take_no_turns() -> None:
    def setup(text: str) -> Setup:
        made = object.__new__(Setup)
        made.filesystems = {text: catalogue.load_filesystem(text)}
        return made

    fresh, aged, other = map(setup, ("xfs", "xfs:aged=agrawal", "xfs:aged=filled"))
    assert why_one_image([aged, setup("xfs:aged=agrawal")])
    for sides in ([fresh, fresh], [fresh, aged], [aged, fresh], [aged, other]):
        assert why_one_image(sides) is None


def test_a_layout_is_described_before_and_after() -> None:
    filled = {"files": 100, "extents": 101, "fragmented": 1}
    aged = {"files": 90, "extents": 135, "fragmented": 20}
    text = describe({"filled": filled, "aged": aged})
    assert "90 files" in text
    assert "1.010 -> 1.500 extents per file, 1 -> 20 fragmented files" in text
    assert "FS_IOC_GETFSMAP" in text
    free = {"free_bytes": 1 << 20, "free_runs": 2, "largest_free_run": 1 << 19}
    many = {"free_bytes": 1 << 20, "free_runs": 64, "largest_free_run": 1 << 16}
    text = describe({"filled": filled | free, "aged": aged | many})
    assert "2 -> 64 runs of free space, on average 512 -> 16 KiB, the largest 512 -> 64 KiB" in text
