// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recovery after a crash: finds the complete transactions in each domain's log, computes the cut
 * (format.h) and replays each domain up to it. What it does can be done again from the start. A log
 * that has lost what was committed is refused before anything is written.
 */
#include <linux/blkdev.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "core/block.h"
#include "core/cut.h"
#include "core/logend.h"
#include "lanefs.h"

struct lanefs_log {
	struct lanefs_domain *domain;
	struct page *page;
	u64 tail_seq;
	u64 tail;
	struct lanefs_cut_node *nodes;
	u64 count;
	u64 room;
	u64 end;		/* last sequence to be replayed */
	u64 looked;		/* block that was read last */
	struct xarray newest;	/* block: lanefs_log_value() of its last record */
};

/* What is done with each block that a transaction copies or revokes. */
typedef int (*lanefs_record_fn)(struct lanefs_log *log, u64 seq, u64 block, bool copy, u64 where);

static u64 lanefs_log_next(const struct lanefs_log *log, u64 at)
{
	return at + 1 == log->domain->d_layout.journal_blocks ? 0 : at + 1;
}

static int lanefs_log_block_read(struct lanefs_log *log, u64 at)
{
	log->looked = log->domain->d_layout.journal + at;
	return lanefs_bio_sync(log->domain->d_sbi, log->looked, log->page, REQ_OP_READ);
}

/* 0: a journal block of this transaction; -ENOENT: something else, so the log ends before it. */
static int lanefs_log_read(struct lanefs_log *log, u64 at, u64 seq)
{
	struct lanefs_domain *domain = log->domain;
	u64 block = domain->d_layout.journal + at;
	struct lanefs_header *header = page_address(log->page);
	int err = lanefs_log_block_read(log, at);

	if (err)
		return err;
	if (!lanefs_block_good(header, le32_to_cpu(header->lh_magic), block,
			       domain->d_sbi->s_uuid) ||
	    le64_to_cpu(header->lh_epoch) != domain->d_sbi->s_epoch ||
	    le64_to_cpu(header->lh_seq) != seq || le64_to_cpu(header->lh_owner) != domain->d_id)
		return -ENOENT;
	return 0;
}

static int lanefs_log_check_copy(struct lanefs_log *log, u64 at, u64 seq, u64 block)
{
	struct lanefs_domain *domain = log->domain;
	struct lanefs_header *header = page_address(log->page);
	int err = lanefs_log_block_read(log, at);

	if (err)
		return err;
	if (!lanefs_block_good(header, le32_to_cpu(header->lh_magic), block,
			       domain->d_sbi->s_uuid) ||
	    le64_to_cpu(header->lh_epoch) != domain->d_sbi->s_epoch ||
	    le64_to_cpu(header->lh_seq) != seq ||
	    block < domain->d_layout.ibitmap || block >= domain->d_layout.end)
		return -ENOENT;
	return 0;
}

/*
 * Walks over the transaction `seq` at *at and moves *at behind it, with its commit block left in
 * log->page. -ENOENT: it is not complete.
 */
static int lanefs_log_walk(struct lanefs_log *log, u64 seq, u64 *at, bool check,
			   lanefs_record_fn record)
{
	struct lanefs_header *header = page_address(log->page);
	u64 blocks = 0, place = *at, i, count;
	__le64 *numbers;
	u32 magic;
	int err;

	numbers = kmalloc(LANEFS_BODY_SIZE, GFP_KERNEL);
	if (!numbers)
		return -ENOMEM;
	for (;;) {
		err = -ENOENT;
		if (++blocks > log->domain->d_layout.journal_blocks)
			break;
		err = lanefs_log_read(log, place, seq);
		if (err)
			break;
		place = lanefs_log_next(log, place);
		magic = le32_to_cpu(header->lh_magic);
		if (magic == LANEFS_MAGIC_JCOMMIT) {
			struct lanefs_commit_block *commit = (void *)header;

			if (le64_to_cpu(commit->jc_blocks) != blocks)
				err = -ENOENT;
			break;
		}
		err = -ENOENT;
		count = le16_to_cpu(header->lh_count);
		if ((magic != LANEFS_MAGIC_JDESC && magic != LANEFS_MAGIC_JREVOKE) ||
		    count > LANEFS_JOURNAL_RECORDS)
			break;
		memcpy(numbers, header + 1, LANEFS_BODY_SIZE);
		err = 0;
		for (i = 0; i < count && !err; i++) {
			bool copy = magic == LANEFS_MAGIC_JDESC;
			u64 block = le64_to_cpu(numbers[i]);

			if (copy && check)
				err = lanefs_log_check_copy(log, place, seq, block);
			if (!err && record)
				err = record(log, seq, block, copy, place);
			if (copy) {
				place = lanefs_log_next(log, place);
				if (++blocks > log->domain->d_layout.journal_blocks)
					err = -ENOENT;
			}
		}
		if (err)
			break;
	}
	kfree(numbers);
	if (!err)
		*at = place;
	return err;
}

