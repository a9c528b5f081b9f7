# SPDX-License-Identifier: GPL-2.0-only
"""fsck.lanefs against damaged images, all checksums mended.

Each field of each kind of block is set to wrong values: fsck -n must find it and change nothing,
fsck -y, built with sanitizers, must end in an image that fsck -n calls clean.
LANEFS_FUZZ=2000 in the environment tries more random damage.
"""

import os
import random
import struct
import tempfile
from pathlib import Path

import lanefs_image as lanefs
import pytest
from lanefs_image import HEADER, INODE, SUPER, UNWRITTEN, Image

SIZE = 30 << 20
CLEAN, REPAIRED, DAMAGED = 0, 1, 4
FUZZ = int(os.environ.get("LANEFS_FUZZ", "25"))


@pytest.fixture(scope="module")
def directory():
    """Where the images are: in memory if that can be, as fsck waits for the device."""
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shm if shm.is_dir() else None) as name:
        yield Path(name)


@pytest.fixture(scope="module")
def template(directory):
    """A populated image, and the inode numbers by name."""
    image = lanefs.make(directory / "template", SIZE, "-d", 3, "-i", 600)
    named = lanefs.populate(image)
    image.save()
    return image, named


@pytest.fixture
def copy(template, directory):
    """A copy to be damaged."""
    return template[0].copy(directory / "image"), template[1]


def fsck(image, mode, sanitized=True):
    done = lanefs.tool("fsck.lanefs", mode, image.path, sanitized=sanitized)
    return done.returncode, done.stdout + done.stderr


def found_and_mended(image, expected=None):
    """Save the damage; return what fsck -n and -y said."""
    image.save()
    before = image.path.stat().st_mtime_ns
    code, text = fsck(image, "-n", sanitized=False)
    assert code == DAMAGED, text
    if expected:
        assert expected in text
    assert image.path.stat().st_mtime_ns == before, "fsck -n has written"
    code, mended = fsck(image, "-y")
    assert code == REPAIRED, mended
    code, again = fsck(image, "-n", sanitized=False)
    assert code == CLEAN, f"{mended}\nthen\n{again}"
    return text, mended


def test_clean(template):
    code, text = fsck(template[0], "-n")
    assert code == CLEAN, text
    assert "3 domains, 206 files, 7 directories, 4 others: clean" in text


def test_repair_of_a_clean_image_changes_nothing(copy):
    image, _ = copy
    before = image.save().read_bytes()
    code, text = fsck(image, "-y")
    assert code == CLEAN, text
    assert image.path.read_bytes() == before


# Fields with more than one right value, which nothing else on the device tells.
FREE_SUPER = {"epoch"}
MOUNTED = 2
FREE_INODE = {"uid", "gid", "mtime", "generation"}


@pytest.mark.parametrize("name", sorted(SUPER.keys() - FREE_SUPER))
@pytest.mark.parametrize("change", ["zero", "ones", "one more"])
def test_super_field(copy, name, change):
    image, _ = copy
    offset, size = SUPER[name]
    old = image.peek(0, offset, size)
    value = {"zero": 0, "ones": (1 << 8 * size) - 1, "one more": old + 1}[change]
    if value == old or (name == "state" and value == MOUNTED):
        pytest.skip("is no damage")
    image.poke(0, offset, size, value)
    if name == "version" and value > old:
        image.save()
        code, text = fsck(image, "-n")
        assert (code, "another version" in text) == (DAMAGED, True)
        return
    found_and_mended(image, "superblock")
    _, text = fsck(image, "-n")
    assert "3 domains, 206 files, 7 directories, 4 others" in text, "the copies knew better"


@pytest.mark.parametrize("value", [0, (1 << 64) - 1])
def test_epoch(copy, value):
    image, _ = copy
    image.poke(0, *SUPER["epoch"], value)
    found_and_mended(image, "superblock")
    assert Image(image.path).super("epoch") < 10


INODES = ["root", "big", "nested", "small", "sparse", "long-link", "short-link", "fifo"]


