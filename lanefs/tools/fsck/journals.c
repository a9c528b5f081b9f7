// SPDX-License-Identifier: GPL-2.0-only
/*
 * The domains' superblocks, and all transactions of all journals: after format.h, "Journal" and "Epochs".
 * If a journal has lost committed transactions, those before the gap are used, and the loss is reported.
 * Several threads read, a domain each, in long runs; before and after them one reports.
 */
#include <errno.h>
#include <stdlib.h>

#include "core/crc.h"
#include "core/jend.h"
#include "journals.h"
#include "tools/common/die.h"
#include "tools/common/parallel.h"

#define RUN 256		/* blocks of a transfer; the first ones are shorter */

static bool journal_header_good(const struct check *c, const void *block, u64 number, u64 seq)
{
	struct lanefs_header header;
	u8 copy[LANEFS_BLOCK_SIZE];

	memcpy(copy, block, sizeof(copy));
	memcpy(&header, copy, sizeof(header));
	memset(copy + offsetof(struct lanefs_header, lh_crc), 0, 4);
	return le64_to_cpu(header.lh_block) == number && le64_to_cpu(header.lh_seq) == seq &&
	       le64_to_cpu(header.lh_epoch) == c->epoch &&
	       !memcmp(header.lh_uuid, c->super.sb_header.lh_uuid, 16) &&
	       le32_to_cpu(header.lh_crc) == lanefs_crc32c(~0u, copy, sizeof(copy));
}

static void forget(struct transaction *t)
{
	free(t->copies);
	free(t->revokes);
	free(t->needs);
}

/* The position in a domain's journal: the next block, and the next transaction. */
struct cursor {
	struct check *c;
	u32 domain;
	u64 seq;
	u64 at;		/* block of the journal */
	u64 blocks;	/* of the transaction */
	u64 last;	/* block that was read last */
	u64 run_at;	/* block of the journal that @run begins with */
	size_t run_length, next_length;
	u8 *run;
};

static void start_cursor(struct cursor *cursor, struct check *c, u32 domain)
{
	*cursor = (struct cursor){ .c = c, .domain = domain, .next_length = LANEFS_JEND_LOOK,
				   .run = allocate(RUN, LANEFS_BLOCK_SIZE) };
}

static void read_run(struct cursor *cursor)
{
	const struct lanefs_layout *layout = &cursor->c->domain[cursor->domain].layout;
	struct image *image = &cursor->c->image;
	u64 left = layout->journal_blocks - cursor->at;
	int error;

	cursor->run_at = cursor->at;
	cursor->run_length = cursor->next_length < left ? cursor->next_length : left;
	cursor->next_length = 2 * cursor->next_length < RUN ? 2 * cursor->next_length : RUN;
	error = image_read_run(image, layout->journal + cursor->run_at, cursor->run_length,
			       cursor->run);
	/* An unreadable block may lie behind the end of the journal, where it does not matter. */
	if (error) {
		cursor->run_length = 1;
		read_block(cursor->c, layout->journal + cursor->run_at, cursor->run);
	}
}

/* The next block of the journal, until the one after it; its place is in cursor->last. */
static const void *next_block(struct cursor *cursor)
{
	const struct lanefs_layout *layout = &cursor->c->domain[cursor->domain].layout;
	const u8 *block;

	if (cursor->at < cursor->run_at || cursor->at - cursor->run_at >= cursor->run_length)
		read_run(cursor);
	block = cursor->run + (cursor->at - cursor->run_at) * LANEFS_BLOCK_SIZE;
	cursor->last = layout->journal + cursor->at;
	cursor->at = (cursor->at + 1) % layout->journal_blocks;
	cursor->blocks++;
	return block;
}

static bool read_copies(struct cursor *cursor, struct transaction *t, const __le64 *numbers,
			unsigned int count)
{
	const struct lanefs_layout *layout = &cursor->c->domain[cursor->domain].layout;

	t->copies = reallocate(t->copies, t->copy_count + count, sizeof(*t->copies));
	for (unsigned int i = 0; i < count; i++) {
		u64 number = le64_to_cpu(numbers[i]);
		const void *block = next_block(cursor);

		if (cursor->blocks > layout->journal_blocks || number < layout->ibitmap ||
		    number >= layout->end ||
		    !journal_header_good(cursor->c, block, number, cursor->seq))
			return false;
		t->copies[t->copy_count++] = (struct copy){ number, cursor->last };
	}
	return true;
}

static void read_revokes(struct transaction *t, const __le64 *numbers, unsigned int count)
{
	t->revokes = reallocate(t->revokes, t->revoke_count + count, sizeof(*t->revokes));
	for (unsigned int i = 0; i < count; i++)
		t->revokes[t->revoke_count++] = le64_to_cpu(numbers[i]);
}

static bool read_commit(struct cursor *cursor, struct transaction *t,
			const struct lanefs_commit_block *commit)
{
	t->needs = allocate(cursor->c->domains, sizeof(*t->needs));
	for (u32 d = 0; d < cursor->c->domains; d++)
		t->needs[d] = le64_to_cpu(commit->jc_needs[d]);
	return le64_to_cpu(commit->jc_blocks) == cursor->blocks;
}

