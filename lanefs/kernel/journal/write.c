// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes a transaction to the journal: descriptors with copies, revocations, the commit block
 * (format.h, "Journal"). Where each copy goes is known from its number, so that several tasks can
 * write parts of them.
 */
#include <linux/slab.h>

#include "core/block.h"
#include "journal/journal.h"

/* Copies that one task stamps and writes at a time: some tens of microseconds. */
#define LANEFS_JOURNAL_STEP	32

/* The state of writing a transaction. */
struct lanefs_journal_io {
	struct lanefs_coop coop;
	struct lanefs_txn *txn;
	struct page **headers;	/* descriptors, then blocks of revocations */
	atomic_t pending;
	struct completion done;
	int err;
};

/* Writes to consecutive blocks of the journal, with as few bios as may be. */
struct lanefs_journal_writer {
	struct lanefs_journal_io *io;
	u64 next;		/* block of the journal, wraps around */
	struct bio *bio;
};

static void lanefs_journal_ended(struct bio *bio)
{
	struct lanefs_journal_io *io = bio->bi_private;

	if (bio->bi_status)
		WRITE_ONCE(io->err, blk_status_to_errno(bio->bi_status));
	if (atomic_dec_and_test(&io->pending))
		complete(&io->done);
	bio_put(bio);
}

static void lanefs_journal_submit(struct lanefs_journal_writer *writer)
{
	if (!writer->bio)
		return;
	atomic_inc(&writer->io->pending);
	submit_bio(writer->bio);
	writer->bio = NULL;
}

static void lanefs_journal_write(struct lanefs_journal_writer *writer, struct page *page)
{
	struct lanefs_journal *journal = writer->io->txn->t_journal;

	if (writer->bio && !bio_add_page(writer->bio, page, LANEFS_BLOCK_SIZE, 0))
		lanefs_journal_submit(writer);
	if (!writer->bio) {
		writer->bio = bio_alloc(journal->j_sbi->s_vfs->s_bdev, BIO_MAX_VECS,
					REQ_OP_WRITE | REQ_META | REQ_SYNC, GFP_NOFS);
		writer->bio->bi_iter.bi_sector = (journal->j_layout->journal + writer->next) <<
						 LANEFS_SECTOR_SHIFT;
		lanefs_bio_no_cgroup(writer->bio);
		writer->bio->bi_private = writer->io;
		writer->bio->bi_end_io = lanefs_journal_ended;
		__bio_add_page(writer->bio, page, LANEFS_BLOCK_SIZE, 0);
	}
	if (++writer->next == journal->j_layout->journal_blocks) {
		writer->next = 0;
		lanefs_journal_submit(writer);
	}
}

/* A writer from the transaction's block `at` in the journal on. */
static struct lanefs_journal_writer lanefs_journal_from(struct lanefs_journal_io *io, u64 at)
{
	struct lanefs_txn *txn = io->txn;

	return (struct lanefs_journal_writer) {
		.io = io,
		.next = (txn->t_jstart + at) % txn->t_journal->j_layout->journal_blocks,
	};
}

static void lanefs_journal_stamp(struct lanefs_txn *txn, struct page *page)
{
	struct lanefs_header *header = page_address(page);

	header->lh_seq = cpu_to_le64(txn->t_seq);
	header->lh_epoch = cpu_to_le64(txn->t_journal->j_sbi->s_epoch);
	lanefs_block_seal(header);
}

/* A descriptor, revoke or commit block for where the writer stands. */
static struct page *lanefs_journal_block(struct lanefs_journal_writer *writer, u32 magic)
{
	struct lanefs_journal *journal = writer->io->txn->t_journal;
	struct page *page = alloc_page(GFP_NOFS | __GFP_NOFAIL | __GFP_ZERO);

	lanefs_init_header(journal->j_sbi, page_address(page), magic,
			   journal->j_layout->journal + writer->next, journal->j_id);
	return page;
}

/* Makes the descriptor of the copies from `first` on. */
static void lanefs_journal_descriptor(struct lanefs_journal_writer *writer, unsigned int first)
{
	struct lanefs_txn *txn = writer->io->txn;
	unsigned int count = min_t(unsigned int, txn->t_nbufs - first, LANEFS_JOURNAL_RECORDS), i;
	struct page *page = lanefs_journal_block(writer, LANEFS_MAGIC_JDESC);
	struct lanefs_header *header = page_address(page);
	__le64 *number = (__le64 *)(header + 1);

	writer->io->headers[first / LANEFS_JOURNAL_RECORDS] = page;
	header->lh_count = cpu_to_le16(count);
	for (i = 0; i < count; i++)
		number[i] = cpu_to_le64(txn->t_vec[first + i].buf->b_block);
	lanefs_journal_stamp(txn, page);
	lanefs_journal_write(writer, page);
}