static int lanefs_log_note(struct lanefs_log *log, u64 seq)
{
	struct lanefs_commit_block *commit = page_address(log->page);
	struct lanefs_cut_node *nodes;
	__le64 *needs;

	if (log->count == log->room) {
		log->room = max_t(u64, 64, log->room * 2);
		nodes = kvmalloc_array(log->room, sizeof(*nodes), GFP_KERNEL);
		if (!nodes)
			return -ENOMEM;
		if (log->count)
			memcpy(nodes, log->nodes, log->count * sizeof(*nodes));
		kvfree(log->nodes);
		log->nodes = nodes;
	}
	needs = kmemdup(commit->jc_needs, log->domain->d_sbi->s_domains * sizeof(*needs),
			GFP_KERNEL);
	if (!needs)
		return -ENOMEM;
	log->nodes[log->count].seq = seq;
	log->nodes[log->count++].needs = needs;
	return 0;
}

/* The log ends before `seq`, which should begin at `at`: -EUCLEAN if the log was longer. */
static int lanefs_log_check_end(struct lanefs_log *log, u64 seq, u64 at)
{
	struct lanefs_domain *domain = log->domain;
	struct lanefs_log_end end = {
		.uuid = domain->d_sbi->s_uuid,
		.epoch = domain->d_sbi->s_epoch,
		.domain = domain->d_id,
		.seq = seq,
	};
	u64 wrong = log->looked, left;
	int err;

	for (left = domain->d_layout.journal_blocks; left; left--) {
		err = lanefs_log_block_read(log, at);
		if (err)
			return err;
		if (!lanefs_log_end_take(&end, page_address(log->page), log->looked))
			break;
		at = lanefs_log_next(log, at);
	}
	if (!end.last)
		return 0;
	pr_err("lanefs (%s): domain %u: block %llu is damaged or lost, and with it transactions %llu to %llu, which were committed; fsck.lanefs -n tells more, norecovery reads what is in place\n",
	       domain->d_sbi->s_vfs->s_id, domain->d_id, wrong, seq, end.last);
	return -EUCLEAN;
}

/* Finds the complete transactions of the log. */
static int lanefs_log_scan(struct lanefs_log *log)
{
	struct lanefs_domain *domain = log->domain;
	struct lanefs_domain_block *block = page_address(log->page);
	u64 number = domain->d_layout.base + 1, epoch, seq, at;
	int err;

	log->looked = number;
	err = lanefs_bio_sync(domain->d_sbi, number, log->page, REQ_OP_READ);
	if (err)
		return err;
	epoch = le64_to_cpu(block->db_header.lh_epoch);
	if (!lanefs_block_good(block, LANEFS_MAGIC_DOMAIN, number, domain->d_sbi->s_uuid) ||
	    le32_to_cpu(block->db_domain) != domain->d_id ||
	    le64_to_cpu(block->db_base) != domain->d_layout.base ||
	    le64_to_cpu(block->db_tail) >= domain->d_layout.journal_blocks ||
	    epoch > domain->d_sbi->s_epoch || !block->db_tail_seq) {
		lanefs_error(domain->d_sbi, "the superblock of domain %u is damaged", domain->d_id);
		return -EUCLEAN;
	}
	log->tail_seq = le64_to_cpu(block->db_tail_seq);
	log->tail = le64_to_cpu(block->db_tail);
	if (epoch < domain->d_sbi->s_epoch) {
		log->tail_seq = 1;
		return lanefs_log_check_end(log, 1, 0);
	}
	at = log->tail;
	for (seq = log->tail_seq;; seq++) {
		err = lanefs_log_walk(log, seq, &at, true, NULL);
		if (err == -ENOENT)
			return lanefs_log_check_end(log, seq, at);
		if (!err)
			err = lanefs_log_note(log, seq);
		if (err)
			return err;
	}
}