@pytest.mark.parametrize("inode", INODES)
def test_inode_fields(copy, template, inode):
    """Every field of an inode, in one image each."""
    _, named = copy
    values = {
        name: [0, (1 << 8 * size) - 1, template[0].peek_inode(named[inode], name) + 1]
        for name, (_, size) in INODE.items()
        if name not in FREE_INODE
    }
    values["mtime_ns"] = [10**9, (1 << 32) - 1]
    values["mode"] = [0, 0o777, 0o170000]
    values["xattr"] = [1]
    values["flags"] = [1 << 31]
    if inode in {"small", "sparse"}:
        values["size"] = [0, 1 << 62]  # a larger one may have a hole at its end
    rng = random.Random(inode)
    for name, choices in values.items():
        image = template[0].copy(copy[0].path)
        image.poke_inode(named[inode], name, rng.choice(choices))
        if image.data == template[0].data:
            continue
        found_and_mended(image)


def blocks_of(image, kind):
    return [number for number, k in image.metadata.items() if k == kind]


@pytest.mark.parametrize("kind", ["node", "extents", "dirents", "symlink", "xattr", "itable"])
@pytest.mark.parametrize(
    ("field", "offset", "size", "value"),
    [
        ("magic", 0, 4, 7),
        ("block", 8, 8, 99),
        ("uuid", 16, 4, 99),
        ("owner", 32, 8, 99),
        ("level", 48, 2, 3),
        ("count", 50, 2, 0),
        ("count", 50, 2, 65535),
        ("used", 52, 2, 65535),
        ("used", 52, 2, 63),
        ("epoch", 56, 8, 1 << 60),
    ],
)
def test_tree_header(copy, kind, field, offset, size, value):
    image, _ = copy
    if (field in {"level", "count"} and kind in {"symlink", "itable"}) or (
        field == "used" and kind not in {"dirents", "xattr"}
    ):
        pytest.skip("has no meaning there")
    number = blocks_of(image, kind)[-1]
    image.poke(number, offset, size, value)
    found_and_mended(image)


@pytest.mark.parametrize("bitmap", ["ibitmap", "obitmap", "bbitmap"])
def test_bitmap_block_is_lost(copy, bitmap):
    image, _ = copy
    number = image.layout(1)[bitmap]
    image.data[number * 4096 + 100] ^= 0xFF
    found_and_mended(image, "is damaged")
    code, text = fsck(image, "-n")
    assert (code, "206 files, 7 directories, 4 others" in text) == (CLEAN, True), text


@pytest.mark.parametrize("bitmap", ["ibitmap", "obitmap", "bbitmap"])
@pytest.mark.parametrize("n", [0, 1, 31, 40, 1000, 2000, 32000])
def test_bitmap_bit(copy, bitmap, n):
    """One bit is wrong: no file is lost by that."""
    if (bitmap, n) == ("obitmap", 40):
        pytest.skip("a file that a crash left to be cut, which test_orphans has")
    image, _ = copy
    offset = HEADER + n // 8
    number = image.layout(1)[bitmap]
    image.poke(number, offset, 1, image.peek(number, offset, 1) ^ (1 << n % 8))
    found_and_mended(image)
    _, text = fsck(image, "-n")
    assert "206 files, 7 directories, 4 others" in text


@pytest.mark.parametrize(
    ("offset", "size", "value"),
    [
        *((64, 4, 2), (72, 8, 5), (80, 8, 0), (80, 8, 1 << 63), (88, 8, 1 << 40)),
        *((0, 4, 0), (32, 8, 2)),
    ],
)
def test_domain_superblock(copy, offset, size, value):
    image, _ = copy
    image.poke(image.layout(1)["base"] + 1, offset, size, value)
    found_and_mended(image, "domain 1: its superblock")


def test_copy_of_the_superblock(copy):
    image, _ = copy
    image.data[image.layout(2)["base"] * 4096 + 3000] ^= 1
    found_and_mended(image, "domain 2: its copy of the superblock is damaged")


def test_all_superblocks_but_one_are_lost(copy):
    image, _ = copy
    for number in (0, image.layout(0)["base"], image.layout(1)["base"]):
        image.data[number * 4096 : (number + 1) * 4096] = bytes(4096)
    found_and_mended(image, "superblock: it is damaged; the copy in block")


def test_no_superblock_is_left(copy):
    image, _ = copy
    for number in (0, *(image.layout(d)["base"] for d in range(3))):
        image.data[number * 4096] ^= 1
    image.save()
    for mode in ("-n", "-y"):
        code, text = fsck(image, mode)
        assert (code, "there is no copy of it" in text) == (DAMAGED, True)


