// SPDX-License-Identifier: GPL-2.0-only
/* The transactions in a domain's journal, complete or not. */
#include <stdlib.h>

#include "core/block.h"
#include "core/jend.h"
#include "dump.h"
#include "tools/common/die.h"

struct reader {
	struct dump *dump;
	const struct lanefs_layout *layout;
	u64 epoch, seq;
	u64 at, blocks;
	u8 block[LANEFS_BLOCK_SIZE];
};

/* Whether the next block of the journal belongs to the transaction; @number 0: at its own place. */
static bool next_block(struct reader *r, u64 number)
{
	const struct lanefs_header *header = (const void *)r->block;
	u64 place = r->layout->journal + r->at;

	if (++r->blocks > r->layout->journal_blocks)
		return false;
	r->at = (r->at + 1) % r->layout->journal_blocks;
	read_block(r->dump, place, r->block);
	return lanefs_block_good(r->block, le32_to_cpu(header->lh_magic), number ? number : place,
				 r->dump->super.sb_header.lh_uuid) &&
	       le64_to_cpu(header->lh_epoch) == r->epoch && le64_to_cpu(header->lh_seq) == r->seq;
}

static bool read_numbers(struct reader *r, json_t *list, bool copies)
{
	const struct lanefs_header *header = (const void *)r->block;
	unsigned int count = le16_to_cpu(header->lh_count);
	__le64 numbers[LANEFS_JOURNAL_RECORDS];

	if (count > LANEFS_JOURNAL_RECORDS)
		return false;
	memcpy(numbers, header + 1, sizeof(numbers));
	for (unsigned int i = 0; i < count; i++) {
		json_array_append_new(list, number_json(le64_to_cpu(numbers[i])));
		if (copies && !next_block(r, le64_to_cpu(numbers[i])))
			return false;
	}
	return true;
}

static json_t *needs_json(const struct dump *dump, const struct lanefs_commit_block *commit)
{
	json_t *needs = json_array();

	for (u32 d = 0; d < dump->domains; d++)
		if (commit->jc_needs[d])
			json_array_append_new(needs, json_pack("{s:i, s:o}", "domain", (int)d,
				"seq", number_json(le64_to_cpu(commit->jc_needs[d]))));
	return needs;
}

/* NULL: there is nothing of it. */
static json_t *transaction_json(struct reader *r, bool *complete)
{
	const struct lanefs_header *header = (const void *)r->block;
	const struct lanefs_commit_block *commit = (const void *)r->block;
	json_t *copies, *revokes, *json;
	u64 start = r->at;
	bool good = true;

	*complete = false;
	r->blocks = 0;
	if (!next_block(r, 0))
		return NULL;
	copies = json_array();
	revokes = json_array();
	json = json_pack("{s:o, s:o, s:o, s:o}", "seq", number_json(r->seq), "at",
			 number_json(start), "copies", copies, "revokes", revokes);
	while (good && le32_to_cpu(header->lh_magic) != LANEFS_MAGIC_JCOMMIT) {
		if (le32_to_cpu(header->lh_magic) == LANEFS_MAGIC_JDESC)
			good = read_numbers(r, copies, true);
		else if (le32_to_cpu(header->lh_magic) == LANEFS_MAGIC_JREVOKE)
			good = read_numbers(r, revokes, false);
		else
			good = false;
		good = good && next_block(r, 0);
	}
	if (good) {
		json_object_set_new(json, "needs", needs_json(r->dump, commit));
		json_object_set_new(json, "time_ns", number_json(le64_to_cpu(commit->jc_time)));
		*complete = le64_to_cpu(commit->jc_blocks) == r->blocks;
	}
	json_object_set_new(json, "blocks", number_json(r->blocks));
	json_object_set_new(json, "complete", json_boolean(*complete));
	return json;
}

/* The transactions from r->seq on that were committed, though the journal lacks the first; or null. */
static json_t *lost_json(struct reader *r, u32 domain, u64 at)
{
	struct lanefs_jend end = { .uuid = r->dump->super.sb_header.lh_uuid, .epoch = r->epoch,
				      .domain = domain, .seq = r->seq };

	for (u64 i = 0; i < r->layout->journal_blocks; i++) {
		u64 place = r->layout->journal + (at + i) % r->layout->journal_blocks;

		read_block(r->dump, place, r->block);
		if (!lanefs_jend_take(&end, r->block, place))
			break;
	}
	if (!end.last)
		return json_null();
	return json_pack("{s:o, s:o}", "first", number_json(r->seq), "last", number_json(end.last));
}

json_t *journal_json(struct dump *dump, u64 domain)
{
	struct reader *r = allocate(1, sizeof(*r));
	struct lanefs_domain_block block;
	json_t *transactions = json_array(), *json;
	bool complete = true;
	u64 left, start;

	if (domain >= dump->domains)
		die(1, "there is no domain %llu; the last one is %u", domain, dump->domains - 1);
	r->dump = dump;
	r->layout = &dump->layout[domain];
	read_block(dump, r->layout->base + 1, &block);
	r->epoch = le64_to_cpu(block.db_header.lh_epoch);
	r->at = le64_to_cpu(block.db_tail) % r->layout->journal_blocks;
	left = r->layout->journal_blocks;
	for (r->seq = le64_to_cpu(block.db_tail_seq);; r->seq++) {
		start = r->at;
		json = transaction_json(r, &complete);
		if (!json || r->blocks > left) {
			json_decref(json);
			break;
		}
		left -= r->blocks;
		json_array_append_new(transactions, json);
		if (!complete)
			break;
	}
	json = json_pack("{s:o, s:o, s:b, s:o, s:o, s:o, s:o}", "domain", number_json(domain),
			 "epoch", number_json(r->epoch),
			 "void", r->epoch != le64_to_cpu(dump->super.sb_epoch) ||
				 le32_to_cpu(dump->super.sb_state) & LANEFS_STATE_CLEAN,
			 "tail_seq", number_json(le64_to_cpu(block.db_tail_seq)),
			 "tail", number_json(le64_to_cpu(block.db_tail)),
			 "transactions", transactions, "lost", lost_json(r, (u32)domain, start));
	free(r);
	return json;
}
