// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recovery after a crash: finds the complete transactions in each domain's log, computes the cut
 * (format.h) and replays each domain up to it. The domains share nothing but the cut, so what comes
 * before and after it is done for many at once. What it does can be done again from the start. A log
 * that has lost what was committed is refused before anything is written.
 */
#include <linux/blkdev.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "core/block.h"
#include "core/logend.h"
#include "core/logscan.h"
#include "journal/recovery.h"

/* Memory of the whole recovery in bytes, and its share of all memory; a domain takes 4 MiB. */
#define LANEFS_RECOVERY_MEMORY	(64 << 20)
#define LANEFS_RECOVERY_SHARE	16

#define LANEFS_PROGRESS		(5 * HZ)

/* Room for @more elements in *array, which has @count of *room. */
static int lanefs_array_grow(void **array, size_t size, u64 count, u64 more, u64 *room)
{
	u64 wanted = max_t(u64, 2 * *room, count + more);
	void *larger;

	if (count + more <= *room)
		return 0;
	larger = kvmalloc_array(wanted, size, GFP_KERNEL);
	if (!larger)
		return -ENOMEM;
	if (count)
		memcpy(larger, *array, count * size);
	kvfree(*array);
	*array = larger;
	*room = wanted;
	return 0;
}

/* The numbers of a descriptor at @at, or of a revoke block. */
static int lanefs_log_note_records(struct lanefs_log *log, const struct lanefs_log_scan *scan,
				   u32 at, bool copies)
{
	struct lanefs_log_record *record;
	u32 i;
	int err;

	if (log->record_count + scan->count > log->record_room) {
		log->record_count = lanefs_records_compact(log->records, log->record_count);
		if (2 * (log->record_count + scan->count) > log->record_room) {
			err = lanefs_array_grow((void **)&log->records, sizeof(*log->records),
						log->record_count, log->record_room + scan->count,
						&log->record_room);
			if (err)
				return err;
		}
	}
	for (i = 0; i < scan->count; i++) {
		record = &log->records[log->record_count++];
		record->block = le64_to_cpu(scan->numbers[i]);
		record->txn = scan->seq - log->tail_seq;
		record->at = copies ? at + 1 + i : LANEFS_LOG_REVOKED;
	}
	return 0;
}

/* A complete transaction. One that needs no more than the one before it shares its needs. */
static int lanefs_log_note(struct lanefs_log *log, const struct lanefs_commit_block *commit)
{
	u32 domains = log->journal->j_sbi->s_domains;
	__le64 *needs = log->count ? log->nodes[log->count - 1].needs : NULL;
	int err = lanefs_array_grow((void **)&log->nodes, sizeof(*log->nodes), log->count, 1,
				    &log->room);

	if (err)
		return err;
	if (!needs || !lanefs_cut_needs_no_more(commit->jc_needs, needs, domains)) {
		needs = kmemdup(commit->jc_needs, domains * sizeof(*needs), GFP_KERNEL);
		if (!needs)
			return -ENOMEM;
	}
	log->nodes[log->count].seq = log->tail_seq + log->count;
	log->nodes[log->count++].needs = needs;
	return 0;
}

static void lanefs_log_free(struct lanefs_log *log)
{
	u64 i;

	for (i = 0; i < log->count; i++)
		if (!i || log->nodes[i].needs != log->nodes[i - 1].needs)
			kfree(log->nodes[i].needs);
	kvfree(log->nodes);
	kvfree(log->records);
}

/*
 * The log ends before `seq`, which should begin at `at`, as the block `wrong` is not of it: -EUCLEAN
 * if the log was longer.
 */
static int lanefs_log_check_end(struct lanefs_log *log, struct lanefs_log_reader *reader, u64 seq,
				u64 at, u64 wrong)
{
	struct lanefs_journal *journal = log->journal;
	struct lanefs_log_end end = {
		.uuid = journal->j_sbi->s_uuid,
		.epoch = journal->j_sbi->s_epoch,
		.domain = journal->j_id,
		.seq = seq,
	};
	u64 left, place;
	const void *block;
	bool sealed;
	int err;

	lanefs_log_reader_seek(reader, at);
	for (left = journal->j_layout->journal_blocks; left; left--) {
		err = lanefs_log_reader_next(reader, &block, &place, &sealed);
		if (err)
			return err;
		if (!lanefs_log_end_take(&end, block, place))
			break;
	}
	if (!end.last)
		return 0;
	pr_err("lanefs (%s): domain %u: block %llu is damaged or lost, and with it transactions %llu to %llu, which were committed; fsck.lanefs -n shows more, mount -o ro,norecovery skips the replay\n",
	       journal->j_sbi->s_vfs->s_id, journal->j_id, wrong, seq, end.last);
	return -EUCLEAN;
}

