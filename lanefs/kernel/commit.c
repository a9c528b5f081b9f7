// SPDX-License-Identifier: GPL-2.0-only
/*
 * The commit of a domain's running transaction: waits until its handles have ended, freezes the
 * blocks that it changed, lets the next transaction begin and writes the blocks to the log.
 */
#include <linux/freezer.h>
#include <linux/kthread.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "core/block.h"
#include "lanefs.h"

#define LANEFS_COMMIT_INTERVAL	(5 * HZ)

/* Writes to consecutive blocks of the journal, with as few bios as may be. */
struct lanefs_log_writer {
	struct lanefs_domain *domain;
	u64 next;		/* block of the journal, wraps around */
	struct bio *bio;
	atomic_t pending;
	struct completion done;
	int err;
};

static void lanefs_log_ended(struct bio *bio)
{
	struct lanefs_log_writer *writer = bio->bi_private;

	if (bio->bi_status)
		WRITE_ONCE(writer->err, blk_status_to_errno(bio->bi_status));
	if (atomic_dec_and_test(&writer->pending))
		complete(&writer->done);
	bio_put(bio);
}

static void lanefs_log_submit(struct lanefs_log_writer *writer)
{
	if (!writer->bio)
		return;
	atomic_inc(&writer->pending);
	submit_bio(writer->bio);
	writer->bio = NULL;
}

static void lanefs_log_write(struct lanefs_log_writer *writer, struct page *page)
{
	struct lanefs_domain *domain = writer->domain;

	if (writer->bio && !bio_add_page(writer->bio, page, LANEFS_BLOCK_SIZE, 0))
		lanefs_log_submit(writer);
	if (!writer->bio) {
		writer->bio = bio_alloc(domain->d_sbi->s_vfs->s_bdev, BIO_MAX_VECS,
					REQ_OP_WRITE | REQ_META | REQ_SYNC, GFP_NOFS);
		writer->bio->bi_iter.bi_sector = (domain->d_layout.journal + writer->next) <<
						 (LANEFS_BLOCK_SHIFT - SECTOR_SHIFT);
		writer->bio->bi_private = writer;
		writer->bio->bi_end_io = lanefs_log_ended;
		__bio_add_page(writer->bio, page, LANEFS_BLOCK_SIZE, 0);
	}
	if (++writer->next == domain->d_layout.journal_blocks) {
		writer->next = 0;
		lanefs_log_submit(writer);
	}
}

static int lanefs_log_finish(struct lanefs_log_writer *writer)
{
	lanefs_log_submit(writer);
	if (!atomic_dec_and_test(&writer->pending))
		wait_for_completion(&writer->done);
	return READ_ONCE(writer->err);
}

static void lanefs_stamp(struct lanefs_txn *txn, struct page *page)
{
	struct lanefs_header *header = page_address(page);

	header->lh_seq = cpu_to_le64(txn->t_seq);
	header->lh_epoch = cpu_to_le64(txn->t_domain->d_sbi->s_epoch);
	lanefs_block_seal(header);
}

/* A descriptor, revoke or commit block for where the writer stands; linked into *pages. */
static struct page *lanefs_log_block(struct lanefs_txn *txn, struct lanefs_log_writer *writer,
				     u32 magic, struct list_head *pages)
{
	struct lanefs_domain *domain = txn->t_domain;
	struct page *page = alloc_page(GFP_NOFS | __GFP_NOFAIL | __GFP_ZERO);

	lanefs_init_header(domain->d_sbi, page_address(page), magic,
			   domain->d_layout.journal + writer->next, domain->d_id);
	list_add(&page->lru, pages);
	return page;
}

static void lanefs_log_copies(struct lanefs_txn *txn, struct lanefs_log_writer *writer,
			      struct list_head *pages)
{
	unsigned int at, i, count;
	struct lanefs_header *header;
	struct page *page;
	__le64 *number;

	for (at = 0; at < txn->t_nbufs; at += count) {
		count = min_t(unsigned int, txn->t_nbufs - at, LANEFS_JOURNAL_RECORDS);
		page = lanefs_log_block(txn, writer, LANEFS_MAGIC_JDESC, pages);
		header = page_address(page);
		header->lh_count = cpu_to_le16(count);
		number = (__le64 *)(header + 1);
		for (i = 0; i < count; i++)
			number[i] = cpu_to_le64(txn->t_vec[at + i].buf->b_block);
		lanefs_stamp(txn, page);
		lanefs_log_write(writer, page);
		for (i = 0; i < count; i++) {
			lanefs_stamp(txn, txn->t_vec[at + i].page);
			lanefs_log_write(writer, txn->t_vec[at + i].page);
		}
	}
}

static void lanefs_log_revokes(struct lanefs_txn *txn, struct lanefs_log_writer *writer,
			       struct list_head *pages)
{
	struct lanefs_header *header = NULL;
	struct lanefs_freed *freed;
	struct page *page = NULL;
	unsigned int count = 0;

	list_for_each_entry(freed, &txn->t_freed, node) {
		if (!freed->metadata)
			continue;
		if (!page) {
			page = lanefs_log_block(txn, writer, LANEFS_MAGIC_JREVOKE, pages);
			header = page_address(page);
			count = 0;
		}
		((__le64 *)(header + 1))[count++] = cpu_to_le64(freed->start);
		header->lh_count = cpu_to_le16(count);
		if (count == LANEFS_JOURNAL_RECORDS) {
			lanefs_stamp(txn, page);
			lanefs_log_write(writer, page);
			page = NULL;
		}
	}
	if (page) {
		lanefs_stamp(txn, page);
		lanefs_log_write(writer, page);
	}
}

