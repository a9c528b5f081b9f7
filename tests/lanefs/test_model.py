# SPDX-License-Identifier: GPL-2.0-only
"""Are the tests of file systems right? They run on this host's file systems, and find faults."""

import os
import random
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

import pytest

import tests.lanefs.functions  # noqa: F401 - registers the tests
from tests.lanefs import blocks, images
from tests.lanefs.functions import harness
from tests.lanefs.functions.harness import Place

HERE = Path(__file__).parent
SLOW = {"syncs_while_others_write", "a_large_directory_finds_and_lists_every_name"}


@pytest.fixture(scope="session")
def binary(tmp_path_factory):
    """The random-operation test, with sanitizers."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    out = tmp_path_factory.mktemp("model")
    subprocess.run(["make", "-s", "-C", str(HERE / "model"), f"OUT={out}", "san"], check=True)
    return out / "san" / "model"


@pytest.fixture
def memory():
    """A directory on tmpfs."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        yield Path(directory)


@pytest.fixture
def trees(tmp_path, memory):
    """A directory of the file system under test, and one on tmpfs."""
    (tmp_path / "test").mkdir()
    return [str(tmp_path / "test"), str(memory)]


def model(binary: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(binary), *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def faults(binary: Path) -> list[str]:
    lines = model(binary, "--help").stdout.splitlines()
    return [line.split()[0] for line in lines[lines.index(lines[-1]) - 11 :]]


def test_a_right_file_system_shows_no_difference_and_runs_go_on(binary, trees):
    for seed in (1, 2):
        done = model(binary, "--ops=1500", "--processes=3", f"--seed={seed}", *trees)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"no difference after 4500 operations, seed {seed}" in done.stdout
    assert model(binary, "--verify", "--processes=3", *trees).returncode == 0
    assert any(Path(trees[0]).rglob("p0_*"))


def test_every_planted_fault_is_found_at_once(binary, trees):
    names = faults(binary)
    assert len(names) == 12
    for name in names:
        for seed in range(1, 9):  # with some a file that lost a write is never looked at again
            for tree in trees:
                shutil.rmtree(tree)
                Path(tree).mkdir()
            options = ("--ops=4000", "--processes=1", f"--seed={seed}", f"--fault={name}")
            done = model(binary, *options, *trees)
            if done.returncode:
                break
        assert done.returncode == 1, f"{name}: {done.stdout}{done.stderr}"
        assert f"DIFFERENCE in process 0 (seed {seed}), operation" in done.stdout


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"other"),
        lambda path: path.chmod(0o7),
        lambda path: path.unlink(),
        lambda path: (path.parent / "more").touch(),
    ],
)
def test_a_tree_that_changed_meanwhile_is_found(binary, trees, damage):
    done = model(binary, "--ops=600", "--processes=1", *trees)
    assert done.returncode == 0, done.stdout
    damage(next(path for path in Path(trees[0], "p0").rglob("*") if path.is_file()))
    done = model(binary, "--verify", "--processes=1", *trees)
    assert (done.returncode, "DIFFERENCE" in done.stdout) == (1, True)


def test_one_process_repeats_with_its_seed(binary, trees):
    found = []
    for _ in range(2):
        for tree in trees:
            shutil.rmtree(tree)
            Path(tree).mkdir()
        arguments = ("--ops=4000", "--processes=1", "--seed=5", "--fault=lost-rename")
        found.append(model(binary, *arguments, *trees).stdout)
    assert found[0] == found[1]


@pytest.fixture
def shortly():
    """Tests that put load on for some seconds end sooner."""
    harness.shorten(1 / 12)
    yield
    harness.shorten(1)


@pytest.fixture(scope="session")
def ext4(tmp_path_factory):
    """A directory of an ext4 of our own, wherever the tests run."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    root = tmp_path_factory.mktemp("ext4")
    image, mount = root / "image", root / "mount"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(1 << 30)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, mount], check=True)
    yield mount
    subprocess.run(["umount", mount], check=True)
    image.unlink()


@pytest.mark.root
@pytest.mark.parametrize("name", sorted(set(harness.names()) - SLOW))
def test_a_function_test_passes_on_ext4(name, ext4, shortly):
    verdict = harness.one(name, harness.elsewhere(ext4 / "place"), limit=60)
    assert verdict.status in ("ok", "skipped"), verdict.text
    assert verdict.status == "ok" or "not ours" in verdict.text or "no " in verdict.text


@pytest.mark.parametrize("name", sorted(set(harness.names()) - SLOW))
def test_a_function_test_passes_on_tmpfs_or_says_what_that_lacks(name, memory, shortly):
    verdict = harness.one(name, harness.elsewhere(memory / "place"), limit=60)
    assert verdict.status in ("ok", "skipped"), verdict.text


def test_a_function_test_that_fails_hangs_or_is_skipped_says_so(tmp_path, monkeypatch):
    def fail(place: Place) -> None:
        harness.equal(1, 2, "one")

    def hang(place: Place) -> None:
        while True:
            pass

    def skip(place: Place) -> None:
        place.own()

    monkeypatch.setattr(harness, "_tests", {"fail": fail, "hang": hang, "skip": skip})
    place = harness.elsewhere(tmp_path / "place")
    assert harness.one("fail", harness.elsewhere(tmp_path / "a")).text == "one: 1, right is 2"
    assert (
        "no end after 1 s" in harness.one("hang", harness.elsewhere(tmp_path / "b"), limit=1).text
    )
    assert harness.one("skip", place).status == "skipped"


def test_a_visit_waits_for_no_fifo(binary, tmp_path):
    # visit makes new0 and more; what an image held may have been renamed to that before.
    for number in range(40):
        os.mkfifo(tmp_path / f"new{number}")
    visit = binary.parent / "visit"
    assert subprocess.run([visit, tmp_path, "0"], timeout=60, check=False).returncode == 0


def test_the_checksum_of_a_changed_block_is_right():
    assert blocks.crc32c(b"123456789") ^ 0xFFFFFFFF == 0xE3069283
    block = bytearray(b"\xff" * 4096)
    blocks.seal(block)
    (crc,) = struct.unpack_from("<I", block, 4)
    assert crc == blocks.crc32c(block[:4] + bytes(4) + block[8:])


def test_corruption_changes_blocks_of_the_image_and_repeats(tmp_path):
    device = tmp_path / "image"
    right = bytearray(8 * 4096)
    for number, kind, home in (
        (0, "super", 0),
        (3, "dirents", 3),
        (5, "itable", 5),
        (6, "itable", 5),
    ):
        head = struct.pack("<IIQ", blocks.MAGIC[kind], 0, home)
        block = bytearray(head + bytes(range(1, 200)) * 20).ljust(4096, b"\0")
        blocks.seal(block)
        right[number * 4096 : (number + 1) * 4096] = block
    device.write_bytes(bytes(right) + bytes((1 << 20) - len(right)))
    found = images.survey("test", device, 1)
    assert found.blocks == {"super": [0], "dirents": [3], "itable": [5], "copy": [6]}
    seen = set()
    for seed in range(30):
        device.write_bytes(right)
        what = images.corrupt(random.Random(seed), found, device)
        changed = {
            n
            for n in range(8)
            if device.read_bytes()[n * 4096 :][:4096] != right[n * 4096 :][:4096]
        }
        assert changed <= {0, 3, 5, 6}
        seen |= changed
        device.write_bytes(right)
        assert images.corrupt(random.Random(seed), found, device) == what
    assert seen == {0, 3, 5, 6}
