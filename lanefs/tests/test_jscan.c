// SPDX-License-Identifier: GPL-2.0-only
/* The transactions of a journal that was written here, whole and with each kind of damage. */
#include "core/block.h"
#include "core/jscan.h"
#include "../../tests/check.h"

#define BLOCKS 64
#define DOMAIN 3
#define EPOCH 7
#define FIRST 40	/* sequence */

static u8 journal[BLOCKS][LANEFS_BLOCK_SIZE];
static const u8 uuid[16] = { 1, 2, 3 };
static const struct lanefs_layout layout = { .journal = 258, .journal_blocks = BLOCKS,
					     .ibitmap = 322, .end = 5000 };
static u64 ends[BLOCKS];	/* of each transaction, in blocks from the journal's first one */
static u64 start;

static struct lanefs_header *own(u64 at, u32 magic, u64 seq)
{
	struct lanefs_header *header = (void *)journal[at % BLOCKS];

	memset(header, 0, LANEFS_BLOCK_SIZE);
	header->lh_magic = cpu_to_le32(magic);
	header->lh_block = cpu_to_le64(layout.journal + at % BLOCKS);
	header->lh_owner = cpu_to_le64(DOMAIN);
	header->lh_epoch = cpu_to_le64(EPOCH);
	header->lh_seq = cpu_to_le64(seq);
	memcpy(header->lh_uuid, uuid, sizeof(uuid));
	return header;
}

/* A transaction of so many copies and revokes; returns where the next one begins. */
static u64 write_transaction(u64 at, u64 seq, u64 copies, u64 revokes)
{
	struct lanefs_header *header = own(at, LANEFS_MAGIC_JDESC, seq);
	__le64 *numbers = (void *)(header + 1);
	struct lanefs_commit_block *commit;
	u64 first = at++;

	header->lh_count = cpu_to_le16((u16)copies);
	for (u64 i = 0; i < copies; i++)
		numbers[i] = cpu_to_le64(1000 * seq + i - 1000 * FIRST + 400);
	lanefs_block_seal(header);
	for (u64 i = 0; i < copies; i++, at++) {
		struct lanefs_header *copy = own(at, LANEFS_MAGIC_ITABLE, seq);

		copy->lh_block = numbers[i];
		lanefs_block_seal(copy);
	}
	if (revokes) {
		header = own(at++, LANEFS_MAGIC_JREVOKE, seq);
		header->lh_count = cpu_to_le16((u16)revokes);
		lanefs_block_seal(header);
	}
	commit = (void *)own(at++, LANEFS_MAGIC_JCOMMIT, seq);
	commit->jc_blocks = cpu_to_le64(at - first);
	lanefs_block_seal(commit);
	return at;
}

/* A journal of @txns transactions; returns its length. */
static u64 write_journal(u64 txns)
{
	u64 at = start;

	for (u64 i = 0; i < txns; i++) {
		at = write_transaction(at, FIRST + i, 1 + i % 4, i % 3);
		ends[i] = at - start;
	}
	return at - start;
}

/* Scans; checks that exactly @txns are found, and that the journal ends by its block @end. */
static void check_scan(u64 txns, u64 end)
{
	struct lanefs_jscan scan = { .layout = &layout, .uuid = uuid, .epoch = EPOCH,
					.domain = DOMAIN, .seq = FIRST };
	enum lanefs_jscan_found found;
	u64 at = 0, complete = 0;

	for (;; at++) {
		const u8 *block = journal[(start + at) % BLOCKS];

		found = lanefs_jscan_take(&scan, block, layout.journal + (start + at) % BLOCKS,
					  lanefs_block_sealed(block));
		if (found == LANEFS_JSCAN_END)
			break;
		if (found == LANEFS_JSCAN_COMMIT) {
			CHECK_EQUAL(at + 1, ends[complete]);
			complete++;
			CHECK_EQUAL(scan.seq, FIRST + complete);
		} else if (found == LANEFS_JSCAN_DESCRIPTOR) {
			CHECK_EQUAL(scan.count, 1 + complete % 4);
			CHECK_EQUAL(le64_to_cpu(scan.numbers[0]), 1000 * complete + 400);
		} else if (found == LANEFS_JSCAN_REVOKE) {
			CHECK_EQUAL(scan.count, complete % 3);
		}
	}
	CHECK_EQUAL(complete, txns);
	CHECK_EQUAL(at, end);
}

