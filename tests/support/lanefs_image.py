# SPDX-License-Identifier: GPL-2.0-only
"""Writing lanefs images without lanefs: what mkfs made is filled with files, or with damage.

Written from lanefs/format.h alone, so that it is a third reading of the format beside the module
and fsck.lanefs.
"""

import copy
import stat
import struct
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from fscale.model import paths
from tests.lanefs.blocks import BLOCK, HEADER, MAGIC, seal

BUILD = paths.ROOT / "build" / "lanefs"
CHUNK = 16 * BLOCK  # of the file, written or left a hole
BODY = BLOCK - HEADER
BITS = BODY * 8
INODES_PER_BLOCK = 15
FIRST_INDEX = 32
SPAN_INDEX = 8
UNWRITTEN = 1 << 31
LOG = 1  # of incompat
OWNERS = 256  # of a block
OWNER = struct.Struct("<IQ")  # logical, ino
USER, TRUSTED, SECURITY = 1, 2, 3  # namespaces of extended attributes
MASK = (1 << 64) - 1

# Offsets in the superblock and in an inode: name -> (offset, bytes).
SUPER = {
    "version": (64, 4),
    "block_shift": (68, 4),
    "compat": (72, 8),
    "ro_compat": (80, 8),
    "incompat": (88, 8),
    "blocks": (96, 8),
    "domain_start": (104, 8),
    "domain_blocks": (112, 8),
    "domain_inodes": (120, 8),
    "domains": (128, 4),
    "journal_blocks": (132, 4),
    "span_dirs": (136, 4),
    "state": (140, 4),
    "epoch": (144, 8),
    "hash_seed0": (152, 8),
    "hash_seed1": (160, 8),
    "label": (168, 8),
    "created": (200, 8),
}
INODE = {
    "mode": (0, 2),
    "level": (2, 2),
    "count": (4, 2),
    "reserved0": (6, 2),
    "uid": (8, 4),
    "gid": (12, 4),
    "nlink": (16, 4),
    "flags": (20, 4),
    "size": (24, 8),
    "blocks": (32, 8),
    "mtime": (48, 8),
    "mtime_ns": (76, 4),
    "generation": (88, 4),
    "rdev": (92, 4),
    "ino": (96, 8),
    "xattr": (104, 8),
    "parent": (112, 8),
    "shift_at": (120, 4),
    "shift_by": (124, 4),
}
ROOT_OFFSET = 128  # of the tree's root, or a target, in an inode


def siphash(key: tuple[int, int], data: bytes) -> int:
    """SipHash-2-4."""
    v = [
        key[0] ^ 0x736F6D6570736575,
        key[1] ^ 0x646F72616E646F6D,
        key[0] ^ 0x6C7967656E657261,
        key[1] ^ 0x7465646279746573,
    ]

    def rotate(x: int, bits: int) -> int:
        return (x << bits | x >> (64 - bits)) & MASK

    def rounds(count: int) -> None:
        a, b, c, d = v
        for _ in range(count):
            a, c = (a + b) & MASK, (c + d) & MASK
            b, d = rotate(b, 13) ^ a, rotate(d, 16) ^ c
            a = rotate(a, 32)
            c, a = (c + b) & MASK, (a + d) & MASK
            b, d = rotate(b, 17) ^ c, rotate(d, 21) ^ a
            c = rotate(c, 32)
        v[:] = a, b, c, d

    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def ino_of(domain: int, index: int) -> int:
    return domain << 40 | index


def domain_of(ino: int) -> int:
    return ino >> 40


