/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of recovery share: recovery.c (the order of things), logread.c (the log's blocks,
 * one after the other), replay.c (the copies, into place), blockio.c (I/O of many blocks).
 *
 * `recovery=serial` is one domain after the other and one block at a time. `parallel` is the same
 * steps with many domains at once, LANEFS_CHUNK_BLOCKS at a time and LANEFS_CHUNKS times that under
 * way. Both find the same cut, and leave the same device.
 */
#ifndef LANEFS_RECOVERY_H
#define LANEFS_RECOVERY_H

#include <linux/completion.h>

#include "core/cut.h"
#include "core/records.h"
#include "lanefs.h"

#define LANEFS_CHUNK_BLOCKS	256
#define LANEFS_CHUNKS		4	/* of a domain */

/* I/O of many blocks, in as few bios as their order allows. */
struct lanefs_io {
	struct lanefs_sb *sbi;
	blk_opf_t opf;
	struct bio *bio;
	u64 next;			/* block that would go into the same bio */
	u32 run;			/* room of a bio, in blocks */
	/* What is done when all have ended; it ends with complete(&done). NULL: just that. */
	struct work_struct *then;
	atomic_t pending;
	struct completion done;
	bool under_way;
	int err;
};

struct lanefs_log {
	struct lanefs_recovery *recovery;
	struct lanefs_domain *domain;
	struct work_struct work;
	int err;
	u64 tail_seq;
	u64 tail;
	struct lanefs_cut_node *nodes;
	u64 count, room;
	struct lanefs_log_record *records;
	u64 record_count, record_room;
	u64 end;		/* last sequence to be replayed */
	u64 replayed;		/* blocks */
};

struct lanefs_recovery {
	struct lanefs_sb *sbi;
	struct lanefs_log *logs;	/* [s_domains] */
	struct workqueue_struct *queue;
	u32 chunk_blocks, chunks;
	atomic_t left;			/* domains in this phase */
	struct completion done;
	atomic64_t blocks;		/* read in this phase, or put into place */
	bool failed;
};

/* blockio.c */
bool lanefs_pages_alloc(struct page **pages, u32 count);
void lanefs_pages_free(struct page **pages, u32 count);
void lanefs_io_begin(struct lanefs_io *io, struct lanefs_sb *sbi, blk_opf_t opf, u32 run);
void lanefs_io_add(struct lanefs_io *io, u64 block, struct page *page);
void lanefs_io_submit(struct lanefs_io *io);
int lanefs_io_wait(struct lanefs_io *io);

/* logread.c */
struct lanefs_log_reader;
struct lanefs_log_reader *lanefs_reader_new(struct lanefs_log *log);
void lanefs_reader_free(struct lanefs_log_reader *reader);
void lanefs_reader_seek(struct lanefs_log_reader *reader, u64 at);
int lanefs_reader_next(struct lanefs_log_reader *reader, const void **block, u64 *place,
		       bool *sealed);

/* replay.c */
int lanefs_log_replay(struct lanefs_log *log);

#endif