/* Each run of copies has its descriptor before it. */
static void lanefs_journal_write_step(struct lanefs_coop *coop, unsigned int step)
{
	struct lanefs_journal_io *io = container_of(coop, struct lanefs_journal_io, coop);
	unsigned int i = step * LANEFS_JOURNAL_STEP, end;
	struct lanefs_journal_writer writer;
	struct lanefs_txn *txn = io->txn;

	end = min(i + LANEFS_JOURNAL_STEP, txn->t_nbufs);
	writer = lanefs_journal_from(io, i + DIV_ROUND_UP(i, LANEFS_JOURNAL_RECORDS));
	for (; i < end; i++) {
		if (i % LANEFS_JOURNAL_RECORDS == 0)
			lanefs_journal_descriptor(&writer, i);
		lanefs_journal_stamp(txn, txn->t_vec[i].page);
		lanefs_journal_write(&writer, txn->t_vec[i].page);
	}
	lanefs_journal_submit(&writer);
}

static void lanefs_journal_revokes(struct lanefs_journal_io *io, unsigned int descriptors)
{
	struct lanefs_txn *txn = io->txn;
	struct lanefs_journal_writer writer = lanefs_journal_from(io, txn->t_nbufs + descriptors);
	struct page **pages = io->headers + descriptors, *page = NULL;
	struct lanefs_header *header = NULL;
	struct lanefs_freed *freed;
	unsigned int count = 0;

	list_for_each_entry(freed, &txn->t_freed, node) {
		if (!freed->metadata)
			continue;
		if (!page) {
			page = lanefs_journal_block(&writer, LANEFS_MAGIC_JREVOKE);
			*pages++ = page;
			header = page_address(page);
			count = 0;
		}
		((__le64 *)(header + 1))[count++] = cpu_to_le64(freed->start);
		header->lh_count = cpu_to_le16(count);
		if (count == LANEFS_JOURNAL_RECORDS) {
			lanefs_journal_stamp(txn, page);
			lanefs_journal_write(&writer, page);
			page = NULL;
		}
	}
	if (page) {
		lanefs_journal_stamp(txn, page);
		lanefs_journal_write(&writer, page);
	}
	lanefs_journal_submit(&writer);
}

static int lanefs_journal_commit_block(struct lanefs_journal_io *io)
{
	struct lanefs_journal_writer writer = lanefs_journal_from(io, io->txn->t_jblocks - 1);
	struct page *page = lanefs_journal_block(&writer, LANEFS_MAGIC_JCOMMIT);
	struct lanefs_commit_block *commit = page_address(page);
	struct lanefs_txn *txn = io->txn;
	struct lanefs_journal *journal = txn->t_journal;
	int err;
	u32 i;

	commit->jc_blocks = cpu_to_le64(txn->t_jblocks);
	commit->jc_time = cpu_to_le64(ktime_get_real_ns());
	for (i = 0; i < journal->j_sbi->s_domains; i++)
		commit->jc_needs[i] = cpu_to_le64(txn->t_needs[i]);
	lanefs_journal_stamp(txn, page);
	err = lanefs_bio_sync(journal->j_sbi, journal->j_layout->journal + writer.next, page,
			      REQ_OP_WRITE | REQ_SYNC | REQ_FUA);
	put_page(page);
	return err;
}

/* Those who wait on `queue` help. */
int lanefs_journal_transaction(struct lanefs_txn *txn, wait_queue_head_t *queue)
{
	unsigned int descriptors = DIV_ROUND_UP(txn->t_nbufs, LANEFS_JOURNAL_RECORDS), headers, i;
	struct lanefs_journal_io io = { .txn = txn, .pending = ATOMIC_INIT(1) };
	int err;

	init_completion(&io.done);
	headers = descriptors + DIV_ROUND_UP(txn->t_revokes, LANEFS_JOURNAL_RECORDS);
	io.headers = kcalloc(headers, sizeof(*io.headers), GFP_NOFS | __GFP_NOFAIL);
	io.coop.work = lanefs_journal_write_step;
	io.coop.steps = DIV_ROUND_UP(txn->t_nbufs, LANEFS_JOURNAL_STEP);
	lanefs_journal_revokes(&io, descriptors);
	lanefs_coop_run(txn->t_journal, &io.coop, &txn->t_journal->j_write_coop, queue);
	if (!atomic_dec_and_test(&io.pending))
		wait_for_completion(&io.done);
	/* It makes the journal's blocks durable, and data that was written before. */
	err = lanefs_flush_journal(txn);
	err = READ_ONCE(io.err) ?: err;
	if (!err)
		err = lanefs_journal_commit_block(&io);
	for (i = 0; i < headers; i++)
		put_page(io.headers[i]);
	kfree(io.headers);
	return err;
}