def test_superblocks_of_an_older_file_system(copy):
    """Copies of another one that was here before, in better order, are not taken for this one's."""
    image, _ = copy
    old = lanefs.make(image.path, SIZE, "-f", "-d", 4)
    for d in range(1, 4):
        base = old.layout(d)["base"]
        for number in (base, base + 1, old.layout(d)["ibitmap"], old.layout(d)["bbitmap"]):
            image.put(number, old.block(number))
    for d in range(3):
        image.data[image.layout(d)["base"] * 4096] ^= 1
    found_and_mended(image, "its copy of the superblock is damaged")
    _, text = fsck(image, "-n")
    assert "3 domains, 206 files" in text


def entry_offset(image, directory, name):
    """Block and offset of a directory entry."""
    for number in blocks_of(image, "dirents"):
        block = image.block(number)
        if struct.unpack_from("<Q", block, 32)[0] != directory:
            continue
        at = block.find(name, HEADER)
        if at >= 0:
            return number, at - 24
    raise AssertionError(name)


@pytest.mark.parametrize(
    ("field", "offset", "size", "value"),
    [
        ("key", 0, 8, 1 << 40),
        ("inode", 8, 8, 0),
        ("inode", 8, 8, 5),
        ("inode", 8, 8, lanefs.ino_of(2, 599)),
        ("inode", 8, 8, lanefs.ino_of(200, 40)),
        ("inode", 8, 8, (1 << 64) - 1),
        ("inode", 8, 8, 1),
        ("length", 16, 2, 0),
        ("length", 16, 2, 4096),
        ("name's length", 18, 2, 0),
        ("name's length", 18, 2, 300),
        ("name's length", 18, 2, 7),
        ("type", 20, 1, 2),
        ("type", 20, 1, 200),
        ("reserved", 21, 1, 1),
        ("slash", 25, 1, ord("/")),
        ("zero", 25, 1, 0),
        ("another name", 25, 1, ord("z")),
    ],
)
@pytest.mark.parametrize("where", ["own", "remote"])
def test_entry_field(copy, where, field, offset, size, value):
    image, named = copy
    if where == "own":
        number, at = entry_offset(image, named["dir1"], b"small")
    else:
        remote = struct.pack("<Q", named["dir1"]) + b"linked-too"
        span = lanefs.ino_of(0, lanefs.SPAN_INDEX + image.hash(remote) % image.span_dirs)
        number, at = entry_offset(image, span, remote)
        offset += 8 if offset > 24 else 0
    image.poke(number, at + offset, size, value)
    found_and_mended(image)
    if where == "remote":
        # What the names say is whole, so only the index is made anew.
        _, text = fsck(image, "-n")
        assert "206 files, 7 directories, 4 others" in text


def extent_offset(image, named, name, n):
    block, at = image.slot(named[name])
    return block, at + 128 + 16 * n


@pytest.mark.parametrize(
    ("field", "offset", "size", "value", "says"),
    [
        ("overlap", 0, 4, 1, "overlaps"),
        ("empty", 4, 4, 0, "0 blocks"),
        ("long", 4, 4, UNWRITTEN - 1, "not for data"),
        ("metadata", 8, 8, 300, "not for data"),
        ("nowhere", 8, 8, (1 << 64) - 1, "not for data"),
        ("beyond the end", 0, 4, 30, "beyond the end"),
        ("far beyond", 0, 4, (1 << 32) - 2, "0 to"),
    ],
)
def test_extent_field(copy, field, offset, size, value, says):
    image, named = copy
    number, at = extent_offset(image, named, "small", 2)
    image.poke(number, at + offset, size, value)
    found_and_mended(image, None if says == "0 to" else says)


def test_block_in_use_twice(copy):
    image, named = copy
    number, at = extent_offset(image, named, "small", 0)
    other, other_at = extent_offset(image, named, "abroad", 0)
    image.poke(number, at + 8, 8, image.peek(other, other_at + 8, 8))
    text, _ = found_and_mended(image, "in use twice")
    assert f"inode {named['small']}" in text or f"inode {named['abroad']}" in text