/* Changes a word of a header, or of the body, of the journal's block @at; the checksum is right. */
static void change(u64 at, size_t offset, u64 value)
{
	u8 *block = journal[(start + at) % BLOCKS];

	memcpy(block + offset, &value, sizeof(value));
	lanefs_block_seal(block);
}

static void test_whole(void)
{
	u64 length = write_journal(4);

	check_scan(4, length);
	/* What is left of an older journal behind it is not of it. */
	write_transaction(start + length, FIRST + 3, 2, 0);
	check_scan(4, length);
	write_transaction(start + length, FIRST + 5, 2, 0);
	check_scan(4, length);
	memset(journal, 0, sizeof(journal));
}

/* Of transaction 2 of four: descriptor, 3 copies, revoke, commit. */
static void test_damage(void)
{
	static const size_t fields[] = {
		offsetof(struct lanefs_header, lh_block), offsetof(struct lanefs_header, lh_uuid),
		offsetof(struct lanefs_header, lh_seq), offsetof(struct lanefs_header, lh_epoch),
	};
	u64 first;

	for (u64 block = 0; block < 6; block++) {
		write_journal(4);
		first = ends[1];
		CHECK_EQUAL(ends[2] - first, 6);
		journal[(start + first + block) % BLOCKS][3000] ^= 1;
		check_scan(2, first + block);
		for (size_t f = 0; f < sizeof(fields) / sizeof(*fields); f++) {
			write_journal(4);
			change(first + block, fields[f], 12345678);
			check_scan(2, first + block);
		}
		/* Copies are of whatever owner and kind. */
		write_journal(4);
		change(first + block, offsetof(struct lanefs_header, lh_owner), 99);
		if (block < 1 || block > 3)
			check_scan(2, first + block);
		else
			check_scan(4, ends[3]);
	}
	write_journal(4);
	change(first + 5, offsetof(struct lanefs_commit_block, jc_blocks), 5);
	check_scan(2, first + 5);
	/* A copy of a block that is not the domain's to journal. */
	for (u64 number = layout.ibitmap - 1; number <= layout.end; number += layout.end - layout.ibitmap + 1) {
		write_journal(4);
		change(first, LANEFS_HEADER_SIZE + 8, number);
		change(first + 2, offsetof(struct lanefs_header, lh_block), number);
		check_scan(2, first + 2);
	}
	/* More numbers than a block has. */
	write_journal(4);
	((struct lanefs_header *)journal[(start + first) % BLOCKS])->lh_count =
		cpu_to_le16(LANEFS_JOURNAL_RECORDS + 1);
	lanefs_block_seal(journal[(start + first) % BLOCKS]);
	check_scan(2, first);
	memset(journal, 0, sizeof(journal));
}

/* Revoke blocks without an end: a transaction is no longer than the journal. */
static void test_circle(void)
{
	struct lanefs_jscan scan = { .layout = &layout, .uuid = uuid, .epoch = EPOCH,
					.domain = DOMAIN, .seq = FIRST };
	u64 at;

	for (at = 0; at < BLOCKS; at++)
		lanefs_block_seal(own(at, LANEFS_MAGIC_JREVOKE, FIRST));
	for (at = 0; at < 2 * BLOCKS; at++)
		if (lanefs_jscan_take(&scan, journal[at % BLOCKS], layout.journal + at % BLOCKS,
				      true) == LANEFS_JSCAN_END)
			break;
	CHECK_EQUAL(at, BLOCKS);
	memset(journal, 0, sizeof(journal));
}

int main(void)
{
	for (start = 0; start < BLOCKS; start += 7) {
		test_whole();
		test_damage();
	}
	test_circle();
	return 0;
}
