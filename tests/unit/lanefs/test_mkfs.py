# SPDX-License-Identifier: GPL-2.0-only
"""mkfs.lanefs: what it writes is clean and as asked for; what it must not overwrite stays."""

import hashlib
import json
import re
import struct
import subprocess
import zlib

import pytest

from tests.support import lanefs_image as lanefs

MIB = 1 << 20
UUID = "12345678-9abc-def0-1234-56789abcdef0"


def dump(path, *what):
    done = lanefs.tool("lanefs-dump", "--json", path, *what)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def empty(path, size):
    with path.open("wb") as file:
        file.truncate(size)
    return path


@pytest.mark.parametrize(
    ("size", "options", "domains"),
    [
        (10 * MIB, ["-d", 1], 1),
        (16 * MIB + 5000, ["--domains", 2, "--inodes", 100], 2),
        (64 * MIB, ["-d", 3, "--journal", "8M"], 3),
        (300 * MIB, ["-d", 1], 1),
        (1 << 30, ["-d", 7], 7),
        (3 << 30, ["-d", 256], 256),
    ],
)
def test_is_clean_and_as_asked_for(tmp_path, size, options, domains):
    path = empty(tmp_path / "image", size)
    done = lanefs.tool("mkfs.lanefs", *options, path)
    assert done.returncode == 0, done.stderr
    assert f"{domains} domains" in done.stdout
    done = lanefs.tool("fsck.lanefs", "-n", path)
    assert done.returncode == 0, done.stdout
    shown = dump(path)
    assert shown["domains"] == domains
    assert shown["blocks"] == size // 4096
    assert shown["domain_start"] + domains * shown["domain_blocks"] <= shown["blocks"]
    assert shown["header"]["good"]
    last = dump(path, "domain", domains - 1)
    assert last["free_blocks"] == last["end"] - last["data"]
    assert last["free_inodes"] == shown["domain_inodes"] - lanefs.FIRST_INDEX


@pytest.mark.parametrize("alloc", ["extent", "log"])
@pytest.mark.parametrize("blocks", [["--size", "40M"], ["-b", 4096, 10240], [10240]])
def test_the_rest_of_a_device_is_left_alone(tmp_path, alloc, blocks):
    path = empty(tmp_path / "image", 80 * MIB)
    with path.open("r+b") as file:
        file.seek(40 * MIB)
        file.write(b"x" * lanefs.BLOCK)
    *size, last = blocks
    place = (path, last) if isinstance(last, int) else (last, path)
    done = lanefs.tool("mkfs.lanefs", "-f", "-d", 1, "-A", alloc, *size, *place)
    assert done.returncode == 0, done.stderr
    shown = dump(path)
    assert shown["blocks"] == 40 * MIB // lanefs.BLOCK
    assert shown["domain_start"] + shown["domain_blocks"] <= shown["blocks"]
    done = lanefs.tool("fsck.lanefs", "-n", path)
    assert done.returncode == 0, done.stdout
    with path.open("rb") as file:
        file.seek(40 * MIB)
        assert file.read(lanefs.BLOCK) == b"x" * lanefs.BLOCK


@pytest.mark.parametrize(("options", "blocks"), [(["-s", 40 * MIB + 1], []), ([], [10241])])
def test_more_than_the_device_is_refused(tmp_path, options, blocks):
    path = empty(tmp_path / "image", 40 * MIB)
    done = lanefs.tool("mkfs.lanefs", *options, path, *blocks)
    assert (done.returncode, f"has {40 * MIB} bytes (10240 blocks)" in done.stderr) == (1, True)
    assert path.read_bytes() == bytes(40 * MIB)