def test_tree_block_wanted_as_data(copy):
    """The tree keeps it, although its inode comes later."""
    image, named = copy
    tree = next(n for n in blocks_of(image, "extents") if image.peek(n, 32, 8) == named["sparse"])
    number, at = extent_offset(image, named, "abroad", 0)
    image.poke(number, at + 8, 8, tree)
    found_and_mended(image, f"inode {named['abroad']}: the extent at 0 has blocks")


def test_node_points_to_itself(copy):
    image, named = copy
    number = next(n for n in blocks_of(image, "node") if image.peek(n, 32, 8) == named["big"])
    for i in range(image.peek(number, 50, 2)):
        image.poke(number, HEADER + 16 * i + 8, 8, number)
    found_and_mended(image, f"inode {named['big']}")


def test_node_with_the_same_child_again_and_again(copy):
    image, named = copy
    number = next(n for n in blocks_of(image, "node") if image.peek(n, 32, 8) == named["big"])
    child = image.peek(number, HEADER + 8, 8)
    for i in range(image.peek(number, 50, 2)):
        image.poke(number, HEADER + 16 * i + 8, 8, child)
    found_and_mended(image, f"inode {named['big']}: its tree has block {child} twice")


def test_index_out_of_order(copy):
    image, named = copy
    number = next(n for n in blocks_of(image, "node") if image.peek(n, 32, 8) == named["sparse"])
    image.poke(number, HEADER + 16, 8, 0)
    found_and_mended(image, "out of order")


def test_lost_leaf_of_a_directory(copy):
    """Its files are found without a name, and get one in /lost+found; the others keep theirs."""
    image, named = copy
    number = next(n for n in blocks_of(image, "dirents") if image.peek(n, 32, 8) == named["big"])
    lost = image.peek(number, 50, 2)
    image.data[number * 4096 + 2000] ^= 1
    _, mended = found_and_mended(image, f"block {number} of its tree is damaged")
    assert mended.count("/lost+found") == lost
    _, text = fsck(image, "-n")
    assert "206 files, 8 directories, 4 others" in text


def test_lost_root(copy):
    image, _ = copy
    image.poke_inode(1, "mode", 0)
    _, mended = found_and_mended(image, "inode 1: it has no type")
    assert "lost+found" in mended
    _, text = fsck(image, "-n")
    assert "206 files, 8 directories, 4 others" in text


def test_lost_block_of_the_inode_table(copy):
    image, named = copy
    number, _ = image.slot(named["small"])
    image.data[number * 4096 + 77] ^= 1
    found_and_mended(image, "inode table")


def test_directory_within_itself(copy):
    """nested and deep are each other's only parent."""
    image, named = copy
    number, at = entry_offset(image, named["dir1"], b"nested")
    image.poke(number, at + 8, 8, named["empty"])
    image.poke(number, at + 20, 1, 1)
    number, at = entry_offset(image, named["deep"], b"linked-three")
    image.poke(number, at + 8, 8, named["nested"])
    image.poke(number, at + 20, 1, 2)
    found_and_mended(image, "lies within itself")
    _, text = fsck(image, "-n")
    assert "206 files, 8 directories, 4 others" in text


def test_second_name_of_a_directory(copy):
    image, named = copy
    number, at = entry_offset(image, named["dir1"], b"small")
    image.poke(number, at + 8, 8, named["dir0"])
    image.poke(number, at + 20, 1, 2)
    found_and_mended(image, "a second name")


def test_the_same_name_twice(copy):
    image, named = copy
    number, at = entry_offset(image, named["dir1"], b"small")
    key = image.peek(number, at, 8)
    block = image.block(number)
    end = struct.unpack_from("<H", block, 52)[0]
    entry = bytearray(block[at : at + 32])
    struct.pack_into("<Q", entry, 0, key + 1)
    block[at + 32 : end + 32] = block[at:end]
    block[at + 32 : at + 64] = entry
    struct.pack_into("<HH", block, 50, struct.unpack_from("<H", block, 50)[0] + 1, end + 32)
    image.put(number, block)
    found_and_mended(image, "has the name of one before it")


def test_entries_out_of_order(copy):
    image, named = copy
    number, at = entry_offset(image, named["big"], b"003")
    length = image.peek(number, at + 16, 2)
    block = image.block(number)
    entry, following = block[at : at + length], block[at + length : at + 2 * length]
    assert len(following.rstrip(b"\0")) > 100, "the last one of its leaf; choose another name"
    block[at : at + 2 * length] = following + entry
    image.put(number, block)
    found_and_mended(image, "is out of order")


