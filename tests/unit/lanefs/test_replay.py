# SPDX-License-Identifier: GPL-2.0-only
"""Logs that a crash left, written here by hand: what fsck.lanefs replays, and what it must not."""

import json
import os
import random
import struct

import pytest

from tests.support import lanefs_image as lanefs
from tests.support.lanefs_fsck import LOG_SIZE
from tests.support.lanefs_image import BLOCK, HEADER, MAGIC, SUPER

MOUNTED, CLEAN = 2, 1
EPOCH = 5


class Log:
    """The log of a domain, in the epoch of the image."""

    def __init__(self, image, domain, tail=0, tail_seq=1):
        self.image, self.domain = image, domain
        self.at, self.seq = tail, tail_seq
        layout = image.layout(domain)
        self.journal = layout["journal"]
        base = layout["base"] + 1
        image.poke(base, 56, 8, EPOCH)
        image.poke(base, 80, 8, tail_seq)
        image.poke(base, 88, 8, tail)

    def place(self):
        at = self.at
        self.at = (self.at + 1) % self.image.journal_blocks
        return self.journal + at

    def own(self, kind, number, body, count=0):
        head = self.image.header(kind, number, self.domain, seq=self.seq, count=count, epoch=EPOCH)
        self.image.put(number, bytearray((head + body).ljust(BLOCK, b"\0")))

    def commit(self, copies=(), revokes=(), needs=(), complete=True, blocks_off=0):
        """One transaction: copies are (block number, changed block)."""
        blocks = 1
        for at in range(0, len(copies), 504):
            part = copies[at : at + 504]
            numbers = b"".join(struct.pack("<Q", number) for number, _ in part)
            self.own("descriptor", self.place(), numbers, len(part))
            for number, block in part:
                copy = bytearray(block)
                struct.pack_into("<Q", copy, 8, number)
                struct.pack_into("<Q", copy, 40, self.seq)
                struct.pack_into("<Q", copy, 56, EPOCH)
                self.image.put(self.place(), copy)
            blocks += 1 + len(part)
        if revokes:
            numbers = b"".join(struct.pack("<Q", number) for number in revokes)
            self.own("revoke", self.place(), numbers, len(revokes))
            blocks += 1
        needed = [0] * 256
        for domain, seq in needs:
            needed[domain] = seq
        body = struct.pack("<QQ256Q", blocks + blocks_off, 123, *needed)
        number = self.place()
        if complete:
            self.own("commit", number, body)
        self.seq += 1


@pytest.fixture(scope="module")
def template(directory):
    image = lanefs.make(directory / "template", 24 << 20, "-d", 3, "-i", 600)
    lanefs.populate(image)
    for number in (0, *(image.layout(d)["base"] for d in range(3))):
        image.poke(number, *SUPER["epoch"], EPOCH)
    image.poke(0, *SUPER["state"], MOUNTED)
    return image, directory / "image"


@pytest.fixture
def image(template):
    return template[0].copy(template[1])


def with_mark(image, domain, mark):
    """A change that fsck can tell and does not mind: the user id of the domain's first inode."""
    number, at = image.slot(lanefs.ino_of(domain, 32))
    block = image.block(number)
    struct.pack_into("<I", block, at + 8, mark)
    return number, block


def marks(image, mode="-y", clean=False):
    """The marks after recovery; `clean`: it was recovered before."""
    image.save()
    done = lanefs.tool("fsck.lanefs", mode, image.path)
    assert done.returncode == 0, done.stdout
    assert clean or "not unmounted" in done.stdout
    after = lanefs.Image(image.path)
    if mode == "-y":
        assert after.super("state") == CLEAN
        assert after.super("epoch") == EPOCH + 1
        again = lanefs.tool("fsck.lanefs", "-n", image.path)
        assert again.returncode == 0, again.stdout
    uid = lanefs.INODE["uid"]
    found = [lanefs.ino_of(d, 32) for d in range(3)]
    return [after.peek(after.slot(i)[0], after.slot(i)[1] + uid[0], uid[1]) for i in found]


OLD = 1000


def test_replays_what_is_committed(image):
    log = Log(image, 1)
    log.commit([with_mark(image, 1, 1)])
    log.commit([with_mark(image, 1, 2)])
    log.commit([with_mark(image, 1, 3)], complete=False)
    assert marks(image) == [OLD, 2, OLD]


