/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declarations that the parts of recovery share: recovery.c (the sequence of steps), reader.c (the
 * journal's blocks, one after the other), replay.c (the copies, into place).
 *
 * Many domains are read at once, LANEFS_CHUNK_BLOCKS at a time and LANEFS_CHUNKS times that under
 * way. `ablate=recovery` is the same steps for one domain after the other and one block at a time.
 * Both find the same cut, and leave the same device.
 */
#ifndef LANEFS_RECOVERY_H
#define LANEFS_RECOVERY_H

#include <linux/completion.h>

#include "core/cut.h"
#include "core/records.h"
#include "journal/blockio.h"
#include "journal/journal.h"

#define LANEFS_CHUNK_BLOCKS	256
#define LANEFS_CHUNKS		4	/* of a domain */

struct lanefs_recovery_part {
	struct lanefs_recovery *recovery;
	struct lanefs_journal *journal;
	struct work_struct work;
	int err;
	u64 tail_seq;
	u64 tail;
	struct lanefs_cut_node *nodes;
	u64 count, room;
	struct lanefs_journal_record *records;
	u64 record_count, record_room;
	u64 end;		/* last sequence to be replayed */
	u64 replayed;		/* blocks */
};

struct lanefs_recovery {
	struct lanefs_sb *sbi;
	struct lanefs_recovery_part *parts;	/* [s_domains] */
	struct workqueue_struct *queue;
	u32 chunk_blocks, chunks;
	atomic_t left;			/* domains in this phase */
	struct completion done;
	atomic64_t blocks;		/* read in this phase, or put into place */
	bool failed;
};

/* reader.c */
struct lanefs_journal_reader;
struct lanefs_journal_reader *lanefs_journal_reader_new(struct lanefs_recovery_part *part);
void lanefs_journal_reader_free(struct lanefs_journal_reader *reader);
void lanefs_journal_reader_seek(struct lanefs_journal_reader *reader, u64 at);
int lanefs_journal_reader_next(struct lanefs_journal_reader *reader, const void **block, u64 *place,
			       bool *sealed);

/* replay.c */
int lanefs_recovery_replay(struct lanefs_recovery_part *part);

#endif
