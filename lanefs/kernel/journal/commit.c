// SPDX-License-Identifier: GPL-2.0-only
/*
 * The commit of a domain's running transaction: waits until its handles have ended, freezes the
 * blocks that it changed, lets the next transaction begin and has the blocks written (write.c).
 *
 * A thread commits what is old, or what is in the way. Who waits for a commit does it, where
 * nobody does (journal=serial: it asks the thread). Those who wait for the next one sleep; when the
 * commit before is done one of them is woken to do it, for all. A task that may be throttled asks the
 * thread, too: if it ran out of CPU time in a commit, all would wait for its next period.
 */
#include <linux/freezer.h>
#include <linux/kthread.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "journal/journal.h"
#include "journal/trace.h"

#define LANEFS_COMMIT_INTERVAL	(5 * HZ)

static bool lanefs_waiters_commit(const struct lanefs_journal *journal)
{
	return READ_ONCE(journal->j_sbi->s_options.journal) != LANEFS_JOURNAL_SERIAL;
}

/* Those who wait for this transaction: another queue than for the one before, or after. */
static wait_queue_head_t *lanefs_committed_queue(struct lanefs_journal *journal, u64 seq)
{
	return &journal->j_wait_committed[seq % ARRAY_SIZE(journal->j_wait_committed)];
}

/* Freezes what the transaction changed. No handle is open, and none can join. */
static void lanefs_txn_freeze(struct lanefs_txn *txn)
{
	struct lanefs_join *node;
	struct lanefs_buf *buf;
	unsigned int i = 0;
	bool joined;

	txn->t_nbufs = atomic_read(&txn->t_joined);
	txn->t_vec = kvmalloc_array(txn->t_nbufs, sizeof(*txn->t_vec), GFP_NOFS | __GFP_NOFAIL);
	while ((node = lanefs_joinlist_fetch(&txn->t_bufs, &joined))) {
		buf = container_of(node, struct lanefs_buf, b_join);
		if (!joined) {
			lanefs_buf_put(buf);
			continue;
		}
		get_page(buf->b_page);
		txn->t_vec[i].buf = buf;
		txn->t_vec[i++].page = buf->b_page;
		set_bit(LANEFS_BUF_FROZEN, &buf->b_flags);
		smp_store_release(&buf->b_txn, NULL);
	}
	WARN_ON_ONCE(i != txn->t_nbufs);
}

/* The transaction's place in the journal; the next one may begin. */
static void lanefs_txn_place(struct lanefs_txn *txn)
{
	struct lanefs_journal *journal = txn->t_journal;

	spin_lock(&journal->j_lock);
	txn->t_jstart = journal->j_head;
	txn->t_jblocks = lanefs_journal_need(txn->t_nbufs, txn->t_revokes);
	if (WARN_ON(txn->t_jblocks > journal->j_free)) {
		spin_unlock(&journal->j_lock);
		lanefs_abort(journal->j_sbi);
		spin_lock(&journal->j_lock);
	} else {
		journal->j_free -= txn->t_jblocks;
		journal->j_head += txn->t_jblocks;
		if (journal->j_head >= journal->j_layout->journal_blocks)
			journal->j_head -= journal->j_layout->journal_blocks;
	}
	WRITE_ONCE(journal->j_running, NULL);
	WRITE_ONCE(journal->j_running_seq, 0);
	journal->j_committing = txn;
	spin_unlock(&journal->j_lock);
	/* The flush is after this: an fsync that still finds its transaction running relies on it. */
	smp_mb();
	wake_up_all(&journal->j_wait_join);
}

/* Under j_commit_mutex. */
static void lanefs_commit(struct lanefs_journal *journal)
{
	wait_queue_head_t *queue;
	struct lanefs_txn *txn;
	bool aborted;
	int err;

	lockdep_assert_held(&journal->j_commit_mutex);
	spin_lock(&journal->j_lock);
	txn = journal->j_running;
	queue = lanefs_committed_queue(journal, txn->t_seq);
	lanefs_txn_lock(txn);
	spin_unlock(&journal->j_lock);
	lanefs_txn_drain(txn);
	lanefs_txn_freeze(txn);
	lanefs_txn_place(txn);

	aborted = READ_ONCE(journal->j_sbi->s_aborted);
	err = aborted ? -EIO : lanefs_journal_transaction(txn, queue);
	if (err && !aborted) {
		lanefs_io_error(journal->j_sbi, "domain %u: transaction %llu cannot be written (%d)",
				journal->j_id, txn->t_seq, err);
		lanefs_shutdown(journal->j_sbi);
	}
	trace_lanefs_commit(txn, err);
	spin_lock(&journal->j_lock);
	journal->j_committing = NULL;
	list_add_tail(&txn->t_node, &journal->j_txns);
	if (!err)
		WRITE_ONCE(journal->j_committed, txn->t_seq);
	spin_unlock(&journal->j_lock);
	wake_up_all(queue);
	wake_up_all(&journal->j_wait_join);
}

/* The sequence to commit now, or 0; then `left` is the number of jiffies until the timeout. */
static u64 lanefs_commit_due(struct lanefs_journal *journal, unsigned long *left)
{
	unsigned long age;
	struct lanefs_txn *txn;
	u64 due = 0;

	*left = LANEFS_COMMIT_INTERVAL;
	spin_lock(&journal->j_lock);
	txn = journal->j_running;
	if (txn) {
		age = min_t(unsigned long, jiffies - txn->t_started, LANEFS_COMMIT_INTERVAL);
		*left -= age;
		if (txn->t_seq <= journal->j_wanted || !*left)
			due = txn->t_seq;
	}
	spin_unlock(&journal->j_lock);
	if (!READ_ONCE(journal->j_sbi->s_aborted))
		return due;
	*left = LANEFS_COMMIT_INTERVAL;
	return 0;
}