@pytest.mark.parametrize("mode", ["-n", "-y", "--replay"])
def test_replays_owners(tmp_path, mode):
    """They are journaled as other metadata, in their own domain's log."""
    path = tmp_path / "image"
    image = lanefs.make(path, LOG_SIZE, "-d", 3, "-i", 600, "--alloc", "log")
    named = lanefs.populate(image)
    for number in (0, *(image.layout(d)["base"] for d in range(3))):
        image.poke(number, *SUPER["epoch"], EPOCH)
    image.poke(0, *SUPER["state"], MOUNTED)
    data = image.inodes[named["abroad"]].extents[0][2]
    number = image.owner_slot(data)[0]
    assert number in range(image.layout(1)["owners"], image.layout(1)["data"])
    new = image.block(number)
    image.set_owner(data, named["small"], 100)
    image.save()
    assert lanefs.tool("fsck.lanefs", "-n", path).returncode == 4
    Log(image, 1).commit([(number, new)])
    image.save()
    done = lanefs.tool("fsck.lanefs", mode, path)
    assert (done.returncode, "1 transactions (1 blocks)" in done.stdout) == (0, True), done.stdout
    right = mode != "-n"
    assert (lanefs.Image(path).owner(data) == (named["abroad"], 0)) == right
    if right:
        assert lanefs.tool("fsck.lanefs", "-n", path).returncode == 0


def test_what_was_never_committed_is_not_missed(image):
    log = Log(image, 1, 1000)
    log.commit([with_mark(image, 1, 1)])
    log.commit([with_mark(image, 1, 2)] * 60, complete=False)
    start = (log.at - 62) % 1024 + log.journal
    image.data[(start + 5) * BLOCK + 99] ^= 1
    assert marks(image) == [OLD, 1, OLD]


def test_in_memory_only_with_n(image):
    Log(image, 1).commit([with_mark(image, 1, 1)])
    before = bytes(image.data)
    assert marks(image, "-n") == [OLD, OLD, OLD]
    assert image.path.read_bytes() == before


def test_n_checks_the_state_after_replay(image):
    """Damage in place that the log mends is none; damage in the log is some."""
    good = with_mark(image, 1, 1)
    image.data[good[0] * BLOCK + 700] ^= 1
    log = Log(image, 1)
    log.commit([good])
    assert marks(image) == [OLD, 1, OLD]
    image = image.copy(image.path)
    number, block = with_mark(image, 1, 2)
    at = image.slot(lanefs.ino_of(1, 32))[1]
    struct.pack_into("<H", block, at, 0)
    log.image = image
    log.commit([(number, block)])
    image.save()
    assert lanefs.tool("fsck.lanefs", "-n", image.path).returncode == 4


@pytest.mark.parametrize("tail", [0, 500, 1022, 1023])
def test_wraps_around(image, tail):
    log = Log(image, 2, tail, 77)
    for mark in (1, 2, 3):
        log.commit([with_mark(image, 2, mark)])
    assert marks(image) == [OLD, OLD, 3]


