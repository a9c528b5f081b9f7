/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_CORE_JEND_H
#define LANEFS_CORE_JEND_H

#include "shim.h"
#include "../format.h"

/* Blocks behind the end of a journal that are always searched; a transaction has at least two. */
#define LANEFS_JEND_LOOK	64

/*
 * Whether a domain's journal, which is complete up to a sequence, was longer. A commit block is written
 * behind a flush of all before it, and one after the other; so one of this sequence or a later one
 * says that the medium has lost or damaged blocks that were durable. Without one the journal's last
 * transaction was not committed, or its commit block itself is damaged, which nothing tells from
 * one that was torn.
 *
 * All blocks of a journal have a good header with their epoch and sequence, copies too. What lies
 * behind the end of one that a crash has cut is older, of another file system, or was never
 * written: none of the first blocks is of the journal, and that is all that has to be read. The first
 * one that is has the whole journal read. What this overlooks is a medium that has lost all of the
 * LANEFS_JEND_LOOK blocks.
 */
struct lanefs_jend {
	const u8 *uuid;
	u64 epoch;
	u32 domain;
	u64 seq;	/* that the journal lacks */
	u64 seen;	/* blocks */
	bool traces;	/* one of them is of this sequence or a later one */
	u64 last;	/* result: the last sequence with a commit block, from seq on; 0: none */
};

/*
 * Takes the next block of the journal, from where the transaction should begin on; it lies at
 * @number. False: it was the last that tells something. The caller ends after the whole journal.
 */
bool lanefs_jend_take(struct lanefs_jend *end, const void *block, u64 number);

#endif
