// SPDX-License-Identifier: GPL-2.0-only
/*
 * Brings the newest copy of each block in a domain's journal into place, once, up to the cut. In
 * parallel recovery by batches of ascending blocks: each is read in the order of the journal and written
 * in that of the device, and some are read while others are written.
 */
#include <linux/blkdev.h>
#include <linux/slab.h>

#include "journal/recovery.h"

/* Neighbours in place are often neighbours in the journal, but not for long. */
#define LANEFS_REPLAY_RUN	16

struct lanefs_home_copy {
	u64 block;
	u32 at;			/* in the journal, from its tail on */
	struct page *page;
};

struct lanefs_batch {
	struct lanefs_io io;
	u32 count;
	struct lanefs_home_copy copy[LANEFS_CHUNK_BLOCKS];
	struct page *page[LANEFS_CHUNK_BLOCKS];
};

static int lanefs_copy_by_place(const void *left, const void *right)
{
	u32 a = ((const struct lanefs_home_copy *)left)->at;
	u32 b = ((const struct lanefs_home_copy *)right)->at;

	return a < b ? -1 : a > b;
}

static int lanefs_copy_by_block(const void *left, const void *right)
{
	u64 a = ((const struct lanefs_home_copy *)left)->block;
	u64 b = ((const struct lanefs_home_copy *)right)->block;

	return a < b ? -1 : a > b;
}

static void lanefs_replay_read(struct lanefs_recovery_part *part, struct lanefs_batch *batch,
			       const struct lanefs_journal_record *records, u32 count)
{
	const struct lanefs_layout *layout = part->journal->j_layout;
	struct blk_plug plug;
	u64 at;
	u32 i;

	for (i = 0; i < count; i++)
		batch->copy[i] = (struct lanefs_home_copy){ records[i].block, records[i].at,
							    batch->page[i] };
	batch->count = count;
	lanefs_sort(batch->copy, count, sizeof(batch->copy[0]), lanefs_copy_by_place);
	lanefs_io_begin(&batch->io, part->journal->j_sbi, REQ_OP_READ | REQ_META, LANEFS_REPLAY_RUN);
	blk_start_plug(&plug);
	for (i = 0; i < count; i++) {
		at = part->tail + batch->copy[i].at;
		if (at >= layout->journal_blocks)
			at -= layout->journal_blocks;
		lanefs_io_add(&batch->io, layout->journal + at, batch->copy[i].page);
	}
	lanefs_io_submit(&batch->io);
	blk_finish_plug(&plug);
}

/* Waits for the batch's blocks, and begins to write them in place. */
static int lanefs_replay_write(struct lanefs_recovery_part *part, struct lanefs_batch *batch)
{
	struct blk_plug plug;
	int err = lanefs_io_wait(&batch->io);
	u32 i;

	if (err)
		return err;
	lanefs_sort(batch->copy, batch->count, sizeof(batch->copy[0]), lanefs_copy_by_block);
	lanefs_io_begin(&batch->io, part->journal->j_sbi, REQ_OP_WRITE | REQ_META, LANEFS_REPLAY_RUN);
	blk_start_plug(&plug);
	for (i = 0; i < batch->count; i++)
		lanefs_io_add(&batch->io, batch->copy[i].block, batch->copy[i].page);
	lanefs_io_submit(&batch->io);
	blk_finish_plug(&plug);
	atomic64_add(batch->count, &part->recovery->blocks);
	return 0;
}

/* A batch is written when half of the others have been begun to be read behind it. */
static int lanefs_replay_batches(struct lanefs_recovery_part *part, struct lanefs_batch **batches,
				 u64 count)
{
	u32 most = part->recovery->chunk_blocks, room = part->recovery->chunks, lag = room / 2;
	u64 total = DIV_ROUND_UP_ULL(count, most), i;
	int err = 0, ended;

	for (i = 0; i < total + lag && !err && !READ_ONCE(part->recovery->failed); i++) {
		if (i < total) {
			err = lanefs_io_wait(&batches[i % room]->io);
			if (err)
				break;
			lanefs_replay_read(part, batches[i % room], part->records + i * most,
					   min_t(u64, most, count - i * most));
		}
		if (i >= lag)
			err = lanefs_replay_write(part, batches[(i - lag) % room]);
	}
	for (i = 0; i < room; i++) {
		ended = lanefs_io_wait(&batches[i]->io);
		err = err ?: ended;
	}
	return err;
}

int lanefs_recovery_replay(struct lanefs_recovery_part *part)
{
	u32 room = part->recovery->chunks, i;
	struct lanefs_batch *batches[LANEFS_CHUNKS] = {};
	u64 count;
	int err = 0;

	count = lanefs_records_newest(part->records, part->record_count,
				      part->end - (part->tail_seq - 1));
	if (part->recovery->chunks == 1)
		lanefs_records_by_place(part->records, count);
	for (i = 0; i < room && !err; i++) {
		batches[i] = kvzalloc(sizeof(*batches[i]), GFP_KERNEL);
		if (!batches[i] ||
		    !lanefs_pages_alloc(batches[i]->page, part->recovery->chunk_blocks))
			err = -ENOMEM;
	}
	if (!err)
		err = lanefs_replay_batches(part, batches, count);
	for (i = 0; i < room && batches[i]; i++) {
		lanefs_pages_free(batches[i]->page, LANEFS_CHUNK_BLOCKS);
		kvfree(batches[i]);
	}
	part->replayed = count;
	return err;
}
