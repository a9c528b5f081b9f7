// SPDX-License-Identifier: GPL-2.0-only
#include "records.h"

/* A revoke comes after the copies of its own transaction, wherever it lies. */
static int by_block(const void *left, const void *right)
{
	const struct lanefs_journal_record *a = left, *b = right;

	if (a->block != b->block)
		return a->block < b->block ? -1 : 1;
	if (a->txn != b->txn)
		return a->txn < b->txn ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

static int by_place(const void *left, const void *right)
{
	const struct lanefs_journal_record *a = left, *b = right;

	return a->at < b->at ? -1 : a->at > b->at;
}

u64 lanefs_records_compact(struct lanefs_journal_record *records, u64 count)
{
	u64 kept = 0, i;

	lanefs_sort(records, count, sizeof(*records), by_block);
	for (i = 0; i < count; i++) {
		const struct lanefs_journal_record *before = kept ? &records[kept - 1] : NULL;

		if (records[i].at == LANEFS_JSCAN_REVOKED &&
		    (!before || before->block != records[i].block ||
		     before->at == LANEFS_JSCAN_REVOKED))
			continue;
		records[kept++] = records[i];
	}
	return kept;
}

u64 lanefs_records_newest(struct lanefs_journal_record *records, u64 count, u32 txns)
{
	u64 kept = 0, i;

	lanefs_sort(records, count, sizeof(*records), by_block);
	for (i = 0; i < count; i++) {
		if (records[i].txn >= txns)
			continue;
		if (kept && records[kept - 1].block == records[i].block)
			kept--;
		records[kept++] = records[i];
	}
	count = kept;
	for (i = 0, kept = 0; i < count; i++)
		if (records[i].at != LANEFS_JSCAN_REVOKED)
			records[kept++] = records[i];
	return kept;
}

void lanefs_records_by_place(struct lanefs_journal_record *records, u64 count)
{
	lanefs_sort(records, count, sizeof(*records), by_place);
}