@cache
def build(target: str) -> None:
    """Make a target of lanefs/Makefile, once a session."""
    argv = ["make", "-C", str(paths.ROOT / "lanefs"), "-j2", target]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def tool(name: str, *args: object, sanitized: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a tool. A report of a sanitizer, or a signal, fails the test."""
    build("tests" if sanitized else "tools")
    argv = [BUILD / "san" / name if sanitized else BUILD / name, *args]
    done = subprocess.run(
        [str(a) for a in argv], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode >= 0, f"{argv}: signal {-done.returncode}"
    assert "Sanitizer" not in done.stderr, done.stderr
    assert "runtime error" not in done.stderr, done.stderr
    return done


@dataclass
class Inode:
    """An inode in the making."""

    ino: int
    mode: int
    nlink: int = 1
    size: int = 0
    parent: int = 0
    rdev: int = 0
    extents: list[tuple[int, int, int]] = field(default_factory=list)  # logical, length, block
    entries: list[tuple[bytes, int, int]] = field(default_factory=list)  # name, ino, type
    target: bytes = b""
    xattrs: list[tuple[int, bytes, bytes]] = field(default_factory=list)  # space, name, value


class Image:
    """A lanefs image in a file. Blocks are sealed when they are written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = bytearray(path.read_bytes())
        self.chunks = {  # that are not zero
            chunk
            for chunk in range(-(-len(self.data) // CHUNK))
            if any(self.data[chunk * CHUNK : (chunk + 1) * CHUNK])
        }
        self.uuid = bytes(self.data[16:32])
        self.start = self.super("domain_start")
        self.domains = self.super("domains")
        self.domain_blocks = self.super("domain_blocks")
        self.domain_inodes = self.super("domain_inodes")
        self.journal_blocks = self.super("journal_blocks")
        self.span_dirs = self.super("span_dirs")
        self.seed = (self.super("hash_seed0"), self.super("hash_seed1"))
        self.log = bool(self.super("incompat") & LOG)
        self.owners_blocks = -(-self.domain_blocks // OWNERS) if self.log else 0
        self.ibitmap_blocks = -(-self.domain_inodes // BITS)
        self.bbitmap_blocks = -(-self.domain_blocks // BITS)
        self.inodes: dict[int, Inode] = {}
        self.next_block = [self.layout(d)["data"] for d in range(self.domains)]
        self.next_index = [FIRST_INDEX] * self.domains
        self.metadata: dict[int, str] = {}  # block -> kind, of what was written here

    def super(self, name: str) -> int:
        offset, size = SUPER[name]
        return int.from_bytes(self.data[offset : offset + size], "little")

    def layout(self, domain: int) -> dict[str, int]:
        base = self.start + domain * self.domain_blocks
        at = {"base": base, "end": base + self.domain_blocks, "journal": base + 2}
        at["ibitmap"] = at["journal"] + self.journal_blocks
        at["obitmap"] = at["ibitmap"] + self.ibitmap_blocks
        at["bbitmap"] = at["obitmap"] + self.ibitmap_blocks
        at["itable"] = at["bbitmap"] + self.bbitmap_blocks
        at["owners"] = at["itable"] + -(-self.domain_inodes // INODES_PER_BLOCK)
        at["data"] = at["owners"] + self.owners_blocks
        return at

    # blocks

    def block(self, number: int) -> bytearray:
        return self.data[number * BLOCK : (number + 1) * BLOCK]

    def put(self, number: int, block: bytearray | bytes) -> None:
        self.chunks.add(number * BLOCK // CHUNK)
        self.data[number * BLOCK : (number + 1) * BLOCK] = self.sealed(block)

    @staticmethod
    def sealed(block: bytearray | bytes) -> bytearray:
        copied = bytearray(block)
        seal(copied)
        return copied

    def header(
        self, kind: str, number: int, owner: int, *, seq: int = 0, level: int = 0, count: int = 0,
        used: int = 0, epoch: int = 0,
    ) -> bytes:  # fmt: skip
        return struct.pack(
            "<IIQ16sQQHHHHQ",
            *(MAGIC[kind], 0, number, self.uuid, owner, seq, level, count, used, 0, epoch),
        )

    def poke(self, number: int, offset: int, size: int, value: int) -> None:
        """Set a field of a metadata block, and mend the checksum."""
        block = self.block(number)
        block[offset : offset + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        self.put(number, block)

    def peek(self, number: int, offset: int, size: int) -> int:
        at = number * BLOCK + offset
        return int.from_bytes(self.data[at : at + size], "little")

    def save(self, path: Path | None = None) -> Path:
        """Write it to its file, with holes for what is zero."""
        path = path or self.path
        with path.open("wb") as file:
            file.truncate(len(self.data))
            for chunk in self.chunks:
                file.seek(chunk * CHUNK)
                file.write(self.data[chunk * CHUNK : (chunk + 1) * CHUNK])
        return path

    def copy(self, path: Path) -> "Image":
        """One that can be damaged; it has no file yet."""
        other = copy.copy(self)
        other.path, other.data, other.chunks = path, bytearray(self.data), set(self.chunks)
        return other

    # inodes

    def slot(self, ino: int) -> tuple[int, int]:
        """The block of the table that has the inode, and the offset in it."""
        index = ino & ((1 << 40) - 1)
        block = self.layout(domain_of(ino))["itable"] + index // INODES_PER_BLOCK
        return block, 256 * (1 + index % INODES_PER_BLOCK)

    def poke_inode(self, ino: int, name: str, value: int) -> None:
        block, at = self.slot(ino)
        offset, size = INODE[name]
        self.poke(block, at + offset, size, value)

    def peek_inode(self, ino: int, name: str) -> int:
        block, at = self.slot(ino)
        offset, size = INODE[name]
        return self.peek(block, at + offset, size)

    def bit(self, domain: int, bitmap: str, n: int, value: bool) -> None:
        number = self.layout(domain)[bitmap] + n // BITS
        offset = HEADER + n % BITS // 8
        old = self.peek(number, offset, 1)
        mask = 1 << n % 8
        self.poke(number, offset, 1, old | mask if value else old & ~mask)

    def owner_slot(self, number: int) -> tuple[int, int]:
        """The block of owners that has the entry of a data block, and the offset in it."""
        layout = self.layout((number - self.start) // self.domain_blocks)
        at, n = divmod(number - layout["base"], OWNERS)
        return layout["owners"] + at, HEADER + OWNER.size * n

    def owner(self, number: int) -> tuple[int, int]:
        """The inode and the logical block that a data block is said to be."""
        block, at = self.owner_slot(number)
        logical, ino = OWNER.unpack_from(self.data, block * BLOCK + at)
        return ino, logical

    def set_owner(self, number: int, ino: int, logical: int) -> None:
        at, offset = self.owner_slot(number)
        block = self.block(at)
        OWNER.pack_into(block, offset, logical, ino)
        self.put(at, block)

    # building

    def alloc(self, domain: int, count: int = 1) -> int:
        first = self.next_block[domain]
        self.next_block[domain] += count
        assert self.next_block[domain] <= self.layout(domain)["end"]
        return first

    def create(self, directory: int, name: str, domain: int, mode: int, **fields: object) -> Inode:
        """A new inode with a name."""
        inode = Inode(ino_of(domain, self.next_index[domain]), mode)
        self.next_index[domain] += 1
        for key, value in fields.items():
            setattr(inode, key, value)
        self.inodes[inode.ino] = inode
        if stat.S_ISDIR(mode):
            inode.nlink = 2
            inode.parent = directory
            self.node(directory).nlink += 1
        self.link(directory, name, inode)
        return inode

    def node(self, ino: int) -> Inode:
        """The root and the span directories come to be when they are first asked for."""
        if ino not in self.inodes:
            root = ino == 1
            self.inodes[ino] = Inode(
                ino, stat.S_IFDIR | (0o755 if root else 0), nlink=2, parent=1 if root else 0
            )
        return self.inodes[ino]

    TYPES = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK,
             stat.S_IFLNK)  # fmt: skip

    def link(self, directory: int, name: str, inode: Inode) -> None:
        kind = self.TYPES.index(stat.S_IFMT(inode.mode)) + 1
        self.node(directory).entries.append((name.encode(), inode.ino, kind))
        if domain_of(directory) != domain_of(inode.ino):
            remote = struct.pack("<Q", directory) + name.encode()
            spans = self.hash(remote) % self.span_dirs
            span = ino_of(domain_of(inode.ino), SPAN_INDEX + spans)
            self.node(span).entries.append((remote, inode.ino, kind))

    def hash(self, name: bytes) -> int:
        """The 56 bits of the key."""
        top = siphash(self.seed, name) >> 8
        return top - 1 if top == (1 << 56) - 1 else top

    def finish(self) -> None:
        """Write all inodes, trees and bitmaps."""
        slots: dict[int, bytearray] = {}
        self.node(1)
        for ino in sorted(self.inodes):
            block, at = self.slot(ino)
            if block not in slots:
                head = self.header("itable", block, domain_of(ino))
                reserved = ino & ((1 << 40) - 1) < FIRST_INDEX + INODES_PER_BLOCK
                slots[block] = self.block(block) if reserved else bytearray(BLOCK)
                slots[block][:HEADER] = head
            slots[block][at : at + 256] = self.dinode(self.inodes[ino])
        for number, block_data in slots.items():
            self.put(number, block_data)
            self.metadata[number] = "itable"
        for domain in range(self.domains):
            layout = self.layout(domain)
            for index in range(FIRST_INDEX, self.next_index[domain]):
                self.bit(domain, "ibitmap", index, ino_of(domain, index) in self.inodes)
        for number in self.blocks_in_use():
            layout = self.layout((number - self.start) // self.domain_blocks)
            offset, n = divmod(number - layout["base"], 8)
            self.data[layout["bbitmap"] * BLOCK + HEADER + offset] |= 1 << n
        for domain in range(self.domains):
            number = self.layout(domain)["bbitmap"]
            self.put(number, self.block(number))
        if self.log:
            self.write_owners()

    def write_owners(self) -> None:
        changed: dict[int, bytearray] = {}
        for inode in self.inodes.values():
            for first, length, block in inode.extents:
                for n in range(length & ~UNWRITTEN):
                    at, offset = self.owner_slot(block + n)
                    changed.setdefault(at, self.block(at))
                    OWNER.pack_into(changed[at], offset, first + n, inode.ino)
        for at, owners in changed.items():
            self.put(at, owners)
            self.metadata[at] = "owners"

    def blocks_in_use(self) -> list[int]:
        """Trees, symlink targets and data."""
        fixed = {"itable", "owners"}
        used = [number for number, kind in self.metadata.items() if kind not in fixed]
        for inode in self.inodes.values():
            for _, length, block in inode.extents:
                used += range(block, block + (length & ~UNWRITTEN))
        return used

    def dinode(self, inode: Inode) -> bytes:
        level, count, root, blocks = 0, 0, b"", 0
        size = inode.size
        if stat.S_ISDIR(inode.mode):
            level, count, root, blocks, leaves = self.directory(inode)
            size = leaves * BLOCK
        elif stat.S_ISLNK(inode.mode):
            size, root = len(inode.target), inode.target
            if size > 127:
                here, rest = inode.target[:BODY], inode.target[BODY:]
                number = self.write_tree_block("symlink", inode.ino, here)
                level, count, root, blocks = 1, 1, struct.pack("<QQ", 0, number) + rest, 1
        elif stat.S_ISREG(inode.mode):
            level, count, root, blocks = self.map(inode)
            blocks += sum(length & ~UNWRITTEN for _, length, _ in inode.extents)
        xattr = self.attributes(inode) if inode.xattrs else 0
        blocks += xattr != 0
        times = (1700000000,) * 4 + (5,) * 4
        packed = struct.pack(
            "<HHHHIIIIQQqqqqIIIIIIQQQQ",
            *(inode.mode, level, count, 0, 1000, 1000, inode.nlink, 0, size, blocks),
            *(*times, 77, inode.rdev, inode.ino, xattr, inode.parent, 0),
        )
        return packed + root.ljust(128, b"\0")

    def attributes(self, inode: Inode) -> int:
        body = b""
        for space, name, value in sorted(inode.xattrs):
            entry = struct.pack("<HBB", len(value), len(name), space) + name + value
            body += entry.ljust(-(-len(entry) // 4) * 4, b"\0")
        return self.write_tree_block(
            "xattr", inode.ino, body, count=len(inode.xattrs), used=HEADER + len(body)
        )

    def write_tree_block(
        self, kind: str, owner: int, body: bytes, *, level: int = 0, count: int = 0, used: int = 0
    ) -> int:
        number = self.alloc(domain_of(owner))
        head = self.header(kind, number, owner, level=level, count=count, used=used)
        self.put(number, bytearray((head + body).ljust(BLOCK, b"\0")))
        self.metadata[number] = kind
        return number

    def grow(self, ino: int, children: list[tuple[int, int]]) -> tuple[int, int, bytes, int]:
        """Nodes above the leaves: level, count and root of the inode, and the nodes' number."""
        level, blocks = 1, 0
        while len(children) > 8:
            above = []
            for at in range(0, len(children), 6):  # few, so that small trees have levels
                part = children[at : at + 6]
                body = b"".join(struct.pack("<QQ", *child) for child in part)
                number = self.write_tree_block("node", ino, body, level=level, count=len(part))
                above.append((part[0][0], number))
                blocks += 1
            children, level = above, level + 1
        root = b"".join(struct.pack("<QQ", *child) for child in children)
        return (level if children else 0), len(children), root, blocks

    def directory(self, inode: Inode) -> tuple[int, int, bytes, int, int]:
        records, last, n = [], None, 0
        for key, name, ino, kind in sorted((self.hash(e[0]), *e) for e in inode.entries):
            n = n + 1 if key == last else 0
            last = key
            length = (24 + len(name) + 7) & ~7
            record = struct.pack("<QQHHB3x", key << 7 | n, ino, length, len(name), kind) + name
            records.append((key << 7 | n, record.ljust(length, b"\0")))
        leaves: list[list[tuple[int, bytes]]] = []
        for record_pair in records:
            if not leaves or HEADER + sum(len(r) for _, r in [*leaves[-1], record_pair]) > BLOCK:
                leaves.append([])
            leaves[-1].append(record_pair)
        children = []
        for leaf in leaves:
            body = b"".join(record for _, record in leaf)
            number = self.write_tree_block(
                "dirents", inode.ino, body, count=len(leaf), used=HEADER + len(body)
            )
            children.append((leaf[0][0], number))
        level, count, root, blocks = self.grow(inode.ino, children)
        return level, count, root, blocks + len(leaves), len(leaves)

    def map(self, inode: Inode) -> tuple[int, int, bytes, int]:
        packed = [(e[0], struct.pack("<IIQ", *e)) for e in inode.extents]
        if len(packed) <= 8:
            return 0, len(packed), b"".join(record for _, record in packed), 0
        children = []
        for at in range(0, len(packed), 12):
            part = packed[at : at + 12]
            body = b"".join(record for _, record in part)
            number = self.write_tree_block("extents", inode.ino, body, count=len(part))
            children.append((part[0][0], number))
        level, count, root, blocks = self.grow(inode.ino, children)
        return level, count, root, blocks + len(children)


def make(path: Path, size: int, *options: object) -> Image:
    """An empty file system, by mkfs.lanefs."""
    with path.open("wb") as file:
        file.truncate(size)
    done = tool("mkfs.lanefs", "-q", *options, path, sanitized=False)
    assert done.returncode == 0, done.stderr
    return Image(path)


def populate(image: Image) -> dict[str, int]:
    """Directories and files of every kind, in and across domains. Names -> inode numbers."""
    named: dict[str, int] = {"root": 1}

    def add(directory: int, name: str, domain: int, mode: int, **fields: object) -> Inode:
        inode = image.create(directory, name, domain, mode, **fields)
        named[name] = inode.ino
        return inode

    for domain in range(image.domains):
        add(1, f"dir{domain}", domain, stat.S_IFDIR | 0o755)
    big = add(1, "big", 0, stat.S_IFDIR | 0o700).ino
    for n in range(200):  # long names: a tree of two levels
        image.create(big, f"{n:03d}" + "x" * 180, n % image.domains, stat.S_IFREG | 0o644)
    one = named["dir1"]
    add(one, "nested", 0, stat.S_IFDIR | 0o755)
    add(named["nested"], "deep", 2, stat.S_IFDIR | 0o755)
    add(one, "empty", 1, stat.S_IFREG | 0o600)
    block = image.alloc(1, 8)
    extents = [(0, 2, block), (2, 1 | UNWRITTEN, block + 2), (9, 3, block + 4),
               (20, 1 | UNWRITTEN, block + 7)]  # fmt: skip
    add(one, "small", 1, stat.S_IFREG | 0o644, size=12 * BLOCK - 5, extents=extents)
    for name, count in (("mapped", 40), ("sparse", 150)):
        first = image.alloc(2, 2 * count)
        extents = [(3 * n, 1, first + 2 * n) for n in range(count)]
        add(named["dir2"], name, 2, stat.S_IFREG | 0o644, size=3 * count * BLOCK, extents=extents)
    other = image.alloc(1, 1)  # data in another domain than the inode
    add(1, "abroad", 0, stat.S_IFREG | 0o644, size=100, extents=[(0, 1, other)])
    add(1, "short-link", 1, stat.S_IFLNK | 0o777, target=b"dir1/small")
    add(1, "long-link", 0, stat.S_IFLNK | 0o777, target=b"long/" * 819)
    add(1, "fifo", 2, stat.S_IFIFO | 0o644)
    add(1, "device", 0, stat.S_IFCHR | 0o600, rdev=0x0103)
    linked = add(named["dir0"], "linked", 0, stat.S_IFREG | 0o644)
    image.link(named["dir1"], "linked-too", linked)
    image.link(named["deep"], "linked-three", linked)
    linked.nlink = 3
    image.inodes[named["small"]].xattrs = [
        (SECURITY, b"capability", bytes(range(20))),
        (USER, b"ab", b"value"),
        (USER, b"a", b""),
        (USER, b"b", b"other value"),
        (TRUSTED, b"\xc3\xa4" * 100, bytes(1000)),
    ]
    for name in ("root", "nested", "sparse", "long-link", "fifo", "device"):
        image.inodes[named[name]].xattrs = [(TRUSTED, name.encode(), name.encode() * 30)]
    image.finish()
    return named
