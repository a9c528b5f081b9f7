# SPDX-License-Identifier: GPL-2.0-only
"""lanefs-dump shows what is there; and ends in order on anything else."""

import json
import random
import struct

import pytest

from tests.support import lanefs_image as lanefs
from tests.support.lanefs_fsck import LOG_SIZE


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    path = tmp_path_factory.mktemp("lanefs") / "image"
    image = lanefs.make(path, 24 << 20, "-d", 3, "-i", 600, "-L", "a label")
    named = lanefs.populate(image)
    image.save()
    return image, named


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """The same, log-structured."""
    path = tmp_path_factory.mktemp("lanefs") / "log"
    image = lanefs.make(path, LOG_SIZE, "-d", 3, "-i", 600, "--alloc", "log")
    named = lanefs.populate(image)
    image.save()
    return image, named


def dump(image, *what):
    done = lanefs.tool("lanefs-dump", "--json", image.path, *what)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_super(template):
    image, _ = template
    shown = dump(image)
    assert shown["label"] == "a label"
    for name in ("blocks", "domain_start", "domain_blocks", "domain_inodes", "journal_blocks"):
        assert shown[name] == image.super(name)
    assert (shown["state"], shown["header"]["good"]) == ("clean", True)


def test_domain(template):
    image, _ = template
    shown = dump(image, "domain", 2)
    layout = image.layout(2)
    assert (shown["base"], shown["end"], shown["data"]) == (
        layout["base"],
        layout["end"],
        layout["data"],
    )
    used = [n for n in image.blocks_in_use() if layout["base"] <= n < layout["end"]]
    assert shown["free_blocks"] == layout["end"] - layout["data"] - len(used)
    inodes = sum(1 for ino in image.inodes if ino >> 40 == 2 and ino & 0xFFFF >= 32)
    assert shown["free_inodes"] == image.domain_inodes - 32 - inodes


def test_file(template):
    image, named = template
    shown = dump(image, "inode", named["sparse"])
    want = image.inodes[named["sparse"]]
    assert [(e["logical"], e["length"], e["block"]) for e in shown["extents"]] == want.extents
    assert (shown["type"], shown["size"], shown["links"]) == ("file", want.size, 1)
    assert all(block["good"] for block in shown["tree"])
    assert shown["level"] == 2
    shown = dump(image, "inode", named["small"])
    assert [e["unwritten"] for e in shown["extents"]] == [False, True, False, True]


def test_directories(template):
    image, named = template
    for name in ("root", "big", "dir1", "deep"):
        shown = dump(image, "dir", named[name])
        want = {(n.decode(), ino, kind) for n, ino, kind in image.inodes[named[name]].entries}
        assert {(e["name"], e["ino"], e["type"]) for e in shown} == want
        assert [e["key"] for e in shown] == sorted(e["key"] for e in shown)


def test_span_directories(template):
    image, _ = template
    for ino, inode in image.inodes.items():
        if 8 <= ino & 0xFF < 24:
            shown = dump(image, "dir", f"{ino >> 40}:{ino & 0xFF}")
            want = {(struct.unpack("<Q", n[:8])[0], n[8:].decode(), i) for n, i, _ in inode.entries}
            assert {(e["dir"], e["name"], e["ino"]) for e in shown} == want


def test_symlinks(template):
    image, named = template
    assert dump(image, "inode", named["short-link"])["target"] == "dir1/small"
    assert dump(image, "inode", named["long-link"])["target"] == "long/" * 819


def test_attributes(template):
    image, named = template
    shown = dump(image, "inode", named["small"])["xattrs"]
    assert [(one["name"], one["size"], one["value"]) for one in shown] == [
        ("user.a", 0, ""),
        ("user.ab", 5, "value"),
        ("user.b", 11, "other value"),
        ("trusted." + "\u00e4" * 100, 1000, "0x" + "00" * 1000),
        ("security.capability", 20, "0x" + bytes(range(20)).hex()),
    ]
    shown = dump(image, "inode", named["long-link"])
    assert [one["name"] for one in shown["xattrs"]] == ["trusted.long-link"]
    assert "xattrs" not in dump(image, "inode", named["dir0"])
    number = image.peek_inode(named["small"], "xattr")
    assert dump(image, "block", number)["kind"] == "extended attributes"


def test_the_kind_of_allocation(template, log):
    assert (dump(template[0])["alloc"], dump(log[0])["alloc"]) == ("extent", "log")
    assert "alloc: log\n" in lanefs.tool("lanefs-dump", log[0].path).stdout
    assert "owners" not in dump(template[0], "domain", 1)
    layout = log[0].layout(1)
    shown = dump(log[0], "domain", 1)
    assert (shown["owners"], shown["data"]) == (layout["owners"], layout["data"])


