// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recovery after a crash: finds the complete transactions in each domain's journal, computes the cut
 * (format.h) and replays each domain up to it. The domains share nothing but the cut, so what comes
 * before and after it is done for many at once. What it does can be done again from the start. A journal
 * that has lost what was committed is refused before anything is written.
 */
#include <linux/blkdev.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "core/block.h"
#include "core/jend.h"
#include "core/jscan.h"
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
static int lanefs_recovery_note_records(struct lanefs_recovery_part *part,
					const struct lanefs_jscan *scan,
					u32 at, bool copies)
{
	struct lanefs_journal_record *record;
	u32 i;
	int err;

	if (part->record_count + scan->count > part->record_room) {
		part->record_count = lanefs_records_compact(part->records, part->record_count);
		if (2 * (part->record_count + scan->count) > part->record_room) {
			err = lanefs_array_grow((void **)&part->records, sizeof(*part->records),
						part->record_count, part->record_room + scan->count,
						&part->record_room);
			if (err)
				return err;
		}
	}
	for (i = 0; i < scan->count; i++) {
		record = &part->records[part->record_count++];
		record->block = le64_to_cpu(scan->numbers[i]);
		record->txn = scan->seq - part->tail_seq;
		record->at = copies ? at + 1 + i : LANEFS_JSCAN_REVOKED;
	}
	return 0;
}

/* A complete transaction. One that needs no more than the one before it shares its needs. */
static int lanefs_recovery_note(struct lanefs_recovery_part *part,
				const struct lanefs_commit_block *commit)
{
	u32 domains = part->journal->j_sbi->s_domains;
	__le64 *needs = part->count ? part->nodes[part->count - 1].needs : NULL;
	int err = lanefs_array_grow((void **)&part->nodes, sizeof(*part->nodes), part->count, 1,
				    &part->room);

	if (err)
		return err;
	if (!needs || !lanefs_cut_needs_no_more(commit->jc_needs, needs, domains)) {
		needs = kmemdup(commit->jc_needs, domains * sizeof(*needs), GFP_KERNEL);
		if (!needs)
			return -ENOMEM;
	}
	part->nodes[part->count].seq = part->tail_seq + part->count;
	part->nodes[part->count++].needs = needs;
	return 0;
}

static void lanefs_recovery_part_free(struct lanefs_recovery_part *part)
{
	u64 i;

	for (i = 0; i < part->count; i++)
		if (!i || part->nodes[i].needs != part->nodes[i - 1].needs)
			kfree(part->nodes[i].needs);
	kvfree(part->nodes);
	kvfree(part->records);
}

/*
 * The journal ends before `seq`, which should begin at `at`, as the block `wrong` is not of it: -EUCLEAN
 * if the journal was longer.
 */
static int lanefs_recovery_check_end(struct lanefs_recovery_part *part,
				     struct lanefs_journal_reader *reader, u64 seq,
				     u64 at, u64 wrong)
{
	struct lanefs_journal *journal = part->journal;
	struct lanefs_jend end = {
		.uuid = journal->j_sbi->s_uuid,
		.epoch = journal->j_sbi->s_epoch,
		.domain = journal->j_id,
		.seq = seq,
	};
	u64 left, place;
	const void *block;
	bool sealed;
	int err;

	lanefs_journal_reader_seek(reader, at);
	for (left = journal->j_layout->journal_blocks; left; left--) {
		err = lanefs_journal_reader_next(reader, &block, &place, &sealed);
		if (err)
			return err;
		if (!lanefs_jend_take(&end, block, place))
			break;
	}
	if (!end.last)
		return 0;
	pr_err("lanefs (%s): domain %u: block %llu is damaged or lost, and with it transactions %llu to %llu, which were committed; fsck.lanefs -n shows more, mount -o ro,norecovery skips the replay\n",
	       journal->j_sbi->s_vfs->s_id, journal->j_id, wrong, seq, end.last);
	return -EUCLEAN;
}

