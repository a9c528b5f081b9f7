/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_CORE_RECORDS_H
#define LANEFS_CORE_RECORDS_H

#include "shim.h"

/* A transaction's record of a block: a copy, or a revoke of the copies before. */
struct lanefs_journal_record {
	u64 block;
	u32 txn;	/* counted from the journal's first one */
	u32 at;		/* where the copy lies, in blocks from the journal's first one */
};

#define LANEFS_JSCAN_REVOKED	(~0U)	/* `at`: no copy */

/*
 * Drops revokes that undo nothing, of a block without a copy before or revoked already; wherever
 * the journal will be cut, they change nothing. So no more are left than there are copies: the caller
 * bounds its memory by this, however many revokes a journal has. Sorts by block. Returns how many are
 * left.
 */
u64 lanefs_records_compact(struct lanefs_journal_record *records, u64 count);

/*
 * Keeps what is to be replayed of the first @txns transactions: the newest copy of each block that
 * was not revoked later, or by its own transaction. By ascending blocks. Returns how many.
 */
u64 lanefs_records_newest(struct lanefs_journal_record *records, u64 count, u32 txns);

/* Into the order in which they lie in the journal. */
void lanefs_records_by_place(struct lanefs_journal_record *records, u64 count);

#endif
