// SPDX-License-Identifier: GPL-2.0-only
/*
 * The domains' superblocks and logs: after format.h, "Journal", "Epochs" and "Operations that span
 * domains". All transactions of all logs are read first; then the cut; then the copies go in place.
 * Of a log that has lost what was committed that is what comes before; what it lacks is reported.
 */
#include <errno.h>
#include <stdlib.h>

#include "check.h"
#include "core/crc.h"
#include "core/logend.h"
#include "tools/common/die.h"

struct copy {
	u64 block;	/* where it belongs */
	u64 place;	/* where it lies */
};

struct transaction {
	u64 seq;
	struct copy *copies;
	u64 *revokes;
	size_t copy_count, revoke_count;
	u64 *needs;	/* [domains] */
};

struct log {
	u64 tail, first_seq;
	struct transaction *transactions;
	size_t count;
	size_t kept;	/* after the cut */
	bool damaged;	/* it ends before a transaction that was committed */
};

struct revoked {
	u64 block, seq;
};

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

/* What is read of a transaction: where the next block of the journal is, and how many were. */
struct cursor {
	struct check *c;
	u32 domain;
	u64 seq;
	u64 at;		/* block of the journal */
	u64 blocks;
	u64 last;	/* block that was read last */
};

static u64 next_place(struct cursor *cursor)
{
	const struct lanefs_layout *layout = &cursor->c->domain[cursor->domain].layout;
	u64 place = layout->journal + cursor->at;

	cursor->at = (cursor->at + 1) % layout->journal_blocks;
	cursor->blocks++;
	cursor->last = place;
	return place;
}

static bool read_copies(struct cursor *cursor, struct transaction *t, const __le64 *numbers,
			unsigned int count)
{
	const struct lanefs_layout *layout = &cursor->c->domain[cursor->domain].layout;
	u8 block[LANEFS_BLOCK_SIZE];

	t->copies = reallocate(t->copies, t->copy_count + count, sizeof(*t->copies));
	for (unsigned int i = 0; i < count; i++) {
		u64 number = le64_to_cpu(numbers[i]), place = next_place(cursor);

		if (cursor->blocks > layout->journal_blocks || number < layout->ibitmap ||
		    number >= layout->end)
			return false;
		read_block(cursor->c, place, block);
		if (!journal_header_good(cursor->c, block, number, cursor->seq))
			return false;
		t->copies[t->copy_count++] = (struct copy){ number, place };
	}
	return true;
}

static void read_revokes(struct transaction *t, const __le64 *numbers, unsigned int count)
{
	t->revokes = reallocate(t->revokes, t->revoke_count + count, sizeof(*t->revokes));
	for (unsigned int i = 0; i < count; i++)
		t->revokes[t->revoke_count++] = le64_to_cpu(numbers[i]);
}

/* Whether the transaction is complete. */
static bool read_transaction(struct cursor *cursor, struct transaction *t)
{
	u64 journal_blocks = cursor->c->domain[cursor->domain].layout.journal_blocks;
	u8 block[LANEFS_BLOCK_SIZE];
	const struct lanefs_header *header = (const void *)block;
	const struct lanefs_commit_block *commit = (const void *)block;

	t->seq = cursor->seq;
	while (cursor->blocks < journal_blocks) {
		u64 place = next_place(cursor);
		unsigned int count;

		read_block(cursor->c, place, block);
		if (!journal_header_good(cursor->c, block, place, cursor->seq) ||
		    le64_to_cpu(header->lh_owner) != cursor->domain)
			return false;
		if (le32_to_cpu(header->lh_magic) == LANEFS_MAGIC_JCOMMIT) {
			t->needs = allocate(cursor->c->domains, sizeof(*t->needs));
			for (u32 d = 0; d < cursor->c->domains; d++)
				t->needs[d] = le64_to_cpu(commit->jc_needs[d]);
			return le64_to_cpu(commit->jc_blocks) == cursor->blocks;
		}
		count = le16_to_cpu(header->lh_count);
		if (count > LANEFS_JOURNAL_RECORDS)
			return false;
		if (le32_to_cpu(header->lh_magic) == LANEFS_MAGIC_JREVOKE)
			read_revokes(t, (const __le64 *)(header + 1), count);
		else if (le32_to_cpu(header->lh_magic) != LANEFS_MAGIC_JDESC ||
			 !read_copies(cursor, t, (const __le64 *)(header + 1), count))
			return false;
	}
	return false;
}

