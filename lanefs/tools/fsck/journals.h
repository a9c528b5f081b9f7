/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_FSCK_JOURNALS_H
#define LANEFS_FSCK_JOURNALS_H

#include "check.h"

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

struct journal {
	u64 tail, first_seq;
	bool empty;	/* none is to be read */
	bool outdated;	/* of an epoch before: the domain's superblock tells of none */
	struct transaction *transactions;
	size_t count;
	size_t kept;	/* after the cut */
	u64 lost;	/* the last transaction that was committed and is not there; 0: none */
	u64 wrong;	/* the block that ends the journal there */
	bool damaged;	/* it ends before a transaction that was committed */
};

/* journals.c: the journals of all domains, [domains]; damage is reported. */
struct journal *read_journals(struct check *c, bool clean);
void free_journals(struct check *c, struct journal *journals);

#endif