/* Commits what is due, if there is something; with j_commit_mutex, which is released. */
static void lanefs_commit_and_unlock(struct lanefs_journal *journal)
{
	unsigned int nofs = memalloc_nofs_save();
	unsigned long left;
	u64 seq = lanefs_commit_due(journal, &left), next;

	lockdep_assert_held(&journal->j_commit_mutex);
	if (seq)
		lanefs_commit(journal);
	mutex_unlock(&journal->j_commit_mutex);
	/* Wakes a task that requested a commit and then saw the mutex held. */
	smp_mb();
	next = lanefs_commit_due(journal, &left);
	if (next && lanefs_waiters_commit(journal))
		wake_up(lanefs_committed_queue(journal, next));
	else if (next)
		wake_up(&journal->j_wait_commit_work);
	if (seq && READ_ONCE(journal->j_committed) >= seq)
		lanefs_stable_try(journal);
	memalloc_nofs_restore(nofs);
}

/**
 * lanefs_commit_request() - ask for the commit of a transaction, without waiting for it
 * @journal: the domain's
 * @seq: the transaction
 * @thread: have the thread do it, as the caller may not wait; else a waiter does, if waiters commit
 *
 * The thread is woken also where it was asked before: that may have left it to a waiter that gets
 * no CPU.
 *
 * Context: Takes j_lock; does not sleep.
 */
void lanefs_commit_request(struct lanefs_journal *journal, u64 seq, bool thread)
{
	if (READ_ONCE(journal->j_committed) >= seq)
		return;
	thread |= !lanefs_waiters_commit(journal) || lanefs_may_be_throttled(journal->j_sbi);
	if (READ_ONCE(journal->j_wanted) < seq) {
		spin_lock(&journal->j_lock);
		if (seq > journal->j_wanted)
			WRITE_ONCE(journal->j_wanted, seq);
		spin_unlock(&journal->j_lock);
	}
	if (thread)
		wake_up(&journal->j_wait_commit_work);
}

static bool lanefs_commit_over(const struct lanefs_journal *journal, u64 seq)
{
	return READ_ONCE(journal->j_committed) >= seq || READ_ONCE(journal->j_sbi->s_aborted);
}

/* Whether there is something to do for who waits for a commit. */
static bool lanefs_commit_work(struct lanefs_journal *journal)
{
	return READ_ONCE(journal->j_write_coop) ||
	       (lanefs_waiters_commit(journal) && !mutex_is_locked(&journal->j_commit_mutex));
}

/* Waits until the transaction is on disk. It must have been requested, or be committing. */
int lanefs_commit_wait(struct lanefs_journal *journal, u64 seq)
{
	bool commits = !lanefs_may_be_throttled(journal->j_sbi);
	unsigned int state = TASK_UNINTERRUPTIBLE;
	u64 run_delay = lanefs_run_delay();

	/* It holds nothing here, and the other domain's commits may be frozen already. */
	if (kthread_func(current) == lanefs_checkpoint_thread)
		state |= TASK_FREEZABLE;
	/* The request may have left the commit to waiters, when the group was not held to be limited. */
	if (!commits)
		wake_up(&journal->j_wait_commit_work);
	for (;;) {
		/* Of those who commit one is woken. */
		(void)___wait_event(*lanefs_committed_queue(journal, seq),
				    lanefs_commit_over(journal, seq) ||
				    (commits && lanefs_commit_work(journal)),
				    state, commits, 0, schedule());
		if (lanefs_commit_over(journal, seq))
			break;
		if (READ_ONCE(journal->j_write_coop))
			lanefs_coop_help(journal, &journal->j_write_coop);
		else if (lanefs_waiters_commit(journal) && mutex_trylock(&journal->j_commit_mutex))
			lanefs_commit_and_unlock(journal);
	}
	/*
	 * Who was woken to commit may be this task, which had gone to the queue once more before it saw
	 * that it is over, and does not commit: then it is another's to do.
	 */
	if (lanefs_waiters_commit(journal) && !mutex_is_locked(&journal->j_commit_mutex) &&
	    wq_has_sleeper(lanefs_committed_queue(journal, seq)))
		wake_up(lanefs_committed_queue(journal, seq));
	lanefs_note_run_delay(journal->j_sbi, run_delay);
	return READ_ONCE(journal->j_committed) >= seq ? 0 : -EIO;
}

/*
 * It freezes with the system, as the checkpoint's thread does: what is written after the image of a
 * hibernation was made is newer than the memory that the image brings back. User tasks are frozen
 * before it, so those that wait for a commit get it.
 */
int lanefs_commit_thread(void *data)
{
	struct lanefs_journal *journal = data;
	unsigned long left;

	set_freezable();
	for (;;) {
		if (lanefs_commit_due(journal, &left)) {
			mutex_lock(&journal->j_commit_mutex);
			lanefs_commit_and_unlock(journal);
			continue;
		}
		if (kthread_should_stop())
			break;
		wait_event_freezable_timeout(journal->j_wait_commit_work,
					     kthread_should_stop() ||
					     lanefs_commit_due(journal, &left), left);
	}
	return 0;
}
