// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checkpoint: writes the stable versions of a domain's blocks in place, so that the journal before
 * them can be used again. One thread for each domain, helped by those who wait for room in the journal;
 * the cleaning at unmount calls it as well.
 */
#include <linux/blkdev.h>
#include <linux/freezer.h>
#include <linux/kthread.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "core/block.h"
#include "journal/journal.h"
#include "journal/trace.h"

#define LANEFS_BATCH	256
/* Blocks that one task writes at a time. */
#define LANEFS_HOME_STEP	32

struct lanefs_home_write {
	struct lanefs_buf *buf;
	struct page *page;
};

struct lanefs_home_io {
	struct lanefs_coop coop;
	struct lanefs_sb *sbi;
	const struct lanefs_home_write *batch;
	unsigned int count;
	atomic_t pending;
	struct completion done;
	int err;
};

static void lanefs_home_ended(struct bio *bio)
{
	struct lanefs_home_io *io = bio->bi_private;

	if (bio->bi_status)
		WRITE_ONCE(io->err, blk_status_to_errno(bio->bi_status));
	if (atomic_dec_and_test(&io->pending))
		complete(&io->done);
	bio_put(bio);
}

static int lanefs_home_order(const void *left, const void *right)
{
	u64 a = ((const struct lanefs_home_write *)left)->buf->b_block;
	u64 b = ((const struct lanefs_home_write *)right)->buf->b_block;

	return a < b ? -1 : a > b;
}

/* The oldest blocks of j_home, marked as being written; their order stays. */
static unsigned int lanefs_home_collect(struct lanefs_journal *journal,
					struct lanefs_home_write *batch)
{
	struct lanefs_buf *buf;
	unsigned int count = 0;

	spin_lock(&journal->j_home_lock);
	list_for_each_entry(buf, &journal->j_home, b_home_node) {
		atomic_inc(&buf->b_ref);
		get_page(buf->b_home);
		batch[count].buf = buf;
		batch[count].page = buf->b_home;
		set_bit(LANEFS_BUF_WRITING, &buf->b_flags);
		if (++count == LANEFS_BATCH)
			break;
	}
	spin_unlock(&journal->j_home_lock);
	return count;
}

static void lanefs_home_written(struct lanefs_journal *journal, struct lanefs_home_write *write,
				bool good)
{
	struct lanefs_buf *buf = write->buf;
	bool clean = false;

	spin_lock(&journal->j_home_lock);
	if (good && !list_empty(&buf->b_home_node) && buf->b_home == write->page) {
		list_del_init(&buf->b_home_node);
		buf->b_home = NULL;
		clean = true;
	}
	spin_unlock(&journal->j_home_lock);
	clear_and_wake_up_bit(LANEFS_BUF_WRITING, &buf->b_flags);
	put_page(write->page);
	if (clean) {
		put_page(write->page);
		lanefs_buf_put(buf);
	}
	lanefs_buf_put(buf);
}

static void lanefs_home_step(struct lanefs_coop *coop, unsigned int step)
{
	struct lanefs_home_io *io = container_of(coop, struct lanefs_home_io, coop);
	unsigned int i = step * LANEFS_HOME_STEP, end = min(i + LANEFS_HOME_STEP, io->count);
	struct blk_plug plug;
	struct bio *bio;

	blk_start_plug(&plug);
	for (; i < end; i++) {
		bio = bio_alloc(io->sbi->s_vfs->s_bdev, 1, REQ_OP_WRITE | REQ_META, GFP_NOFS);
		bio->bi_iter.bi_sector = io->batch[i].buf->b_block <<
					 LANEFS_SECTOR_SHIFT;
		lanefs_bio_no_cgroup(bio);
		bio->bi_private = io;
		bio->bi_end_io = lanefs_home_ended;
		__bio_add_page(bio, io->batch[i].page, LANEFS_BLOCK_SIZE, 0);
		atomic_inc(&io->pending);
		submit_bio(bio);
	}
	blk_finish_plug(&plug);
}

static int lanefs_home_write_batch(struct lanefs_journal *journal, struct lanefs_home_write *batch,
				   unsigned int count)
{
	struct lanefs_home_io io = {
		.coop = { .work = lanefs_home_step, .steps = DIV_ROUND_UP(count, LANEFS_HOME_STEP) },
		.sbi = journal->j_sbi,
		.batch = batch,
		.count = count,
		.pending = ATOMIC_INIT(1),
	};
	unsigned int i;

	init_completion(&io.done);
	sort(batch, count, sizeof(*batch), lanefs_home_order, NULL);
	lanefs_coop_run(journal, &io.coop, &journal->j_home_coop, &journal->j_wait_join);
	if (!atomic_dec_and_test(&io.pending))
		wait_for_completion(&io.done);
	for (i = 0; i < count; i++)
		lanefs_home_written(journal, &batch[i], !io.err);
	return io.err;
}

/**
 * lanefs_write_tail() - write where the journal begins, j_tail and j_tail_seq, in the current epoch
 * @journal: the domain's
 *
 * The device's cache is flushed before, and the write is durable.
 *
 * Context: With j_checkpoint_mutex, or before the journal runs; sleeps for the write.
 * Return: 0 or the error of the write.
 */