/* Notes the complete transactions from the tail on. */
static int lanefs_log_read(struct lanefs_log *log, struct lanefs_log_reader *reader,
			   struct lanefs_log_scan *scan)
{
	u64 journal_blocks = log->journal->j_layout->journal_blocks, start = log->tail, place, at;
	const void *block;
	bool sealed;
	int err;

	lanefs_log_reader_seek(reader, log->tail);
	for (at = 0; !READ_ONCE(log->recovery->failed); at++) {
		err = lanefs_log_reader_next(reader, &block, &place, &sealed);
		if (err)
			return err;
		switch (lanefs_log_scan_take(scan, block, place, sealed)) {
		case LANEFS_LOG_END:
			return lanefs_log_check_end(log, reader, scan->seq, start, place);
		case LANEFS_LOG_DESCRIPTOR:
			err = lanefs_log_note_records(log, scan, at, true);
			break;
		case LANEFS_LOG_REVOKE:
			err = lanefs_log_note_records(log, scan, at, false);
			break;
		case LANEFS_LOG_COMMIT:
			err = lanefs_log_note(log, block);
			start = place + 1 - log->journal->j_layout->journal;
			if (start == journal_blocks)
				start = 0;
			break;
		case LANEFS_LOG_COPY:
			break;
		}
		if (err)
			return err;
	}
	return 0;
}

/* Where the log begins; 1 if it is void, and so empty. */
static int lanefs_log_find_tail(struct lanefs_log *log)
{
	struct lanefs_journal *journal = log->journal;
	u64 number = journal->j_layout->base + 1, epoch;
	struct lanefs_domain_block *block;
	struct page *page = alloc_page(GFP_KERNEL);
	int err;

	if (!page)
		return -ENOMEM;
	block = page_address(page);
	err = lanefs_bio_sync(journal->j_sbi, number, page, REQ_OP_READ);
	if (err)
		goto free;
	epoch = le64_to_cpu(block->db_header.lh_epoch);
	if (!lanefs_block_good(block, LANEFS_MAGIC_DOMAIN, number, journal->j_sbi->s_uuid) ||
	    le32_to_cpu(block->db_domain) != journal->j_id ||
	    le64_to_cpu(block->db_base) != journal->j_layout->base ||
	    le64_to_cpu(block->db_tail) >= journal->j_layout->journal_blocks ||
	    epoch > journal->j_sbi->s_epoch || !block->db_tail_seq) {
		lanefs_error(journal->j_sbi, "the superblock of domain %u is damaged", journal->j_id);
		err = -EUCLEAN;
		goto free;
	}
	log->tail_seq = le64_to_cpu(block->db_tail_seq);
	log->tail = le64_to_cpu(block->db_tail);
	if (epoch < journal->j_sbi->s_epoch) {
		log->tail_seq = 1;
		err = 1;
	}
free:
	put_page(page);
	return err;
}