def test_a_circle_ends(image):
    """A log that is full to its last block is read once."""
    log = Log(image, 0)
    blocks = image.journal_blocks
    other = image.layout(0)["bbitmap"]
    per = 16
    for n in range(blocks // per):
        log.commit([with_mark(image, 0, n)] + [(other, image.block(other))] * (per - 3))
    assert log.at == 0
    assert marks(image)[0] == blocks // per - 1


def test_tied_transactions_are_replayed_together(image):
    one, two = Log(image, 0), Log(image, 1)
    one.commit([with_mark(image, 0, 1)], needs=[(1, 1)])
    two.commit([with_mark(image, 1, 1)], needs=[(0, 1)])
    assert marks(image) == [1, 1, OLD]


def test_or_not_at_all(image):
    one, two, three = Log(image, 0), Log(image, 1), Log(image, 2)
    one.commit([with_mark(image, 0, 1)])
    one.commit([with_mark(image, 0, 2)], needs=[(1, 1)])
    one.commit([with_mark(image, 0, 3)])
    two.commit([with_mark(image, 1, 1)], needs=[(0, 2)], complete=False)
    three.commit([with_mark(image, 2, 1)], needs=[(0, 1)])
    three.commit([with_mark(image, 2, 2)], needs=[(0, 3)])
    assert marks(image) == [1, OLD, 1]


def test_the_cut_goes_through_a_chain(image):
    """What is lost in the last domain takes the others with it, in whatever order they come."""
    for first, last in ((0, 2), (2, 0)):
        other = image.copy(image.path)
        Log(other, first).commit([with_mark(other, first, 1)], needs=[(1, 1)])
        Log(other, 1).commit([with_mark(other, 1, 1)], needs=[(last, 1)])
        Log(other, last).commit([with_mark(other, last, 1)], complete=False)
        assert marks(other) == [OLD, OLD, OLD]


def test_a_need_in_a_void_log_is_not_met(image):
    Log(image, 0).commit([with_mark(image, 0, 1)], needs=[(1, 3)])
    Log(image, 1, 0, 9)
    image.poke(image.layout(1)["base"] + 1, 56, 8, EPOCH - 1)
    assert marks(image) == [OLD, OLD, OLD]


def test_a_need_below_the_tail_is_met(image):
    Log(image, 0).commit([with_mark(image, 0, 1)], needs=[(1, 8)])
    Log(image, 1, 0, 9)
    assert marks(image) == [1, OLD, OLD]


def test_revoked_blocks_stay(image):
    log = Log(image, 0)
    number, block = with_mark(image, 0, 1)
    log.commit([(number, block)])
    log.commit(revokes=[number])
    assert marks(image) == [OLD, OLD, OLD]


def test_revoked_and_written_again(image):
    log = Log(image, 0)
    number, block = with_mark(image, 0, 1)
    log.commit([(number, block)])
    log.commit(revokes=[number, 12345])
    log.commit([with_mark(image, 0, 3)])
    assert marks(image) == [3, OLD, OLD]


def test_a_revoke_beyond_the_cut_does_not_count(image):
    log = Log(image, 0)
    log.commit([with_mark(image, 0, 1)])
    log.commit(revokes=[with_mark(image, 0, 1)[0]], needs=[(1, 1)])
    assert marks(image) == [1, OLD, OLD]


DAMAGES = ["copy", "descriptor", "commit", "count", "epoch", "place", "lost"]


def damage(image, start, kind):
    """Damage a block of the transaction of one copy that begins at this block."""
    match kind:
        case "descriptor":
            image.data[start * BLOCK + 70] ^= 1
        case "copy":
            image.data[(start + 1) * BLOCK + 4000] ^= 1
        case "commit":
            image.data[(start + 2) * BLOCK + 70] ^= 1
        case "epoch":
            image.poke(start, 56, 8, EPOCH - 1)
        case "place":
            image.poke(start, HEADER, 8, image.layout(0)["journal"])
        case "lost":
            image.data[start * BLOCK : (start + 1) * BLOCK] = bytes(BLOCK)


def lost(image):
    """What fsck -n says of lost transactions; -y must mend it. And what the dump says."""
    image.save()
    told = lanefs.tool("fsck.lanefs", "-n", image.path)
    assert told.returncode == 4, told.stdout
    dump = json.loads(lanefs.tool("lanefs-dump", "--json", image.path, "journal", 0).stdout)
    done = lanefs.tool("fsck.lanefs", "-y", image.path)
    assert done.returncode == 1, done.stdout
    lines = [line for line in told.stdout.splitlines() if "transactions" in line]
    assert all(f"{line}: repaired" in done.stdout for line in lines if "domain" in line)
    return told.stdout, dump["lost"]


@pytest.mark.parametrize("kind", DAMAGES)
def test_tells_what_was_committed_and_is_lost(image, kind):
    log = Log(image, 0)
    log.commit([with_mark(image, 0, 1)])
    start = log.journal + log.at
    log.commit([with_mark(image, 0, 2)], blocks_off=kind == "count")
    log.commit([with_mark(image, 0, 3)])
    damage(image, start, kind)
    block = start + {"copy": 1, "commit": 2, "count": 2, "place": 1}.get(kind, 0)
    text, dumped = lost(image)
    assert f"domain 0: block {block} is damaged or lost, and with it transactions 2 to 3" in text
    assert dumped == {"first": 2, "last": 3}
    assert marks(lanefs.Image(image.path), clean=True) == [1, OLD, OLD]


@pytest.mark.parametrize("kind", DAMAGES)
def test_of_the_last_transaction_the_commit_block_tells(image, kind):
    log = Log(image, 0, 1021)
    log.commit([with_mark(image, 0, 1)])
    start = log.journal + log.at
    log.commit([with_mark(image, 0, 2)], blocks_off=kind == "count")
    damage(image, start, kind)
    if kind == "commit":
        assert marks(image) == [1, OLD, OLD]
    else:
        assert lost(image)[1] == {"first": 2, "last": 2}


def test_what_needs_the_lost_is_lost_as_well(image):
    one, two = Log(image, 0), Log(image, 1)
    two.commit([with_mark(image, 1, 1)])
    two.commit([with_mark(image, 1, 2)], needs=[(0, 1)])
    start = one.journal + one.at
    one.commit([with_mark(image, 0, 1)], needs=[(1, 2)])
    damage(image, start, "copy")
    text, _ = lost(image)
    assert "domain 0: block" in text
    assert "domain 1: transactions 2 to 2 need others" in text
    assert marks(lanefs.Image(image.path), clean=True) == [OLD, 1, OLD]


def test_a_log_is_missed_where_the_superblock_tells_of_none(image):
    """The write of the domain's superblock was lost: it still has the epoch before."""
    Log(image, 0).commit([with_mark(image, 0, 1)])
    image.poke(image.layout(0)["base"] + 1, 56, 8, EPOCH - 1)
    image.save()
    told = lanefs.tool("fsck.lanefs", "-n", image.path)
    assert told.returncode == 4
    assert f"block {image.layout(0)['base'] + 1} is damaged or lost" in told.stdout


def test_nothing_is_replayed_after_a_clean_unmount(image):
    Log(image, 1).commit([with_mark(image, 1, 1)])
    image.poke(0, *SUPER["state"], CLEAN)
    image.save()
    done = lanefs.tool("fsck.lanefs", "-y", image.path)
    assert (done.returncode, "Replayed" in done.stdout) == (0, False)
    after = lanefs.Image(image.path)
    number, at = after.slot(lanefs.ino_of(1, 32))
    assert after.peek(number, at + 8, 4) == OLD


def test_a_lost_domain_superblock_loses_its_log_only(image):
    Log(image, 0).commit([with_mark(image, 0, 1)])
    Log(image, 1).commit([with_mark(image, 1, 1)])
    image.data[(image.layout(1)["base"] + 1) * BLOCK + 999] ^= 1
    image.save()
    done = lanefs.tool("fsck.lanefs", "-y", image.path)
    assert (done.returncode, "its journal are lost" in done.stdout) == (1, True)
    assert lanefs.tool("fsck.lanefs", "-n", image.path).returncode == 0


@pytest.mark.parametrize("seed", range(int(os.environ.get("LANEFS_FUZZ", "25"))))
def test_random_damage_of_logs(image, seed):
    """Whatever a log says: no crash, and what -y calls repaired is clean."""
    rng = random.Random(seed)
    logs = [Log(image, d, rng.randrange(1024), rng.randrange(1, 99)) for d in range(3)]
    starts = [log.at for log in logs]
    for _ in range(4):
        for log in logs:
            other = logs[rng.randrange(3)]
            needs = [(other.domain, other.seq - 1)] if other is not log else []
            revokes = [with_mark(image, log.domain, 0)[0]] * rng.randrange(2)
            log.commit([with_mark(image, log.domain, rng.randrange(99))], revokes, needs)
    for _ in range(rng.choice([1, 2, 6])):
        log = rng.choice(logs)
        start = starts[log.domain]
        number = log.journal + (start + rng.randrange((log.at - start) % 1024)) % 1024
        number = rng.choice([number, number, image.layout(log.domain)["base"] + 1])
        size = rng.choice([1, 2, 8])
        offset = rng.choice([rng.randrange(8, 64), rng.randrange(64, 120)])
        value = rng.choice([0, 1, image.peek(number, offset, size) + 1, rng.getrandbits(64)])
        image.poke(number, offset, size, value)
    image.save()
    done = lanefs.tool("fsck.lanefs", "-n", "-j", 1, image.path)
    assert done.returncode in {0, 4}, done.stderr
    many = lanefs.tool("fsck.lanefs", "-n", "-j", 16, image.path)
    assert (many.returncode, many.stdout) == (done.returncode, done.stdout)
    done = lanefs.tool("lanefs-dump", image.path, "journal", rng.randrange(3))
    assert done.returncode == 0, done.stderr
    done = lanefs.tool("fsck.lanefs", "-y", image.path)
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    done = lanefs.tool("fsck.lanefs", "-n", image.path)
    assert done.returncode == 0, done.stdout


def tied_logs(image):
    """In each domain a transaction that needs the others', and one that needs what is not there."""
    logs = [Log(image, d, 1000, 5) for d in range(3)]
    for log in logs:
        needs = [(other.domain, 5) for other in logs if other is not log]
        log.commit([with_mark(image, log.domain, 1)] * 40, needs=needs)
        log.commit([with_mark(image, log.domain, 2)])
    logs[1].commit([with_mark(image, 1, 3)], needs=[(2, 7)])
    image.save()


def replay(image, threads, path):
    """The device after fsck --replay, and what it printed."""
    path.write_bytes(image.data)
    done = lanefs.tool("fsck.lanefs", "--replay", "-j", threads, path)
    assert done.returncode == 0, done.stdout
    return path.read_bytes(), done.stdout


def test_replay_alone_is_the_same_with_many_threads(image, tmp_path):
    tied_logs(image)
    bytes_of_one, said = replay(image, 1, tmp_path / "one")
    assert "Replayed 6 transactions (3 blocks), 1 discarded" in said
    assert replay(image, 16, tmp_path / "many") == (bytes_of_one, said)
    after = lanefs.Image(tmp_path / "one")
    assert (after.super("state"), after.super("epoch")) == (CLEAN, EPOCH + 1)
    for domain in range(3):
        block = after.layout(domain)["base"] + 1
        assert after.peek(block, 56, 8) == EPOCH + 1
        assert (after.peek(block, HEADER + 16, 8), after.peek(block, HEADER + 24, 8)) == (1, 0)
    assert lanefs.tool("fsck.lanefs", "-n", tmp_path / "one").returncode == 0
    assert marks(lanefs.Image(tmp_path / "one"), clean=True) == [2, 2, 2]


def test_replay_alone_repairs_nothing(image):
    """What a mount refuses stays as it is, and a clean file system anyway."""
    log = Log(image, 0)
    start = log.journal + log.at
    log.commit([with_mark(image, 0, 1)])
    damage(image, start, "copy")
    image.save()
    before = image.path.read_bytes()
    done = lanefs.tool("fsck.lanefs", "--replay", image.path)
    assert (done.returncode, "committed" in done.stdout) == (4, True)
    assert image.path.read_bytes() == before
    image.poke(0, *SUPER["state"], CLEAN)
    image.save()
    before = image.path.read_bytes()
    assert lanefs.tool("fsck.lanefs", "--replay", image.path).returncode == 0
    assert image.path.read_bytes() == before


@pytest.mark.parametrize(
    "wrong",
    [["-j", 0], ["-j", "x"], ["-j", 257], ["-j", 1 - (1 << 64)], ["-n", "-r"], ["-y", "-r"]],
)
def test_wrong_arguments_of_replay(image, wrong):
    assert lanefs.tool("fsck.lanefs", *wrong, image.path).returncode == 16


def test_dump_shows_the_log(image):
    log = Log(image, 1, 1020, 7)
    number, block = with_mark(image, 1, 1)
    log.commit([(number, block)], needs=[(0, 4), (2, 6)])
    log.commit(revokes=[4000, 4001])
    log.commit([(number, block)], blocks_off=1)
    image.save()
    done = lanefs.tool("lanefs-dump", "--json", image.path, "journal", 1)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert (shown["tail"], shown["tail_seq"], shown["void"]) == (1020, 7, False)
    first, second, third = shown["transactions"]
    assert (first["seq"], first["copies"], first["complete"]) == (7, [number], True)
    assert first["needs"] == [{"domain": 0, "seq": 4}, {"domain": 2, "seq": 6}]
    assert (second["revokes"], second["complete"]) == ([4000, 4001], True)
    assert (third["seq"], third["complete"]) == (9, False)
    assert shown["lost"] == {"first": 9, "last": 9}
    assert MAGIC["commit"] == image.peek(log.journal + 1022, 0, 4)