def test_missing_remote_entries(copy):
    """All span directories of a domain are empty: they are made anew from the names."""
    image, _ = copy
    for n in range(16):
        span = lanefs.ino_of(2, lanefs.SPAN_INDEX + n)
        for name in ("level", "count", "size", "blocks"):
            image.poke_inode(span, name, 0)
        block, at = image.slot(span)
        image.poke(block, at + 128, 8, 0)
    found_and_mended(image, "has no remote entry")
    _, text = fsck(image, "-n")
    assert "206 files, 7 directories, 4 others" in text


def fill(image, named):
    """Give all that is free in domain 0 to a file."""
    layout = image.layout(0)
    first = image.next_block[0]
    length = layout["end"] - first
    number, at = extent_offset(image, named, "abroad", 1)
    for offset, size, value in ((0, 4, 1), (4, 4, length), (8, 8, first)):
        image.poke(number, at + offset, size, value)
    for name, value in (("count", 2), ("size", (1 + length) * 4096), ("blocks", 1 + length)):
        image.poke_inode(named["abroad"], name, value)
    for n in range(first - layout["base"], layout["end"] - layout["base"]):
        at = layout["bbitmap"] * 4096 + HEADER + n // 8
        image.data[at] |= 1 << n % 8
    image.put(layout["bbitmap"], image.block(layout["bbitmap"]))


def test_a_tree_is_mended_in_a_full_domain(copy):
    """A new tree may take the place of the old one."""
    image, named = copy
    fill(image, named)
    image.save()
    assert fsck(image, "-n")[0] == CLEAN
    number = next(n for n in blocks_of(image, "dirents") if image.peek(n, 32, 8) == named["big"])
    image.data[number * 4096 + 2000] ^= 1
    found_and_mended(image, f"block {number} of its tree is damaged")


def test_what_cannot_be_mended_is_said(copy):
    """An inode lost its name, and there is no block left for /lost+found."""
    image, named = copy
    fill(image, named)
    number, at = entry_offset(image, named["dir1"], b"empty")
    image.poke(number, at + 8, 8, named["small"])
    image.save()
    code, text = fsck(image, "-y")
    assert code == DAMAGED | REPAIRED
    assert "no blocks left" in text
    assert "CANNOT BE MENDED" in text
    assert "problems are left" in text
    assert Image(image.path).super("state") & 0x8000
    code, text = fsck(image, "-n")
    assert (code, "it says that there is damage" in text) == (DAMAGED, True)


@pytest.mark.parametrize(
    ("offset", "size", "value", "says"),
    [
        (64, 2, 1, "something between its entries"),  # of the first entry: the value's length
        (64, 2, 65535, "beyond its end"),
        (66, 1, 0, "a name of a wrong length"),
        (66, 1, 251, "a name of a wrong length"),
        (67, 1, 0, "an unknown namespace"),
        (67, 1, 4, "an unknown namespace"),
        (67, 1, 2, "out of order"),
        (68, 1, 0, "a zero byte"),
        (68, 1, ord("b"), "out of order"),
        (69, 1, 1, "between its entries"),
        (50, 2, 4, "another number of entries"),
        (52, 2, 64, "a wrong size"),
        (4095, 1, 1, "behind its entries"),
    ],
)
def test_attributes(copy, offset, size, value, says):
    """The block goes, and nothing else."""
    image, named = copy
    number = image.peek_inode(named["small"], "xattr")
    blocks = image.peek_inode(named["small"], "blocks")
    assert image.block(number)[64:72] == b"\0\0\x01\x01a\0\0\0"
    if (offset, value) == (64, 1):
        image.poke(number, 70, 1, 1)
    image.poke(number, offset, size, value)
    _, mended = found_and_mended(image, f"block {number} of its extended attributes")
    assert says in mended
    again = Image(image.path)
    assert again.peek_inode(named["small"], "xattr") == 0
    assert again.peek_inode(named["small"], "blocks") == blocks - 1
    _, text = fsck(image, "-n")
    assert "206 files, 7 directories, 4 others" in text


