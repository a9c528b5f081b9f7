// SPDX-License-Identifier: GPL-2.0-only
#include "jend.h"
#include "block.h"

/* Written for the transaction that the journal lacks, or a later one: by the journal itself, or a copy. */
static bool is_later(const struct lanefs_jend *end, const void *block)
{
	const struct lanefs_header *header = block;

	return le64_to_cpu(header->lh_epoch) == end->epoch &&
	       le64_to_cpu(header->lh_seq) >= end->seq &&
	       lanefs_block_good(block, le32_to_cpu(header->lh_magic),
				 le64_to_cpu(header->lh_block), end->uuid);
}

bool lanefs_jend_take(struct lanefs_jend *end, const void *block, u64 number)
{
	const struct lanefs_header *header = block;

	end->seen++;
	if (is_later(end, block)) {
		end->traces = true;
		if (le32_to_cpu(header->lh_magic) == LANEFS_MAGIC_JCOMMIT &&
		    le64_to_cpu(header->lh_block) == number &&
		    le64_to_cpu(header->lh_owner) == end->domain &&
		    le64_to_cpu(header->lh_seq) > end->last)
			end->last = le64_to_cpu(header->lh_seq);
	}
	return end->traces || end->seen < LANEFS_JEND_LOOK;
}
