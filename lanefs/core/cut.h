/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_CORE_CUT_H
#define LANEFS_CORE_CUT_H

#include "shim.h"
#include "../format.h"

/* A complete transaction in a domain's journal: what it needs of the other domains. */
struct lanefs_cut_node {
	u64 seq;
	__le64 *needs;	/* [domains], as jc_needs; afterwards, of all up to this one; may be shared */
};

/* The complete transactions of a domain's journal, by ascending sequence without gaps. */
struct lanefs_cut_journal {
	struct lanefs_cut_node *nodes;
	u64 count;
	u64 base;	/* the sequence before the first one: all up to it is in place */
	u64 end;	/* result: the last sequence to replay; base: none */
};

/*
 * Whether a transaction needs no more than the one @before it: the two may have the same array, as
 * what one needs all later ones need.
 */
bool lanefs_cut_needs_no_more(const __le64 *needs, const __le64 *before, u32 domains);

/*
 * The largest cut of @domains journals: no transaction up to a journal's end needs one beyond the end of
 * another. Ends only go down, each by at most its count, and each time all journals are looked at once:
 * the time is O(transactions x @domains), also for journals made to take long.
 */
void lanefs_cut(struct lanefs_cut_journal *journals, u32 domains);

#endif