@pytest.mark.parametrize(
    "options",
    [
        ["-d", 1],
        ["-d", 3],
        ["-d", 1, "-i", 100],
        ["-d", 2, "-J", "8M"],
        ["-d", 1, "-A", "log"],
        ["-d", 4, "-A", "log", "-i", 100],
    ],
)
def test_too_small_a_size_is_refused_with_the_least_one(tmp_path, options):
    path = empty(tmp_path / "image", 200 * MIB)
    least = None
    for blocks in (10, 1800):
        done = lanefs.tool("mkfs.lanefs", *options, path, blocks)
        (enough,) = re.findall(r": (\d+) blocks \(\d+ KiB\) are enough", done.stderr)
        assert (done.returncode, least in {None, int(enough)}) == (1, True), done.stderr
        least = int(enough)
    assert lanefs.tool("mkfs.lanefs", *options, path, least - 1).returncode == 1
    done = lanefs.tool("mkfs.lanefs", *options, path, least)
    assert done.returncode == 0, done.stderr
    done = lanefs.tool("fsck.lanefs", "-n", path)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("size", "bytes_per_inode"),
    [
        (64 * MIB, 4096),
        (512 * MIB - lanefs.BLOCK, 4096),
        (512 * MIB, 8192),
        (4096 * MIB - lanefs.BLOCK, 8192),
        (4096 * MIB, 16384),
    ],
)
def test_a_small_device_has_more_inodes_per_byte(tmp_path, size, bytes_per_inode):
    path = empty(tmp_path / "image", size)
    done = lanefs.tool("mkfs.lanefs", "-d", 2, path)
    assert done.returncode == 0, done.stderr
    shown = dump(path)
    wanted = shown["domain_blocks"] * lanefs.BLOCK // bytes_per_inode
    assert 0 <= shown["domain_inodes"] - wanted < lanefs.INODES_PER_BLOCK