/* Whether the transaction is complete. */
static bool read_transaction(struct cursor *cursor, struct transaction *t)
{
	u64 journal_blocks = cursor->c->domain[cursor->domain].layout.journal_blocks;
	__le64 numbers[LANEFS_JOURNAL_RECORDS];

	t->seq = cursor->seq;
	while (cursor->blocks < journal_blocks) {
		const struct lanefs_header *header = next_block(cursor);
		u32 magic = le32_to_cpu(header->lh_magic);
		unsigned int count = le16_to_cpu(header->lh_count);

		if (!journal_header_good(cursor->c, header, cursor->last, cursor->seq) ||
		    le64_to_cpu(header->lh_owner) != cursor->domain)
			return false;
		if (magic == LANEFS_MAGIC_JCOMMIT)
			return read_commit(cursor, t, (const void *)header);
		if (count > LANEFS_JOURNAL_RECORDS)
			return false;
		memcpy(numbers, header + 1, sizeof(numbers));
		if (magic == LANEFS_MAGIC_JREVOKE)
			read_revokes(t, numbers, count);
		else if (magic != LANEFS_MAGIC_JDESC || !read_copies(cursor, t, numbers, count))
			return false;
	}
	return false;
}

/* Whether the journal lacks cursor->seq, which should begin at @at, though it was committed. */
static void look_behind(struct cursor *cursor, struct journal *journal, u64 at, u64 wrong)
{
	struct check *c = cursor->c;
	struct lanefs_jend end = { .uuid = c->super.sb_header.lh_uuid, .epoch = c->epoch,
				      .domain = cursor->domain, .seq = cursor->seq };

	cursor->at = at;
	for (u64 i = 0; i < c->domain[cursor->domain].layout.journal_blocks; i++) {
		const void *block = next_block(cursor);

		if (!lanefs_jend_take(&end, block, cursor->last))
			break;
	}
	journal->lost = end.last;
	journal->wrong = wrong;
}

static void read_journal(struct cursor *cursor, struct journal *journal)
{
	u64 left = cursor->c->domain[cursor->domain].layout.journal_blocks;

	cursor->at = journal->tail;
	for (cursor->seq = journal->first_seq;; cursor->seq++) {
		struct transaction t = { 0 };
		u64 start = cursor->at;

		cursor->blocks = 0;
		/* More than the journal holds would be a circle. */
		if (!read_transaction(cursor, &t) || cursor->blocks > left) {
			forget(&t);
			look_behind(cursor, journal, start, cursor->last);
			return;
		}
		left -= cursor->blocks;
		journal->transactions = reallocate(journal->transactions, journal->count + 1,
					       sizeof(*journal->transactions));
		journal->transactions[journal->count++] = t;
	}
}

struct reading {
	struct check *check;
	struct journal *journals;
};

static void read_domain(void *context, size_t domain)
{
	struct reading *reading = context;
	struct check *c = reading->check;
	struct journal *journal = &reading->journals[domain];
	struct cursor cursor;

	if (journal->empty)
		return;
	start_cursor(&cursor, c, (u32)domain);
	if (journal->outdated) {
		cursor.seq = 1;
		look_behind(&cursor, journal, 0, c->domain[domain].layout.base + 1);
	} else {
		read_journal(&cursor, journal);
	}
	free(cursor.run);
}

/* Finds where the journal begins that the domain's superblock tells of: none if it is not believed. */
static void find_journal(struct check *c, u32 d, struct journal *journal, bool clean)
{
	const struct lanefs_layout *layout = &c->domain[d].layout;
	struct lanefs_domain_block block;
	const char *problem = NULL;

	journal->first_seq = 1;
	read_block(c, layout->base + 1, &block);
	if (!block_good(c, &block, LANEFS_MAGIC_DOMAIN, layout->base + 1, d))
		problem = "damaged";
	else if (le32_to_cpu(block.db_domain) != d ||
		 le64_to_cpu(block.db_base) != layout->base)
		problem = "a copy of another domain's";
	else if (le64_to_cpu(block.db_tail) >= layout->journal_blocks || !block.db_tail_seq ||
		 le64_to_cpu(block.db_tail_seq) >= COUNTER_END)
		problem = "wrong about the beginning of its journal";
	journal->empty = problem || clean;
	if (!problem && le64_to_cpu(block.db_header.lh_epoch) == c->epoch) {
		journal->tail = le64_to_cpu(block.db_tail);
		journal->first_seq = clean ? 1 : le64_to_cpu(block.db_tail_seq);
	} else {
		journal->outdated = true;
	}
	if (problem && can_repair(&c->report, "domain %u: its superblock is %s%s", d, problem,
				clean ? "" : "; the transactions in its journal are lost")) {
		memset(&block, 0, sizeof(block));
		set_header(c, &block, LANEFS_MAGIC_DOMAIN, layout->base + 1, d);
		block.db_domain = cpu_to_le32(d);
		block.db_base = cpu_to_le64(layout->base);
		block.db_tail_seq = cpu_to_le64(1);
		/* Epoch 0 makes its journal void. */
		write_block(c, layout->base + 1, &block);
	}
	journal->damaged = problem && !clean;
}

static void report_lost(struct check *c, u32 domain, struct journal *journal)
{
	if (!journal->lost)
		return;
	can_repair(&c->report, "domain %u: block %llu is damaged or lost, and with it transactions "
		 "%llu to %llu, which were committed", domain, journal->wrong,
		 journal->first_seq + journal->count, journal->lost);
	journal->damaged = true;
}

struct journal *read_journals(struct check *c, bool clean)
{
	struct reading reading = { .check = c, .journals = allocate(c->domains, sizeof(struct journal)) };

	for (u32 d = 0; d < c->domains; d++)
		find_journal(c, d, &reading.journals[d], clean);
	parallel(c->threads, c->domains, read_domain, &reading);
	for (u32 d = 0; d < c->domains; d++)
		report_lost(c, d, &reading.journals[d]);
	return reading.journals;
}

void free_journals(struct check *c, struct journal *journals)
{
	for (u32 d = 0; d < c->domains; d++) {
		for (size_t i = 0; i < journals[d].count; i++)
			forget(&journals[d].transactions[i]);
		free(journals[d].transactions);
	}
	free(journals);
}
