/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_CORE_JSCAN_H
#define LANEFS_CORE_JSCAN_H

#include "shim.h"
#include "../format.h"

/*
 * Finds the complete transactions in a domain's journal (format.h, "Journal"). It is given the blocks of
 * the journal one after the other, from the journal's first one on, and says what each is. Neither
 * memory nor I/O: how the blocks come, and what is kept of them, is the caller's.
 */
struct lanefs_jscan {
	const struct lanefs_layout *layout;
	const u8 *uuid;
	u64 epoch;
	u32 domain;
	u64 seq;	/* of the transaction that is under way; at first, of the journal's first one */
	u64 blocks;	/* of it that were taken */
	u32 count;	/* numbers in the last descriptor or revoke block */
	u32 copies;	/* of them whose copies were taken; count: all, or they are no copies */
	__le64 numbers[LANEFS_JOURNAL_RECORDS];
};

enum lanefs_jscan_found {
	LANEFS_JSCAN_END,	/* not of the journal: it ends before the transaction `seq` */
	LANEFS_JSCAN_DESCRIPTOR,	/* of `count` copies, of the blocks `numbers`, which come next */
	LANEFS_JSCAN_COPY,
	LANEFS_JSCAN_REVOKE,	/* of `count` blocks, `numbers` */
	LANEFS_JSCAN_COMMIT,	/* the transaction is complete; the next is `seq` */
};

/* Takes the journal's next block, which lies at @place; @sealed: lanefs_block_sealed() of it. */
enum lanefs_jscan_found lanefs_jscan_take(struct lanefs_jscan *scan, const void *block,
					  u64 place, bool sealed);

#endif