/* Finds the complete transactions of the log. */
static int lanefs_log_scan(struct lanefs_log *log)
{
	struct lanefs_journal *journal = log->journal;
	struct lanefs_log_reader *reader = lanefs_log_reader_new(log);
	struct lanefs_log_scan *scan = kzalloc(sizeof(*scan), GFP_KERNEL);
	int err = -ENOMEM;

	if (!reader || !scan)
		goto free;
	err = lanefs_log_find_tail(log);
	if (err == 1) {
		err = lanefs_log_check_end(log, reader, 1, 0, journal->j_layout->base + 1);
	} else if (!err) {
		scan->layout = journal->j_layout;
		scan->uuid = journal->j_sbi->s_uuid;
		scan->epoch = journal->j_sbi->s_epoch;
		scan->domain = journal->j_id;
		scan->seq = log->tail_seq;
		err = lanefs_log_read(log, reader, scan);
	}
free:
	kfree(scan);
	if (reader)
		lanefs_log_reader_free(reader);
	return err;
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

static void lanefs_recovery_step(struct lanefs_log *log, int (*step)(struct lanefs_log *log))
{
	struct lanefs_recovery *recovery = log->recovery;

	if (!READ_ONCE(recovery->failed))
		log->err = step(log);
	if (log->err)
		WRITE_ONCE(recovery->failed, true);
	if (atomic_dec_and_test(&recovery->left))
		complete(&recovery->done);
}

static void lanefs_log_scan_work(struct work_struct *work)
{
	lanefs_recovery_step(container_of(work, struct lanefs_log, work), lanefs_log_scan);
}

static void lanefs_log_replay_work(struct work_struct *work)
{
	lanefs_recovery_step(container_of(work, struct lanefs_log, work), lanefs_log_replay);
}

/* Has each domain do it; the first domain's error. */
static int lanefs_recovery_phase(struct lanefs_recovery *recovery, work_func_t step,
				 const char *what)
{
	u32 domains = recovery->sbi->s_domains, i;
	int err = 0;

	atomic_set(&recovery->left, domains);
	atomic64_set(&recovery->blocks, 0);
	init_completion(&recovery->done);
	for (i = 0; i < domains; i++) {
		INIT_WORK(&recovery->logs[i].work, step);
		queue_work(recovery->queue, &recovery->logs[i].work);
	}
	while (!wait_for_completion_timeout(&recovery->done, LANEFS_PROGRESS))
		pr_info("lanefs (%s): recovery: %lld blocks %s, %d of %u domains to go\n",
			recovery->sbi->s_vfs->s_id, atomic64_read(&recovery->blocks), what,
			atomic_read(&recovery->left), domains);
	for (i = 0; i < domains && !err; i++)
		err = recovery->logs[i].err;
	return err;
}

static int lanefs_recovery_start(struct lanefs_recovery *recovery)
{
	struct lanefs_sb *sbi = recovery->sbi;
	u64 memory = min_t(u64, LANEFS_RECOVERY_MEMORY,
			   ((u64)totalram_pages() << PAGE_SHIFT) / LANEFS_RECOVERY_SHARE);
	u32 i;

	recovery->logs = kvcalloc(sbi->s_domains, sizeof(*recovery->logs), GFP_KERNEL);
	if (!recovery->logs)
		return -ENOMEM;
	for (i = 0; i < sbi->s_domains; i++) {
		recovery->logs[i].recovery = recovery;
		recovery->logs[i].journal = sbi->s_journal[i];
	}
	if (lanefs_ablated(sbi, LANEFS_ABLATE_RECOVERY)) {
		recovery->chunk_blocks = 1;
		recovery->chunks = 1;
		recovery->queue = alloc_ordered_workqueue("lanefs-recovery/%s", 0,
							  sbi->s_vfs->s_id);
	} else {
		recovery->chunk_blocks = LANEFS_CHUNK_BLOCKS;
		recovery->chunks = LANEFS_CHUNKS;
		memory /= LANEFS_CHUNKS * LANEFS_CHUNK_BLOCKS * LANEFS_BLOCK_SIZE;
		recovery->queue = alloc_workqueue("lanefs-recovery/%s", WQ_UNBOUND,
						  max_t(int, memory, 1), sbi->s_vfs->s_id);
	}
	return recovery->queue ? 0 : -ENOMEM;
}

static void lanefs_recovery_report(const struct lanefs_recovery *recovery, ktime_t started)
{
	u64 replayed = 0, discarded = 0, blocks = 0, ms = ktime_ms_delta(ktime_get(), started);
	const struct lanefs_log *log;
	u32 i;

	for (i = 0; i < recovery->sbi->s_domains; i++) {
		log = &recovery->logs[i];
		replayed += log->end - (log->tail_seq - 1);
		discarded += log->tail_seq - 1 + log->count - log->end;
		blocks += log->replayed;
	}
	pr_info("lanefs (%s): recovered: %llu transactions replayed, %llu discarded; %llu blocks of %u domains in %llu.%03llu s\n",
		recovery->sbi->s_vfs->s_id, replayed, discarded, blocks, recovery->sbi->s_domains,
		div_u64(ms, 1000), ms - 1000 * div_u64(ms, 1000));
}

/* Afterwards the file system is consistent in place, and durable; the logs are not void yet. */
int lanefs_recover(struct lanefs_sb *sbi)
{
	struct lanefs_recovery recovery = { .sbi = sbi };
	ktime_t started = ktime_get();
	int err;
	u32 i;

	err = lanefs_recovery_start(&recovery);
	/*
	 * What is found of the logs must be durable before anything of it is in place: a commit block
	 * may have reached the device's cache only, and be lost where what was replayed is not.
	 */
	if (!err)
		err = blkdev_issue_flush(sbi->s_vfs->s_bdev);
	if (!err)
		err = lanefs_recovery_phase(&recovery, lanefs_log_scan_work, "of logs read");
	if (!err)
		err = lanefs_cut_logs(recovery.logs, sbi->s_domains);
	if (!err)
		err = lanefs_recovery_phase(&recovery, lanefs_log_replay_work, "replayed");
	if (!err)
		err = blkdev_issue_flush(sbi->s_vfs->s_bdev);
	if (!err)
		lanefs_recovery_report(&recovery, started);
	if (recovery.queue)
		destroy_workqueue(recovery.queue);
	for (i = 0; recovery.logs && i < sbi->s_domains; i++)
		lanefs_log_free(&recovery.logs[i]);
	kvfree(recovery.logs);
	return err;
}