def test_attributes_of_another_inode(copy):
    image, named = copy
    image.poke_inode(named["empty"], "xattr", image.peek_inode(named["small"], "xattr"))
    found_and_mended(image, f"inode {named['empty']}: block")
    again = Image(image.path)
    assert again.peek_inode(named["empty"], "xattr") == 0
    assert again.peek_inode(named["small"], "xattr") != 0, "its owner keeps it"


def test_attributes_in_another_domain(copy):
    image, named = copy
    number = image.alloc(2)
    old = image.block(image.peek_inode(named["small"], "xattr"))
    old[8:16] = struct.pack("<Q", number)
    image.put(number, old)
    image.poke_inode(named["small"], "xattr", number)
    found_and_mended(image, "not for metadata of its domain")


def test_attributes_of_a_span_directory(copy):
    image, _ = copy
    span = lanefs.ino_of(1, lanefs.SPAN_INDEX + 3)
    number = image.write_tree_block("xattr", span, b"\0\0\x01\x01a\0\0\0", count=1, used=HEADER + 8)
    image.poke_inode(span, "xattr", number)
    image.poke_inode(span, "blocks", image.peek_inode(span, "blocks") + 1)
    found_and_mended(image, "none that a span directory can have")


def test_attributes_stay_when_a_tree_is_mended(copy):
    image, named = copy
    number = next(n for n in blocks_of(image, "node") if image.peek(n, 32, 8) == named["sparse"])
    image.poke(number, HEADER + 16, 8, 0)
    found_and_mended(image, "out of order")
    number = Image(image.path).peek_inode(named["sparse"], "xattr")
    assert number == image.peek_inode(named["sparse"], "xattr") != 0


# What a crash leaves is no damage.


def test_orphans(copy):
    image, named = copy
    lost = image.create(named["dir1"], "gone", 1, 0o100644)
    block, slot = image.slot(lost.ino)
    lost.nlink = 0
    lost.xattrs = [(lanefs.USER, b"name", b"value")]
    data = image.block(block)
    data[slot : slot + 256] = image.dinode(lost)
    image.put(block, data)
    attributes = image.peek_inode(lost.ino, "xattr") - image.layout(1)["base"]
    image.bit(1, "bbitmap", attributes, True)
    image.bit(1, "ibitmap", lost.ino & 0xFFFF, True)
    image.bit(1, "obitmap", lost.ino & 0xFFFF, True)
    image.poke_inode(named["small"], "size", 100)  # blocks beyond it are still there
    image.bit(1, "obitmap", named["small"] & 0xFFFF, True)
    image.save()
    code, text = fsck(image, "-n")
    assert (code, "2 orphans" in text) == (CLEAN, True), text
    code, text = fsck(image, "-y")
    assert (code, "2 orphans" in text) == (CLEAN, True), text
    code, text = fsck(image, "-n")
    assert (code, "orphan" in text) == (CLEAN, False), text
    again = Image(image.path)
    assert again.peek_inode(named["small"], "blocks") == 2, "data, and the attributes"
    assert again.peek_inode(lost.ino, "mode") == 0


# Anything at all.


@pytest.mark.parametrize("seed", range(FUZZ))
def test_random_damage(copy, seed):
    """fsck -y either says that it could not, or ends in a clean image."""
    image, _ = copy
    rng = random.Random(seed)
    kinds = [*image.metadata, 0]
    for d in range(3):
        layout = image.layout(d)
        kinds += [layout["base"], layout["base"] + 1, *range(layout["ibitmap"], layout["itable"])]
    for _ in range(rng.choice([1, 2, 5, 30])):
        number = rng.choice(kinds)
        size = rng.choice([1, 2, 4, 8])
        offset = rng.choice([rng.randrange(64), rng.randrange(64, 400), rng.randrange(64, 4088)])
        if 0 < offset < 8:
            offset = 8
        value = rng.choice([0, 1, (1 << 8 * size) - 1, rng.getrandbits(8 * size)])
        image.poke(number, offset, size, value)
    image.save()
    code, found = fsck(image, "-n")
    assert code in {CLEAN, DAMAGED}, found
    code, mended = fsck(image, "-y")
    assert code in {CLEAN, REPAIRED, DAMAGED, DAMAGED | REPAIRED}, mended
    again, text = fsck(image, "-n")
    assert again == (DAMAGED if code & DAMAGED else CLEAN), f"{mended}\nthen\n{text}"