/* Whether the log lacks @seq, which should begin at @at, though it was committed. */
static bool report_lost(struct check *c, u32 domain, u64 seq, u64 at, u64 wrong)
{
	const struct lanefs_layout *layout = &c->domain[domain].layout;
	struct lanefs_log_end end = { .uuid = c->super.sb_header.lh_uuid, .epoch = c->epoch,
				      .domain = domain, .seq = seq };
	u8 block[LANEFS_BLOCK_SIZE];

	for (u64 i = 0; i < layout->journal_blocks; i++) {
		u64 place = layout->journal + (at + i) % layout->journal_blocks;

		read_block(c, place, block);
		if (!lanefs_log_end_take(&end, block, place))
			break;
	}
	if (end.last)
		can_mend(&c->report, "domain %u: block %llu is damaged or lost, and with it "
			 "transactions %llu to %llu, which were committed", domain, wrong, seq,
			 end.last);
	return end.last;
}

static void read_log(struct check *c, u32 domain, struct log *log)
{
	struct cursor cursor = { .c = c, .domain = domain, .seq = log->first_seq,
				 .at = log->tail };
	u64 left = c->domain[domain].layout.journal_blocks;

	for (;; cursor.seq++) {
		struct transaction t = { 0 };
		u64 start = cursor.at;

		cursor.blocks = 0;
		/* More than the journal holds would be a circle. */
		if (!read_transaction(&cursor, &t) || cursor.blocks > left) {
			forget(&t);
			log->damaged = report_lost(c, domain, cursor.seq, start, cursor.last);
			return;
		}
		left -= cursor.blocks;
		log->transactions = reallocate(log->transactions, log->count + 1,
					       sizeof(*log->transactions));
		log->transactions[log->count++] = t;
	}
}

/* Reads the log that the domain's superblock tells of: an empty one if it cannot be believed. */
static void find_log(struct check *c, u32 d, struct log *log, bool clean)
{
	const struct lanefs_layout *layout = &c->domain[d].layout;
	struct lanefs_domain_block block;
	const char *problem = NULL;

	log->first_seq = 1;
	read_block(c, layout->base + 1, &block);
	if (!block_good(c, &block, LANEFS_MAGIC_DOMAIN, layout->base + 1, d))
		problem = "damaged";
	else if (le32_to_cpu(block.db_domain) != d ||
		 le64_to_cpu(block.db_base) != layout->base)
		problem = "that of another domain";
	else if (le64_to_cpu(block.db_tail) >= layout->journal_blocks || !block.db_tail_seq ||
		 le64_to_cpu(block.db_tail_seq) >= COUNTER_END)
		problem = "wrong about where its log begins";
	if (!problem && clean)
		return;
	if (!problem && le64_to_cpu(block.db_header.lh_epoch) == c->epoch) {
		log->tail = le64_to_cpu(block.db_tail);
		log->first_seq = le64_to_cpu(block.db_tail_seq);
		read_log(c, d, log);
		return;
	}
	if (!problem) {
		log->damaged = report_lost(c, d, 1, 0, layout->base + 1);
		return;
	}
	if (can_mend(&c->report, "domain %u: its superblock is %s%s", d, problem,
		     clean ? "" :
		     "; what is in its log is lost")) {
		memset(&block, 0, sizeof(block));
		set_header(c, &block, LANEFS_MAGIC_DOMAIN, layout->base + 1, d);
		block.db_domain = cpu_to_le32(d);
		block.db_base = cpu_to_le64(layout->base);
		block.db_tail_seq = cpu_to_le64(1);
		/* Of epoch 0, so its log is void. */
		write_block(c, layout->base + 1, &block);
	}
	log->damaged = !clean;
}

/* The last sequence of a domain that is kept. */
static u64 end_of(const struct log *log)
{
	return log->first_seq - 1 + log->kept;
}

