// SPDX-License-Identifier: GPL-2.0-only
/*
 * The journal of a domain: its memory, its threads, and the transactions that are dropped when it
 * stops. Handles join the running one (handle.c), which is committed in the end (commit.c).
 */
#include <linux/kthread.h>
#include <linux/slab.h>

#include "journal/journal.h"

static struct kmem_cache *lanefs_journal_cache;

/**
 * lanefs_journal_cache_init() - make the slab cache of journals
 *
 * Context: When the module is loaded.
 * Return: 0 or -ENOMEM.
 */
int lanefs_journal_cache_init(void)
{
	lanefs_journal_cache = kmem_cache_create("lanefs_journal", sizeof(struct lanefs_journal), 0,
						 SLAB_HWCACHE_ALIGN, NULL);
	return lanefs_journal_cache ? 0 : -ENOMEM;
}

/**
 * lanefs_journal_cache_exit() - free the slab cache of journals
 *
 * Context: When no file system is mounted.
 */
void lanefs_journal_cache_exit(void)
{
	kmem_cache_destroy(lanefs_journal_cache);
}

/**
 * lanefs_journal_new() - make the journal of a domain, which does not run yet
 * @sbi: the file system
 * @id: number of the domain
 * @layout: of the domain
 * @slots: a word of zeros for each CPU
 * @node: of NUMA, for its memory
 *
 * It can be waited for, and locked.
 *
 * Context: At the mount.
 * Return: the journal, or NULL: there is no memory.
 */
struct lanefs_journal *lanefs_journal_new(struct lanefs_sb *sbi, u32 id,
					  const struct lanefs_layout *layout, u64 __percpu *slots,
					  int node)
{
	struct lanefs_journal *journal = kmem_cache_alloc_node(lanefs_journal_cache,
							       GFP_KERNEL | __GFP_ZERO, node);

	if (!journal)
		return NULL;
	journal->j_sbi = sbi;
	journal->j_id = id;
	journal->j_layout = layout;
	journal->j_slots = slots;
	lanefs_cache_init(journal);
	spin_lock_init(&journal->j_lock);
	journal->j_next_seq = 1;
	INIT_LIST_HEAD(&journal->j_txns);
	INIT_LIST_HEAD(&journal->j_waiters);
	mutex_init(&journal->j_commit_mutex);
	mutex_init(&journal->j_stable_mutex);
	mutex_init(&journal->j_checkpoint_mutex);
	init_waitqueue_head(&journal->j_wait_join);
	init_waitqueue_head(&journal->j_wait_drained);
	init_waitqueue_head(&journal->j_wait_committed[0]);
	init_waitqueue_head(&journal->j_wait_committed[1]);
	init_waitqueue_head(&journal->j_wait_helped);
	init_waitqueue_head(&journal->j_wait_commit_work);
	init_waitqueue_head(&journal->j_wait_checkpoint_work);
	return journal;
}

/**
 * lanefs_journal_free() - free a journal, with its cache of metadata blocks
 * @journal: the domain's, which does not run, or NULL
 *
 * What is not in place yet is given up.
 *
 * Context: At the end of the mount, when all others have put their blocks.
 */
void lanefs_journal_free(struct lanefs_journal *journal)
{
	if (!journal)
		return;
	lanefs_cache_destroy(journal);
	kmem_cache_free(lanefs_journal_cache, journal);
}

/**
 * lanefs_journal_start() - start an empty journal, in the current epoch
 * @journal: the domain's, whose superblock says so already
 *
 * Sequences go on from an earlier start in the same mount: inodes remember theirs.
 *
 * Context: At the mount, or a remount.
 * Return: 0, or the error of starting its threads.
 */
int lanefs_journal_start(struct lanefs_journal *journal)
{
	struct task_struct *task;

	journal->j_free = journal->j_layout->journal_blocks;
	journal->j_max_txn = journal->j_layout->journal_blocks / 3;
	task = kthread_run(lanefs_commit_thread, journal, "lanefs-commit/%u", journal->j_id);
	if (IS_ERR(task))
		return PTR_ERR(task);
	journal->j_commit_task = task;
	task = kthread_run(lanefs_checkpoint_thread, journal, "lanefs-ckpt/%u", journal->j_id);
	if (IS_ERR(task))
		return PTR_ERR(task);
	journal->j_checkpoint_task = task;
	return 0;
}

/* Drops what a transaction holds: it is stable, or the file system was aborted. */
static void lanefs_txn_drop(struct lanefs_txn *txn)
{
	struct lanefs_freed *freed, *next;
	struct lanefs_join *node;
	struct lanefs_buf *buf;
	unsigned int i;
	bool joined;

	while ((node = lanefs_joinlist_fetch(&txn->t_bufs, &joined))) {
		buf = container_of(node, struct lanefs_buf, b_join);
		buf->b_txn = NULL;
		lanefs_buf_put(buf);
	}
	for (i = 0; txn->t_vec && i < txn->t_nbufs; i++) {
		put_page(txn->t_vec[i].page);
		lanefs_buf_put(txn->t_vec[i].buf);
	}
	list_for_each_entry_safe(freed, next, &txn->t_freed, node)
		kfree(freed);
	lanefs_txn_free(txn);
}

/* Gives up the running transaction, if there is one, when its handles have ended. */
static void lanefs_running_drop(struct lanefs_journal *journal)
{
	struct lanefs_txn *txn;

	spin_lock(&journal->j_lock);
	txn = journal->j_running;
	if (txn)
		lanefs_txn_lock(txn);
	spin_unlock(&journal->j_lock);
	if (!txn)
		return;
	lanefs_txn_drain(txn);
	spin_lock(&journal->j_lock);
	WRITE_ONCE(journal->j_running, NULL);
	WRITE_ONCE(journal->j_running_seq, 0);
	spin_unlock(&journal->j_lock);
	lanefs_txn_drop(txn);
}

/**
 * lanefs_journal_stop() - stop a journal that is empty, or aborted
 * @journal: the domain's
 *
 * An fsync may still be about to commit, looking at the journal, or making what is in there
 * stable.
 *
 * Context: At the end of a mount, or a remount.
 */
void lanefs_journal_stop(struct lanefs_journal *journal)
{
	struct lanefs_txn *txn, *next;
	LIST_HEAD(txns);

	if (journal->j_commit_task)
		kthread_stop(journal->j_commit_task);
	if (journal->j_checkpoint_task)
		kthread_stop(journal->j_checkpoint_task);
	journal->j_commit_task = NULL;
	journal->j_checkpoint_task = NULL;
	mutex_lock(&journal->j_commit_mutex);
	mutex_lock(&journal->j_stable_mutex);
	spin_lock(&journal->j_lock);
	list_splice_init(&journal->j_txns, &txns);
	spin_unlock(&journal->j_lock);
	list_for_each_entry_safe(txn, next, &txns, t_node)
		lanefs_txn_drop(txn);
	mutex_unlock(&journal->j_stable_mutex);
	lanefs_running_drop(journal);
	mutex_unlock(&journal->j_commit_mutex);
}