/* Notes the complete transactions from the tail on. */
static int lanefs_recovery_read(struct lanefs_recovery_part *part,
				struct lanefs_journal_reader *reader,
				struct lanefs_jscan *scan)
{
	u64 journal_blocks = part->journal->j_layout->journal_blocks, start = part->tail, place, at;
	const void *block;
	bool sealed;
	int err;

	lanefs_journal_reader_seek(reader, part->tail);
	for (at = 0; !READ_ONCE(part->recovery->failed); at++) {
		err = lanefs_journal_reader_next(reader, &block, &place, &sealed);
		if (err)
			return err;
		switch (lanefs_jscan_take(scan, block, place, sealed)) {
		case LANEFS_JSCAN_END:
			return lanefs_recovery_check_end(part, reader, scan->seq, start, place);
		case LANEFS_JSCAN_DESCRIPTOR:
			err = lanefs_recovery_note_records(part, scan, at, true);
			break;
		case LANEFS_JSCAN_REVOKE:
			err = lanefs_recovery_note_records(part, scan, at, false);
			break;
		case LANEFS_JSCAN_COMMIT:
			err = lanefs_recovery_note(part, block);
			start = place + 1 - part->journal->j_layout->journal;
			if (start == journal_blocks)
				start = 0;
			break;
		case LANEFS_JSCAN_COPY:
			break;
		}
		if (err)
			return err;
	}
	return 0;
}

/* Where the journal begins; 1 if it is void, and so empty. */
static int lanefs_recovery_find_tail(struct lanefs_recovery_part *part)
{
	struct lanefs_journal *journal = part->journal;
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
	part->tail_seq = le64_to_cpu(block->db_tail_seq);
	part->tail = le64_to_cpu(block->db_tail);
	if (epoch < journal->j_sbi->s_epoch) {
		part->tail_seq = 1;
		err = 1;
	}
free:
	put_page(page);
	return err;
}

/* Finds the complete transactions of the journal. */
static int lanefs_recovery_scan(struct lanefs_recovery_part *part)
{
	struct lanefs_journal *journal = part->journal;
	struct lanefs_journal_reader *reader = lanefs_journal_reader_new(part);
	struct lanefs_jscan *scan = kzalloc(sizeof(*scan), GFP_KERNEL);
	int err = -ENOMEM;

	if (!reader || !scan)
		goto free;
	err = lanefs_recovery_find_tail(part);
	if (err == 1) {
		err = lanefs_recovery_check_end(part, reader, 1, 0, journal->j_layout->base + 1);
	} else if (!err) {
		scan->layout = journal->j_layout;
		scan->uuid = journal->j_sbi->s_uuid;
		scan->epoch = journal->j_sbi->s_epoch;
		scan->domain = journal->j_id;
		scan->seq = part->tail_seq;
		err = lanefs_recovery_read(part, reader, scan);
	}
free:
	kfree(scan);
	if (reader)
		lanefs_journal_reader_free(reader);
	return err;
}

static int lanefs_recovery_cut(struct lanefs_recovery_part *parts, u32 domains)
{
	struct lanefs_cut_journal *cut = kvcalloc(domains, sizeof(*cut), GFP_KERNEL);
	u32 i;

	if (!cut)
		return -ENOMEM;
	for (i = 0; i < domains; i++) {
		cut[i].nodes = parts[i].nodes;
		cut[i].count = parts[i].count;
		cut[i].base = parts[i].tail_seq - 1;
	}
	lanefs_cut(cut, domains);
	for (i = 0; i < domains; i++)
		parts[i].end = cut[i].end;
	kvfree(cut);
	return 0;
}

static void lanefs_recovery_step(struct lanefs_recovery_part *part,
				 int (*step)(struct lanefs_recovery_part *part))
{
	struct lanefs_recovery *recovery = part->recovery;

	if (!READ_ONCE(recovery->failed))
		part->err = step(part);
	if (part->err)
		WRITE_ONCE(recovery->failed, true);
	if (atomic_dec_and_test(&recovery->left))
		complete(&recovery->done);
}