static bool all_needs_kept(const struct check *c, const struct log *logs, u32 domain)
{
	const struct transaction *last = &logs[domain].transactions[logs[domain].kept - 1];

	for (u32 d = 0; d < c->domains; d++)
		if (last->needs[d] > end_of(&logs[d]))
			return false;
	return true;
}

/* Keeps of each log what comes before the first transaction that lacks a need, until all have. */
static void cut(const struct check *c, struct log *logs)
{
	bool moved;

	for (u32 d = 0; d < c->domains; d++)
		logs[d].kept = logs[d].count;
	do {
		moved = false;
		for (u32 d = 0; d < c->domains; d++) {
			size_t sound = 0, kept = logs[d].kept;

			for (logs[d].kept = 1; logs[d].kept <= kept; logs[d].kept++) {
				if (!all_needs_kept(c, logs, d))
					break;
				sound = logs[d].kept;
			}
			logs[d].kept = sound;
			moved |= sound < kept;
		}
	} while (moved);
}

static int by_block_then_seq(const void *a, const void *b)
{
	const struct revoked *x = a, *y = b;

	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static struct revoked *collect_revoked(const struct log *log, size_t *count)
{
	struct revoked *all = NULL;

	*count = 0;
	for (size_t i = 0; i < log->kept; i++) {
		const struct transaction *t = &log->transactions[i];

		all = reallocate(all, *count + t->revoke_count, sizeof(*all));
		for (size_t n = 0; n < t->revoke_count; n++)
			all[(*count)++] = (struct revoked){ t->revokes[n], t->seq };
	}
	if (*count)
		qsort(all, *count, sizeof(*all), by_block_then_seq);
	return all;
}

/* Whether a transaction from @seq on has revoked the block. */
static bool is_revoked(const struct revoked *all, size_t count, u64 block, u64 seq)
{
	size_t low = 0, high = count;
	const struct revoked wanted = { block, seq };

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (by_block_then_seq(&all[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && all[low].block == block;
}

static void replay_log(struct check *c, const struct log *log, struct replayed *replayed)
{
	size_t revoked_count;
	struct revoked *revoked = collect_revoked(log, &revoked_count);
	u8 block[LANEFS_BLOCK_SIZE];

	for (size_t i = 0; i < log->kept; i++) {
		const struct transaction *t = &log->transactions[i];

		for (size_t n = 0; n < t->copy_count; n++) {
			if (is_revoked(revoked, revoked_count, t->copies[n].block, t->seq))
				continue;
			read_block(c, t->copies[n].place, block);
			if (image_write(&c->image, t->copies[n].block, block))
				die(FSCK_FAILED, "block %llu is not on the device",
				    t->copies[n].block);
			replayed->blocks++;
		}
	}
	replayed->transactions += log->kept;
	replayed->discarded += log->count - log->kept;
	free(revoked);
}

/* What the cut takes from the other logs where one has lost what was committed. */
static void report_cut(struct check *c, const struct log *logs)
{
	bool damaged = false;

	for (u32 d = 0; d < c->domains; d++)
		damaged |= logs[d].damaged;
	for (u32 d = 0; damaged && d < c->domains; d++)
		if (logs[d].kept < logs[d].count)
			can_mend(&c->report, "domain %u: transactions %llu to %llu need others that"
				 " are not there", d, end_of(&logs[d]) + 1,
				 logs[d].first_seq - 1 + logs[d].count);
}

void replay_logs(struct check *c, struct replayed *replayed)
{
	struct log *logs = allocate(c->domains, sizeof(*logs));
	bool clean = (le32_to_cpu(c->super.sb_state) & ~LANEFS_STATE_ERROR) == LANEFS_STATE_CLEAN;

	*replayed = (struct replayed){ 0 };
	for (u32 d = 0; d < c->domains; d++)
		find_log(c, d, &logs[d], clean);
	cut(c, logs);
	report_cut(c, logs);
	for (u32 d = 0; d < c->domains; d++)
		replay_log(c, &logs[d], replayed);
	for (u32 d = 0; d < c->domains; d++) {
		for (size_t i = 0; i < logs[d].count; i++)
			forget(&logs[d].transactions[i]);
		free(logs[d].transactions);
	}
	free(logs);
}