def test_owners(log, tmp_path):
    """In runs of what follows each other in a file and on the device."""
    image, named = log[0].copy(tmp_path / "image"), log[1]
    block = image.inodes[named["small"]].extents[0][2]
    number = image.owner_slot(block)[0]
    assert image.owner_slot(block + 8)[0] == number
    image.set_owner(block + 8, named["abroad"], 21)
    image.save()
    shown = dump(image, "block", number)
    assert (shown["kind"], shown["good"]) == ("owners", True)
    runs = [(e["block"], e["length"], e["ino"], e["logical"]) for e in shown["owners"]]
    assert runs == [
        (block, 3, named["small"], 0),
        (block + 4, 3, named["small"], 9),
        (block + 7, 1, named["small"], 20),
        (block + 8, 1, named["abroad"], 21),
    ]
    text = lanefs.tool("lanefs-dump", image.path, "block", number).stdout
    assert f"block {block}  length 3  ino {named['small']}  logical 0\n" in text
    assert dump(image, "block", image.layout(1)["owners"])["owners"] == []
    assert "owners" not in dump(image, "block", image.layout(1)["owners"] - 1)


def test_owners_in_a_journal(log, tmp_path):
    """Of a copy the header says where it belongs; if that is nowhere, nobody knows whose it is."""
    image = log[0].copy(tmp_path / "image")
    block = image.inodes[log[1]["abroad"]].extents[0][2]
    number = image.owner_slot(block)[0]
    layout = image.layout(2)
    for place, home in ((layout["journal"], number), (layout["journal"] + 1, layout["data"])):
        image.put(place, image.block(number))
        image.poke(place, 8, 8, home)
    image.save()
    assert (
        dump(image, "block", layout["journal"])["owners"] == dump(image, "block", number)["owners"]
    )
    assert "owners" not in dump(image, "block", layout["journal"] + 1)


def test_block_and_copy_of_the_superblock(template):
    image, _ = template
    base = image.layout(1)["base"]
    assert dump(image, "block", base)["kind"] == "superblock"
    assert dump(image, "--super", base)["uuid"] == dump(image)["uuid"]


def test_text(template):
    image, named = template
    done = lanefs.tool("lanefs-dump", image.path, "dir", named["dir1"])
    assert "name linked-too" in done.stdout
    done = lanefs.tool("lanefs-dump", image.path, "inode", named["abroad"])
    assert "logical 0  length 1" in done.stdout


@pytest.mark.parametrize(
    ("code", "what", "says"),
    [
        (1, ["inode", "99999999"], "there is no inode"),
        (1, ["inode", "7:32"], "there is no inode"),
        (1, ["dir", "short-link"], "not a directory"),
        (1, ["domain", "3"], "there is no domain"),
        (1, ["journal", "3"], "there is no domain"),
        (1, ["block", "99999999"], "block 99999999"),
        (2, ["inode"], "needs a number"),
        (2, ["inode", "x"], '"x"'),
        (2, ["files", "1"], '"files"'),
    ],
)
def test_refusals(template, code, what, says):
    image, named = template
    done = lanefs.tool("lanefs-dump", image.path, *(named.get(w, w) for w in what))
    assert (done.returncode, says in done.stderr) == (code, True), done.stderr


def test_no_lanefs(tmp_path):
    path = tmp_path / "zeros"
    path.write_bytes(bytes(1 << 20))
    done = lanefs.tool("lanefs-dump", path)
    assert (done.returncode, "--super" in done.stderr) == (1, True)


@pytest.mark.parametrize("seed", range(25))
def test_damage(template, tmp_path, seed):
    image = template[0].copy(tmp_path / "image")
    rng = random.Random(seed)
    for number in image.metadata:
        for _ in range(3):
            image.poke(number, rng.randrange(48, 600), 2, rng.choice([0, 65535, 4096, 300]))
    for field in ("level", "count", "size"):
        image.poke_inode(template[1]["sparse"], field, rng.getrandbits(64))
    image.save()
    what = rng.choice([("inode", "sparse"), ("inode", "big"), ("dir", "big"), ("inode", "small"),
                       ("inode", "long-link"), ("dir", "dir1"), ("inode", "device")])  # fmt: skip
    done = lanefs.tool("lanefs-dump", image.path, what[0], template[1][what[1]])
    assert done.returncode in {0, 1}