static void lanefs_recovery_scan_work(struct work_struct *work)
{
	lanefs_recovery_step(container_of(work, struct lanefs_recovery_part, work), lanefs_recovery_scan);
}

static void lanefs_recovery_replay_work(struct work_struct *work)
{
	lanefs_recovery_step(container_of(work, struct lanefs_recovery_part, work), lanefs_recovery_replay);
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
		INIT_WORK(&recovery->parts[i].work, step);
		queue_work(recovery->queue, &recovery->parts[i].work);
	}
	while (!wait_for_completion_timeout(&recovery->done, LANEFS_PROGRESS))
		pr_info("lanefs (%s): recovery: %lld blocks %s, %d of %u domains to go\n",
			recovery->sbi->s_vfs->s_id, atomic64_read(&recovery->blocks), what,
			atomic_read(&recovery->left), domains);
	for (i = 0; i < domains && !err; i++)
		err = recovery->parts[i].err;
	return err;
}

static int lanefs_recovery_start(struct lanefs_recovery *recovery)
{
	struct lanefs_sb *sbi = recovery->sbi;
	u64 memory = min_t(u64, LANEFS_RECOVERY_MEMORY,
			   ((u64)totalram_pages() << PAGE_SHIFT) / LANEFS_RECOVERY_SHARE);
	u32 i;

	recovery->parts = kvcalloc(sbi->s_domains, sizeof(*recovery->parts), GFP_KERNEL);
	if (!recovery->parts)
		return -ENOMEM;
	for (i = 0; i < sbi->s_domains; i++) {
		recovery->parts[i].recovery = recovery;
		recovery->parts[i].journal = sbi->s_journal[i];
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
	const struct lanefs_recovery_part *part;
	u32 i;

	for (i = 0; i < recovery->sbi->s_domains; i++) {
		part = &recovery->parts[i];
		replayed += part->end - (part->tail_seq - 1);
		discarded += part->tail_seq - 1 + part->count - part->end;
		blocks += part->replayed;
	}
	pr_info("lanefs (%s): recovered: %llu transactions replayed, %llu discarded; %llu blocks of %u domains in %llu.%03llu s\n",
		recovery->sbi->s_vfs->s_id, replayed, discarded, blocks, recovery->sbi->s_domains,
		div_u64(ms, 1000), ms - 1000 * div_u64(ms, 1000));
}

/**
 * lanefs_recover() - replay the journals up to the cut after a crash
 * @sbi: the file system
 *
 * Afterwards the file system is consistent in place, and durable; the journals are not void yet.
 * After an error the next mount begins anew.
 *
 * Context: At the mount, before other metadata is read; sleeps for I/O.
 * Return: 0, -EUCLEAN: the superblock of a domain is damaged, or a journal lacks what was
 * committed, -ENOMEM, or the error of an I/O.
 */
int lanefs_recover(struct lanefs_sb *sbi)
{
	struct lanefs_recovery recovery = { .sbi = sbi };
	ktime_t started = ktime_get();
	int err;
	u32 i;

	err = lanefs_recovery_start(&recovery);
	/*
	 * What is found of the journals must be durable before anything of it is in place: a commit block
	 * may have reached the device's cache only, and be lost where what was replayed is not.
	 */
	if (!err)
		err = blkdev_issue_flush(sbi->s_vfs->s_bdev);
	if (!err)
		err = lanefs_recovery_phase(&recovery, lanefs_recovery_scan_work, "of journals read");
	if (!err)
		err = lanefs_recovery_cut(recovery.parts, sbi->s_domains);
	if (!err)
		err = lanefs_recovery_phase(&recovery, lanefs_recovery_replay_work, "replayed");
	if (!err)
		err = blkdev_issue_flush(sbi->s_vfs->s_bdev);
	if (!err)
		lanefs_recovery_report(&recovery, started);
	if (recovery.queue)
		destroy_workqueue(recovery.queue);
	for (i = 0; recovery.parts && i < sbi->s_domains; i++)
		lanefs_recovery_part_free(&recovery.parts[i]);
	kvfree(recovery.parts);
	return err;
}
