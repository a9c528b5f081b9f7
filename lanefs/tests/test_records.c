// SPDX-License-Identifier: GPL-2.0-only
/* Which copies are replayed, against going through the journal in its order. */
#include "core/records.h"
#include "../../tests/check.h"
#include "random.h"

#define BLOCKS 12
#define TXNS 10
#define MOST 200

static struct lanefs_journal_record history[MOST];
static u64 length, copies;

/* Of each transaction first the copies, and then the revokes. */
static void random_history(void)
{
	u32 at = 0;

	length = copies = 0;
	for (u32 txn = 0; txn < TXNS; txn++) {
		for (unsigned int n = pick(6); n; n--, copies++)
			history[length++] = (struct lanefs_journal_record){ pick(BLOCKS), txn, ++at };
		for (unsigned int n = pick(12); n; n--)
			history[length++] = (struct lanefs_journal_record){ pick(BLOCKS), txn,
									LANEFS_JSCAN_REVOKED };
		at += 2;
	}
}

static int check_newest(struct lanefs_journal_record *records, u64 count, u32 txns)
{
	u32 newest[BLOCKS];
	u64 left = 0;

	for (int b = 0; b < BLOCKS; b++)
		newest[b] = LANEFS_JSCAN_REVOKED;
	for (u64 i = 0; i < length; i++)
		if (history[i].txn < txns)
			newest[history[i].block] = history[i].at;
	count = lanefs_records_newest(records, count, txns);
	for (u32 b = 0; b < BLOCKS; b++)
		if (newest[b] != LANEFS_JSCAN_REVOKED) {
			CHECK(left < count);
			CHECK_EQUAL(records[left].block, b);
			CHECK_EQUAL(records[left].at, newest[b]);
			left++;
		}
	CHECK_EQUAL(count, left);
	lanefs_records_by_place(records, count);
	for (u64 i = 1; i < count; i++)
		CHECK(records[i - 1].at < records[i].at);
	return (int)left;
}

int main(void)
{
	int replayed = 0, dropped = 0;

	for (int i = 0; i < 20000; i++) {
		struct lanefs_journal_record records[MOST];
		u64 count = 0, compacted;

		random_history();
		/* As they come, with what is there compacted now and then. */
		for (u64 n = 0; n < length; n++) {
			records[count++] = history[n];
			if (pick(40))
				continue;
			compacted = lanefs_records_compact(records, count);
			CHECK(compacted <= 2 * copies);
			for (u64 r = 0; r < compacted; r++)
				CHECK(records[r].at != LANEFS_JSCAN_REVOKED ||
				      (r && records[r - 1].block == records[r].block &&
				       records[r - 1].at != LANEFS_JSCAN_REVOKED));
			dropped += (int)(count - compacted);
			count = compacted;
		}
		replayed += check_newest(records, count, pick(TXNS + 1));
	}
	CHECK(replayed > 1000 && dropped > 1000);
	CHECK_EQUAL(lanefs_records_newest(history, 0, TXNS), 0);
	return 0;
}
