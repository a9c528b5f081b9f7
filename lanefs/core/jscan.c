// SPDX-License-Identifier: GPL-2.0-only
#include "jscan.h"
#include "block.h"

static bool is_of_transaction(const struct lanefs_jscan *scan, const void *block, u64 number)
{
	const struct lanefs_header *header = block;

	return lanefs_block_is(block, le32_to_cpu(header->lh_magic), number, scan->uuid) &&
	       le64_to_cpu(header->lh_epoch) == scan->epoch &&
	       le64_to_cpu(header->lh_seq) == scan->seq;
}

static enum lanefs_jscan_found take_copy(struct lanefs_jscan *scan, const void *block)
{
	u64 number = le64_to_cpu(scan->numbers[scan->copies++]);

	return number >= scan->layout->ibitmap && number < scan->layout->end &&
	       is_of_transaction(scan, block, number) ? LANEFS_JSCAN_COPY : LANEFS_JSCAN_END;
}

static enum lanefs_jscan_found take_commit(struct lanefs_jscan *scan,
					   const struct lanefs_commit_block *commit)
{
	if (le64_to_cpu(commit->jc_blocks) != scan->blocks)
		return LANEFS_JSCAN_END;
	scan->seq++;
	scan->blocks = 0;
	return LANEFS_JSCAN_COMMIT;
}

static enum lanefs_jscan_found take_numbers(struct lanefs_jscan *scan,
					    const struct lanefs_header *header)
{
	bool copies = le32_to_cpu(header->lh_magic) == LANEFS_MAGIC_JDESC;

	if (le16_to_cpu(header->lh_count) > LANEFS_JOURNAL_RECORDS)
		return LANEFS_JSCAN_END;
	scan->count = le16_to_cpu(header->lh_count);
	scan->copies = copies ? 0 : scan->count;
	memcpy(scan->numbers, header + 1, sizeof(scan->numbers));
	return copies ? LANEFS_JSCAN_DESCRIPTOR : LANEFS_JSCAN_REVOKE;
}

enum lanefs_jscan_found lanefs_jscan_take(struct lanefs_jscan *scan, const void *block,
					  u64 place, bool sealed)
{
	const struct lanefs_header *header = block;

	if (!sealed || ++scan->blocks > scan->layout->journal_blocks)
		return LANEFS_JSCAN_END;
	if (scan->copies < scan->count)
		return take_copy(scan, block);
	if (!is_of_transaction(scan, block, place) ||
	    le64_to_cpu(header->lh_owner) != scan->domain)
		return LANEFS_JSCAN_END;
	switch (le32_to_cpu(header->lh_magic)) {
	case LANEFS_MAGIC_JCOMMIT:
		return take_commit(scan, block);
	case LANEFS_MAGIC_JDESC:
	case LANEFS_MAGIC_JREVOKE:
		return take_numbers(scan, header);
	default:
		return LANEFS_JSCAN_END;
	}
}
