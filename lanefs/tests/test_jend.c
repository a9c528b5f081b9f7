// SPDX-License-Identifier: GPL-2.0-only
/* Where a journal ends, and what behind it says that it was longer. */
#include "core/block.h"
#include "core/jend.h"
#include "../../tests/check.h"

#define BLOCKS 1024
#define JOURNAL 258
#define EPOCH 7
#define DOMAIN 3

static u8 journal[BLOCKS][LANEFS_BLOCK_SIZE];
static const u8 uuid[16] = { 1, 2, 3 };

static void put(u64 at, u32 magic, u64 number, u64 owner, u64 epoch, u64 seq)
{
	struct lanefs_header *header = (void *)journal[at % BLOCKS];

	memset(header, 0, LANEFS_BLOCK_SIZE);
	header->lh_magic = cpu_to_le32(magic);
	header->lh_block = cpu_to_le64(number);
	header->lh_owner = cpu_to_le64(owner);
	header->lh_epoch = cpu_to_le64(epoch);
	header->lh_seq = cpu_to_le64(seq);
	memcpy(header->lh_uuid, uuid, sizeof(uuid));
	lanefs_block_seal(header);
}

/* A transaction of so many copies; returns where the next one begins. */
static u64 transaction(u64 at, u64 epoch, u64 seq, u64 copies)
{
	put(at, LANEFS_MAGIC_JDESC, JOURNAL + at % BLOCKS, DOMAIN, epoch, seq);
	for (u64 i = 1; i <= copies; i++)
		put(at + i, LANEFS_MAGIC_ITABLE, 5000 + i, DOMAIN, epoch, seq);
	at += copies + 1;
	put(at, LANEFS_MAGIC_JCOMMIT, JOURNAL + at % BLOCKS, DOMAIN, epoch, seq);
	return at + 1;
}

static struct lanefs_jend look(u64 at, u64 seq)
{
	struct lanefs_jend end = { .uuid = uuid, .epoch = EPOCH, .domain = DOMAIN, .seq = seq };

	for (u64 i = 0; i < BLOCKS; i++)
		if (!lanefs_jend_take(&end, journal[(at + i) % BLOCKS],
				      JOURNAL + (at + i) % BLOCKS))
			break;
	return end;
}

static void damage(u64 at)
{
	journal[at % BLOCKS][99] ^= 1;
}

/* The journal of 20 transactions of 5 blocks each, from @start on, over what was there. */
static void fill(u64 start)
{
	for (u64 seq = 1, at = start; seq <= 20; seq++)
		at = transaction(at, EPOCH, seq, 3);
}

static void test_clean_ends(u64 start)
{
	u64 end = start + 100;

	fill(start);
	CHECK_EQUAL(look(end, 21).last, 0);
	CHECK_EQUAL(look(end, 21).seen, LANEFS_JEND_LOOK);
	/* A transaction under way, as much of it as there may be, without its commit block. */
	transaction(end, EPOCH, 21, 90);
	memset(journal[(end + 91) % BLOCKS], 0, LANEFS_BLOCK_SIZE);
	CHECK_EQUAL(look(end, 21).last, 0);
	damage(end);
	damage(end + 3);
	CHECK_EQUAL(look(end, 21).last, 0);
	CHECK_EQUAL(look(end, 21).seen, BLOCKS);
	/* Its commit block was torn. */
	transaction(end, EPOCH, 21, 90);
	damage(end + 91);
	CHECK_EQUAL(look(end, 21).last, 0);
	memset(journal, 0, sizeof(journal));
}

static void test_damage(u64 start)
{
	for (u64 block = 0; block < 5; block++) {
		fill(start);
		damage(start + 50 + block);
		CHECK_EQUAL(look(start + 50, 11).last, 20);
		/* Of the last one its commit block must be good. */
		damage(start + 95 + block);
		CHECK_EQUAL(look(start + 95, 20).last, block < 4 ? 20 : 0);
	}
	/* Blocks that were never written, though the device said so. */
	fill(start);
	for (u64 block = 50; block < 80; block++)
		memset(journal[(start + block) % BLOCKS], 0, LANEFS_BLOCK_SIZE);
	CHECK_EQUAL(look(start + 50, 11).last, 20);
	/* A large one, of which only the end tells. */
	transaction(start, EPOCH, 1, 900);
	damage(start);
	CHECK_EQUAL(look(start, 1).last, 1);
	memset(journal, 0, sizeof(journal));
}

/* A commit block that is none of this journal. */
static void test_others(void)
{
	put(5, LANEFS_MAGIC_JCOMMIT, JOURNAL + 5, DOMAIN, EPOCH - 1, 30);
	put(6, LANEFS_MAGIC_JCOMMIT, JOURNAL + 6, DOMAIN, EPOCH + 1, 30);
	put(7, LANEFS_MAGIC_JCOMMIT, JOURNAL + 8, DOMAIN, EPOCH, 30);
	put(8, LANEFS_MAGIC_JCOMMIT, JOURNAL + 8, DOMAIN + 1, EPOCH, 30);
	put(9, LANEFS_MAGIC_JCOMMIT, JOURNAL + 9, DOMAIN, EPOCH, 10);
	put(10, LANEFS_MAGIC_JCOMMIT, JOURNAL + 10, DOMAIN, EPOCH, 30);
	((struct lanefs_header *)journal[10])->lh_uuid[0]++;
	lanefs_block_seal(journal[10]);
	CHECK_EQUAL(look(0, 11).last, 0);
	CHECK_EQUAL(look(0, 10).last, 10);
}

int main(void)
{
	for (u64 start = 0; start < BLOCKS; start += 41) {
		test_clean_ends(start);
		test_damage(start);
	}
	test_others();
	return 0;
}