/* Of a copy or a revoke; by the place in the log, as a value has fewer bits than a sequence. */
static void *lanefs_log_value(const struct lanefs_log *log, u64 seq, bool copy)
{
	return xa_mk_value((seq - log->tail_seq) << 1 | copy);
}

static int lanefs_record_newest(struct lanefs_log *log, u64 seq, u64 block, bool copy, u64 where)
{
	return xa_err(xa_store(&log->newest, block, lanefs_log_value(log, seq, copy), GFP_KERNEL));
}

static int lanefs_record_replay(struct lanefs_log *log, u64 seq, u64 block, bool copy, u64 where)
{
	struct lanefs_domain *domain = log->domain;
	struct page *page;
	int err;

	if (!copy || xa_load(&log->newest, block) != lanefs_log_value(log, seq, true))
		return 0;
	page = alloc_page(GFP_KERNEL);
	if (!page)
		return -ENOMEM;
	err = lanefs_bio_sync(domain->d_sbi, domain->d_layout.journal + where, page, REQ_OP_READ);
	if (!err)
		err = lanefs_bio_sync(domain->d_sbi, block, page, REQ_OP_WRITE);
	put_page(page);
	return err;
}

static int lanefs_log_replay(struct lanefs_log *log, lanefs_record_fn record)
{
	u64 seq, at = log->tail;
	int err = 0;

	for (seq = log->tail_seq; seq <= log->end && !err; seq++)
		err = lanefs_log_walk(log, seq, &at, false, record);
	return err == -ENOENT ? -EIO : err;
}

static int lanefs_cut_logs(struct lanefs_log *logs, u32 domains)
{
	struct lanefs_cut_log *cut = kvcalloc(domains, sizeof(*cut), GFP_KERNEL);
	u32 i;

	if (!cut)
		return -ENOMEM;
	for (i = 0; i < domains; i++) {
		cut[i].nodes = logs[i].nodes;
		cut[i].count = logs[i].count;
		cut[i].base = logs[i].tail_seq - 1;
	}
	lanefs_cut(cut, domains);
	for (i = 0; i < domains; i++)
		logs[i].end = cut[i].end;
	kvfree(cut);
	return 0;
}

static void lanefs_logs_free(struct lanefs_log *logs, u32 domains)
{
	u64 at;
	u32 i;

	for (i = 0; i < domains; i++) {
		for (at = 0; at < logs[i].count; at++)
			kfree(logs[i].nodes[at].needs);
		kvfree(logs[i].nodes);
		xa_destroy(&logs[i].newest);
		if (logs[i].page)
			put_page(logs[i].page);
	}
	kvfree(logs);
}

/* Afterwards the file system is consistent in place, and durable; the logs are not void yet. */
int lanefs_recover(struct lanefs_sb *sbi)
{
	u32 domains = sbi->s_domains, i;
	struct lanefs_log *logs = kvcalloc(domains, sizeof(*logs), GFP_KERNEL);
	u64 replayed = 0, discarded = 0;
	int err = 0;

	if (!logs)
		return -ENOMEM;
	for (i = 0; i < domains; i++) {
		xa_init(&logs[i].newest);
		logs[i].domain = sbi->s_domain[i];
	}
	for (i = 0; i < domains && !err; i++) {
		logs[i].page = alloc_page(GFP_KERNEL);
		err = logs[i].page ? lanefs_log_scan(&logs[i]) : -ENOMEM;
	}
	if (!err)
		err = lanefs_cut_logs(logs, domains);
	for (i = 0; i < domains && !err; i++) {
		err = lanefs_log_replay(&logs[i], lanefs_record_newest);
		if (!err)
			err = lanefs_log_replay(&logs[i], lanefs_record_replay);
		replayed += logs[i].end - (logs[i].tail_seq - 1);
		discarded += logs[i].tail_seq - 1 + logs[i].count - logs[i].end;
	}
	if (!err)
		err = blkdev_issue_flush(sbi->s_vfs->s_bdev);
	if (!err)
		pr_info("lanefs (%s): recovered: %llu transactions replayed, %llu discarded\n",
			sbi->s_vfs->s_id, replayed, discarded);
	lanefs_logs_free(logs, domains);
	return err;
}