int lanefs_write_tail(struct lanefs_journal *journal)
{
	struct page *page = alloc_page(GFP_NOFS | __GFP_NOFAIL | __GFP_ZERO);
	struct lanefs_domain_block *block = page_address(page);
	u64 number = journal->j_layout->base + 1;
	int err;

	lanefs_init_header(journal->j_sbi, block, LANEFS_MAGIC_DOMAIN, number, journal->j_id);
	block->db_header.lh_epoch = cpu_to_le64(journal->j_sbi->s_epoch);
	block->db_domain = cpu_to_le32(journal->j_id);
	block->db_base = cpu_to_le64(journal->j_layout->base);
	block->db_tail_seq = cpu_to_le64(journal->j_tail_seq);
	block->db_tail = cpu_to_le64(journal->j_tail);
	lanefs_block_seal(block);
	err = lanefs_bio_sync(journal->j_sbi, number, page,
			      REQ_OP_WRITE | REQ_SYNC | REQ_PREFLUSH | REQ_FUA);
	put_page(page);
	return err;
}

/*
 * Gives the journal before the oldest block that is not in place back. The flush before the write of
 * the tail makes the blocks in place durable first.
 */
static int lanefs_tail_advance(struct lanefs_journal *journal)
{
	struct lanefs_txn *txn, *next;
	LIST_HEAD(done);
	u64 seq, freed = 0;
	int err;

	mutex_lock(&journal->j_stable_mutex);
	spin_lock(&journal->j_home_lock);
	seq = journal->j_stable + 1;
	if (!list_empty(&journal->j_home))
		seq = list_first_entry(&journal->j_home, struct lanefs_buf, b_home_node)->b_home_seq;
	spin_unlock(&journal->j_home_lock);
	mutex_unlock(&journal->j_stable_mutex);
	if (seq == journal->j_tail_seq)
		return 0;

	spin_lock(&journal->j_lock);
	list_for_each_entry_safe(txn, next, &journal->j_txns, t_node) {
		if (txn->t_seq >= seq)
			break;
		list_move_tail(&txn->t_node, &done);
		freed += txn->t_jblocks;
	}
	journal->j_tail_seq = seq;
	journal->j_tail = (journal->j_tail + freed) % journal->j_layout->journal_blocks;
	spin_unlock(&journal->j_lock);

	err = lanefs_write_tail(journal);
	list_for_each_entry_safe(txn, next, &done, t_node)
		lanefs_txn_free(txn);
	if (err)
		return err;
	spin_lock(&journal->j_lock);
	journal->j_free += freed;
	spin_unlock(&journal->j_lock);
	wake_up_all(&journal->j_wait_join);
	return 0;
}

/**
 * lanefs_checkpoint() - write all that is stable in place, and give its journal space back
 * @journal: the domain's
 *
 * Context: Outside of handles; takes j_checkpoint_mutex, then j_stable_mutex.
 * Return: 0, or an error, after which the file system is aborted.
 */
int lanefs_checkpoint(struct lanefs_journal *journal)
{
	struct lanefs_home_write *batch;
	unsigned int count, total, written = 0;
	u64 target;
	int err = 0;

	batch = kvmalloc_array(LANEFS_BATCH, sizeof(*batch), GFP_NOFS | __GFP_NOFAIL);
	mutex_lock(&journal->j_checkpoint_mutex);
	target = READ_ONCE(journal->j_stable);
	for (;;) {
		if (READ_ONCE(journal->j_sbi->s_aborted)) {
			err = -EIO;
			break;
		}
		spin_lock(&journal->j_home_lock);
		total = !list_empty(&journal->j_home) &&
			list_first_entry(&journal->j_home, struct lanefs_buf,
					 b_home_node)->b_home_seq <= target;
		spin_unlock(&journal->j_home_lock);
		if (!total)
			break;
		count = lanefs_home_collect(journal, batch);
		err = lanefs_home_write_batch(journal, batch, count);
		if (err)
			break;
		written += count;
	}
	if (!err)
		err = lanefs_tail_advance(journal);
	trace_lanefs_checkpoint(journal, written, err);
	mutex_unlock(&journal->j_checkpoint_mutex);
	kvfree(batch);
	if (err && !READ_ONCE(journal->j_sbi->s_aborted))
		lanefs_io_error(journal->j_sbi, "domain %u: checkpoint failed (%d)", journal->j_id,
				err);
	return err;
}

int lanefs_checkpoint_thread(void *data)
{
	struct lanefs_journal *journal = data;
	unsigned int nofs = memalloc_nofs_save();
	u64 seq;

	set_freezable();
	while (!kthread_should_stop()) {
		wait_event_freezable(journal->j_wait_checkpoint_work,
				     kthread_should_stop() ||
				     READ_ONCE(journal->j_checkpoint_wanted));
		if (!READ_ONCE(journal->j_checkpoint_wanted))
			continue;
		WRITE_ONCE(journal->j_checkpoint_wanted, false);
		spin_lock(&journal->j_lock);
		seq = journal->j_committed;
		spin_unlock(&journal->j_lock);
		if (!lanefs_stabilise(journal, seq))
			lanefs_checkpoint(journal);
	}
	memalloc_nofs_restore(nofs);
	return 0;
}