@pytest.mark.parametrize(
    ("size", "options", "domains"),
    [
        (15 * MIB, ["-d", 1, "-i", 100], 1),
        (64 * MIB + 5000, ["-d", 3, "--journal", "5M"], 3),
        (300 * MIB, ["-d", 1], 1),
        (1 << 30, ["-d", 7], 7),
        (4 << 30, ["-d", 256], 256),
    ],
)
def test_a_log(tmp_path, size, options, domains):
    path = empty(tmp_path / "image", size)
    done = lanefs.tool("mkfs.lanefs", *options, "-A", "log", path)
    assert (done.returncode, ", log-structured\n" in done.stdout) == (0, True), done.stderr
    done = lanefs.tool("fsck.lanefs", "-n", path)
    assert done.returncode == 0, done.stdout
    shown = dump(path)
    assert (shown["alloc"], shown["incompat"], shown["domains"]) == ("log", 1, domains)
    for domain in {0, domains - 1}:
        parts = dump(path, "domain", domain)
        table = -(-shown["domain_inodes"] // lanefs.INODES_PER_BLOCK)
        assert parts["owners"] == parts["inode_table"] + table
        assert parts["data"] == parts["owners"] + -(-shown["domain_blocks"] // 256)
        assert parts["free_blocks"] == parts["end"] - parts["data"]
        first_whole = -(-(parts["data"] - parts["base"]) // 512)
        assert shown["domain_blocks"] // 512 - first_whole >= 4
        with path.open("rb") as file:
            for number in range(parts["owners"], parts["data"]):
                file.seek(number * lanefs.BLOCK)
                check_empty_owners(file.read(lanefs.BLOCK), number, domain)


def check_empty_owners(block, number, domain):
    magic, _, here, _, owner = struct.unpack_from("<IIQ16sQ", block)
    assert (magic, here, owner) == (lanefs.MAGIC["owners"], number, domain)
    assert block[40:] == bytes(lanefs.BLOCK - 40)
    assert lanefs.Image.sealed(block) == block


def test_a_log_needs_four_whole_segments_for_data(tmp_path):
    """A journal of two segments, other metadata in a third, and four more: 7 of 2 MiB."""
    path = empty(tmp_path / "image", 15 * MIB - lanefs.BLOCK)
    options = ("-d", 1, "-i", 100)
    done = lanefs.tool("mkfs.lanefs", *options, "--alloc", "log", path)
    assert (done.returncode, "too small a size" in done.stderr) == (1, True)
    assert path.read_bytes() == bytes(15 * MIB - lanefs.BLOCK)
    done = lanefs.tool("mkfs.lanefs", *options, path)
    assert (done.returncode, "log-structured" in done.stdout) == (0, False), done.stderr
    assert dump(path)["alloc"] == "extent"


# SHA-256 of what `mkfs.lanefs -d 2 -i 600 -L label -U UUID` has made of 24 MiB ever since.
FIRST = "0cefa13cfa2b81db7eadd84c3c683fa9e7588325c6dfb6b0616d4af95738cec8"


def digest(image):
    """Of all but checksums, and what chance and the clock decide: seeds, times, generations."""
    layouts = [image.layout(d) for d in range(image.domains)]
    chance = [
        (number * lanefs.BLOCK + start, end - start)
        for number in (0, *(layout["base"] for layout in layouts))
        for start, end in ((4, 8), (152, 168), (200, 208))
    ]
    for layout in layouts:
        for number in range(layout["itable"], layout["itable"] + 3):
            at = number * lanefs.BLOCK
            chance.append((at + 4, 4))
            chance += [(at + 256 * (1 + slot) + 40, 52) for slot in range(15)]
    for at, size in chance:
        image.data[at : at + size] = bytes(size)
    return hashlib.sha256(image.data).hexdigest()


@pytest.mark.parametrize("alloc", [(), ("--alloc", "extent"), ("-A", "log", "-A", "extent")])
def test_without_a_log_all_is_as_it_was(tmp_path, alloc):
    options = ("-d", 2, "-i", 600, "-L", "label", "-U", UUID, *alloc)
    assert digest(lanefs.make(tmp_path / "image", 24 * MIB, *options)) == FIRST


def test_domains_follow_the_cpus_but_not_below_32_mib(tmp_path):
    path = empty(tmp_path / "image", 70 * MIB)
    lanefs.tool("mkfs.lanefs", "-q", path)
    assert dump(path)["domains"] in {1, 2}


def test_journal_inodes_label_and_uuid(tmp_path):
    path = empty(tmp_path / "image", 64 * MIB)
    label = "a name of just thirty-two bytes!"
    done = lanefs.tool(
        *("mkfs.lanefs", "-d", 2, "-J", "5000K", "-i", 900, "-L", label, "-U", UUID, path)
    )
    assert done.returncode == 0, done.stderr
    shown = dump(path)
    assert (shown["uuid"], shown["label"]) == (UUID, label)
    assert (shown["journal_blocks"], shown["domain_inodes"]) == (1250, 450)


@pytest.mark.parametrize("options", [[], ["-U", UUID]])
def test_old_logs_are_wiped(tmp_path, options):
    """Also those of another UUID: a copy of what is written here may have this one's log there."""
    image = lanefs.make(tmp_path / "image", 24 * MIB, "-d", 2, "-U", UUID)
    journals = [image.layout(domain)["journal"] * 4096 for domain in range(2)]
    for journal in journals:
        image.data[journal : journal + 9 * 4096] = b"old log!" * (9 * 512)
    image.save()
    done = lanefs.tool("mkfs.lanefs", "-fq", "-d", 2, *options, image.path)
    assert done.returncode == 0, done.stderr
    with image.path.open("rb") as file:
        for journal in journals:
            file.seek(journal)
            assert file.read(9 * 4096) == bytes(9 * 4096)


def test_journals_of_a_sparse_image_stay_sparse(tmp_path):
    path = empty(tmp_path / "image", 1 << 30)
    assert lanefs.tool("mkfs.lanefs", "-q", "-d", 4, "--journal", "32M", path).returncode == 0
    assert path.stat().st_blocks * 512 < 32 * MIB


@pytest.mark.parametrize("mkfs", [["mkfs.ext4", "-q", "-F"], ["mkfs.xfs", "-q", "-f"], None])
def test_what_is_there_is_overwritten_by_force_only(tmp_path, mkfs):
    path = empty(tmp_path / "image", 320 * MIB)
    if mkfs is None:
        assert lanefs.tool("mkfs.lanefs", path).returncode == 0
    else:
        subprocess.run([*mkfs, path], check=True)
    with path.open("rb") as file:
        before = file.read(8 * MIB)
    done = lanefs.tool("mkfs.lanefs", path)
    assert done.returncode == 1
    assert "-f overwrites it" in done.stderr
    with path.open("rb") as file:
        assert file.read(8 * MIB) == before
    assert lanefs.tool("mkfs.lanefs", "-f", path).returncode == 0
    assert lanefs.tool("fsck.lanefs", "-n", path).returncode == 0
    kind = subprocess.run(
        ["blkid", "-p", "-o", "value", "-s", "TYPE", path],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert kind.stdout.strip() not in {"ext4", "xfs"}


def partition_table(path):
    """An empty GUID partition table, at both ends."""
    last = path.stat().st_size // 512 - 1
    table = bytes(128 * 128)

    def header(here, other, entries):
        fields = (b"EFI PART", 0x10000, 92, 0, 0, here, other, 34, last - 33, b"u" * 16, entries)
        packed = struct.pack("<8sIIIIQQQQ16sQII", *fields, 128, 128)
        packed += struct.pack("<I", zlib.crc32(table))
        return packed[:16] + struct.pack("<I", zlib.crc32(packed)) + packed[20:]

    protective = bytes(446) + bytes([0, 0, 2, 0, 0xEE, 255, 255, 255]) + struct.pack("<II", 1, last)
    with path.open("r+b") as file:
        file.write(protective + bytes(48) + b"\x55\xaa" + header(1, last, 2))
        file.seek(last * 512)
        file.write(header(last, 1, last - 32))


def test_force_removes_what_lies_at_the_end(tmp_path):
    """The second copy of a partition table would be found by others."""
    path = empty(tmp_path / "image", 64 * MIB)
    partition_table(path)
    done = lanefs.tool("mkfs.lanefs", path)
    assert (done.returncode, "gpt" in done.stderr) == (1, True), done.stderr
    assert lanefs.tool("mkfs.lanefs", "-f", path).returncode == 0
    assert not path.read_bytes()[-512:].startswith(b"EFI PART")


def test_superblocks_of_an_older_lanefs_are_removed(tmp_path):
    """Or fsck might take them for those of the new one."""
    image = lanefs.make(tmp_path / "image", 64 * MIB, "-d", 7)
    copies = [image.layout(d)["base"] for d in range(7)]
    assert lanefs.tool("mkfs.lanefs", "-f", "-d", 2, image.path).returncode == 0
    after = image.path.read_bytes()
    magic = struct.pack("<I", lanefs.MAGIC["super"])
    left = [n for n in copies[1:] if after[n * 4096 : n * 4096 + 4] == magic]
    assert left == []


@pytest.mark.parametrize(
    ("code", "arguments", "says"),
    [
        (2, ["--domains", "0", "IMAGE"], '"0"'),
        (2, ["--domains", "many", "IMAGE"], '"many"'),
        (1, ["--domains", "257", "IMAGE"], "256"),
        (1, ["--domains", "9", "IMAGE"], "too small a size for 9 domains"),
        (1, ["--journal", "1M", "IMAGE"], "too small"),
        (2, ["--journal", "1X", "IMAGE"], "K, M, G or T"),
        (2, ["--journal", "99999999999T", "IMAGE"], "too large"),
        (1, ["--journal", "18446744073709551615", "IMAGE"], "too large"),
        (1, ["--journal", "18014398509481983K", "IMAGE"], "too large"),
        (2, ["--journal", "18446744073709551616", "IMAGE"], "too large"),
        (2, ["--journal", "-18446744073705357312", "IMAGE"], "above 0"),
        (1, ["--domains", "18446744073709551615", "IMAGE"], "256"),
        (1, ["--inodes", "9999999999", "IMAGE"], "do not fit"),
        (1, ["--inodes", "18446744073709551615", "IMAGE"], "do not fit"),
        (1, ["--alloc", "log", "--domains", "2", "IMAGE"], "too small"),
        (2, ["--alloc", "journal", "IMAGE"], "extent or log"),
        (2, ["--alloc", "", "IMAGE"], "extent or log"),
        (2, ["--label", "x" * 33, "IMAGE"], "more than 32"),
        (2, ["--uuid", "nonsense", "IMAGE"], "nonsense"),
        (2, ["IMAGE", "IMAGE"], "BLOCKS takes a number above 0"),
        (2, ["IMAGE", "0"], "BLOCKS takes a number above 0"),
        (2, ["IMAGE", "4M"], "BLOCKS takes a number"),
        (2, ["IMAGE", "4503599627370496"], "BLOCKS: 4503599627370496 is too large"),
        (2, ["IMAGE", "4000", "4000"], "one device"),
        (2, ["-s", "16M", "IMAGE", "4000"], "not both"),
        (2, ["-b", "1024", "IMAGE"], "blocks of 4096 bytes only, not of 1024"),
        (2, [], "one device"),
        (2, ["--what"], "--help"),
        (1, ["/dev/null"], "neither"),
        (1, ["/nonexistent"], "No such file"),
    ],
)
def test_refusals(tmp_path, code, arguments, says):
    path = empty(tmp_path / "image", 24 * MIB)
    done = lanefs.tool("mkfs.lanefs", *(path if a == "IMAGE" else a for a in arguments))
    assert done.returncode == code
    assert says in done.stderr
    assert path.read_bytes() == bytes(24 * MIB)


@pytest.mark.parametrize("name", ["mkfs.lanefs", "fsck.lanefs", "lanefs-dump"])
def test_help_has_examples(name):
    done = lanefs.tool(name, "--help")
    assert done.returncode == 0
    assert "Examples:" in done.stdout