/* The flush before the commit block makes the log's blocks durable, and data written before. */
static int lanefs_log_commit_block(struct lanefs_txn *txn, struct lanefs_log_writer *writer,
				   struct list_head *pages)
{
	struct page *page = lanefs_log_block(txn, writer, LANEFS_MAGIC_JCOMMIT, pages);
	struct lanefs_commit_block *commit = page_address(page);
	struct lanefs_domain *domain = txn->t_domain;
	u32 i;

	commit->jc_blocks = cpu_to_le64(txn->t_log_blocks);
	commit->jc_time = cpu_to_le64(ktime_get_real_ns());
	for (i = 0; i < domain->d_sbi->s_domains; i++)
		commit->jc_needs[i] = cpu_to_le64(txn->t_needs[i]);
	lanefs_stamp(txn, page);
	return lanefs_bio_sync(domain->d_sbi, domain->d_layout.journal + writer->next, page,
			       REQ_OP_WRITE | REQ_SYNC | REQ_PREFLUSH | REQ_FUA);
}

static int lanefs_log_transaction(struct lanefs_txn *txn)
{
	struct lanefs_log_writer writer = {
		.domain = txn->t_domain,
		.next = txn->t_log_start,
		.pending = ATOMIC_INIT(1),
	};
	struct page *page, *next;
	LIST_HEAD(pages);
	int err;

	init_completion(&writer.done);
	lanefs_log_copies(txn, &writer, &pages);
	lanefs_log_revokes(txn, &writer, &pages);
	err = lanefs_log_finish(&writer);
	if (!err)
		err = lanefs_log_commit_block(txn, &writer, &pages);
	list_for_each_entry_safe(page, next, &pages, lru) {
		list_del(&page->lru);
		put_page(page);
	}
	return err;
}

/* Freezes what the transaction changed. No handle is open, and none can join. */
static void lanefs_txn_freeze(struct lanefs_txn *txn)
{
	struct lanefs_buf *buf, *next;
	unsigned int i = 0;

	txn->t_vec = kvmalloc_array(txn->t_nbufs, sizeof(*txn->t_vec), GFP_NOFS | __GFP_NOFAIL);
	list_for_each_entry_safe(buf, next, &txn->t_bufs, b_txn_node) {
		list_del_init(&buf->b_txn_node);
		get_page(buf->b_page);
		txn->t_vec[i].buf = buf;
		txn->t_vec[i++].page = buf->b_page;
		set_bit(LANEFS_BUF_FROZEN, &buf->b_flags);
		smp_store_release(&buf->b_txn, NULL);
	}
}

static void lanefs_commit(struct lanefs_domain *domain)
{
	struct lanefs_txn *txn;
	bool aborted;
	int err;

	spin_lock(&domain->j_lock);
	txn = domain->j_running;
	lanefs_txn_lock(txn);
	spin_unlock(&domain->j_lock);
	lanefs_txn_drain(txn);

	lanefs_txn_freeze(txn);
	spin_lock(&domain->j_lock);
	txn->t_log_start = domain->j_head;
	txn->t_log_blocks = lanefs_log_need(txn->t_nbufs, txn->t_revokes);
	if (WARN_ON(txn->t_log_blocks > domain->j_free)) {
		spin_unlock(&domain->j_lock);
		lanefs_abort(domain->d_sbi);
		spin_lock(&domain->j_lock);
	} else {
		domain->j_free -= txn->t_log_blocks;
		domain->j_head += txn->t_log_blocks;
		if (domain->j_head >= domain->d_layout.journal_blocks)
			domain->j_head -= domain->d_layout.journal_blocks;
	}
	domain->j_running = NULL;
	domain->j_committing = txn;
	spin_unlock(&domain->j_lock);
	wake_up_all(&domain->j_wait_join);

	aborted = READ_ONCE(domain->d_sbi->s_aborted);
	err = aborted ? -EIO : lanefs_log_transaction(txn);
	if (err && !aborted)
		lanefs_error(domain->d_sbi, "domain %u: transaction %llu cannot be written (%d)",
			     domain->d_id, txn->t_seq, err);
	spin_lock(&domain->j_lock);
	domain->j_committing = NULL;
	list_add_tail(&txn->t_node, &domain->j_log);
	if (!err)
		WRITE_ONCE(domain->j_committed, txn->t_seq);
	spin_unlock(&domain->j_lock);
	wake_up_all(&domain->j_wait_committed);
	wake_up_all(&domain->j_wait_join);
	if (!err)
		lanefs_stable_try(domain);
}

static bool lanefs_commit_due(struct lanefs_domain *domain)
{
	struct lanefs_txn *txn;
	bool due;

	spin_lock(&domain->j_lock);
	txn = domain->j_running;
	due = txn && (txn->t_seq <= domain->j_wanted ||
		      time_after_eq(jiffies, txn->t_started + LANEFS_COMMIT_INTERVAL));
	spin_unlock(&domain->j_lock);
	return due && !READ_ONCE(domain->d_sbi->s_aborted);
}

/*
 * It freezes with the system, as the checkpoint's thread does: what is written after the image of a
 * hibernation was made is newer than the memory that the image brings back. User tasks are frozen
 * before it, so those that wait for a commit get it.
 */
int lanefs_commit_thread(void *data)
{
	struct lanefs_domain *domain = data;
	unsigned int nofs = memalloc_nofs_save();

	set_freezable();
	for (;;) {
		wait_event_freezable_timeout(domain->j_wait_commit_work,
					     kthread_should_stop() || lanefs_commit_due(domain),
					     LANEFS_COMMIT_INTERVAL / 2);
		if (lanefs_commit_due(domain))
			lanefs_commit(domain);
		else if (kthread_should_stop())
			break;
	}
	memalloc_nofs_restore(nofs);
	return 0;
}
