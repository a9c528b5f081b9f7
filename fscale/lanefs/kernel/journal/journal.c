// SPDX-License-Identifier: GPL-2.0-only
/*
 * The journal of a domain: handles join its running transaction, which is committed in the end
 * (commit.c).
 *
 * An operation opens one handle on all domains that it changes (lanefs_begin()), which ties their
 * transactions; format.h has the argument why recovery is atomic. Log space for the handle's
 * credits is there before it joins, so a commit never waits for space. A task that must wait for
 * one domain first leaves the others, so waiting for handles to end cannot deadlock. It takes a
 * ticket then, and from those who come later, or have a later one, it is left room in all domains
 * that it waits to join: so the one that has waited longest does not wait for them.
 *
 * Who makes transactions of several domains durable (stable.c) takes a ticket as well, and lets no
 * handle of several domains join them that has not waited longer: else these would need, one after
 * the other, what began meanwhile.
 */
#include <linux/kthread.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "core/slot.h"
#include "journal/journal.h"
#include "journal/trace.h"

#define LANEFS_LOG_SLACK	32	/* blocks, should an operation need more than its credits */

/* Blocks in the log for a transaction of so many metadata blocks. */
u64 lanefs_log_need(u64 blocks, u64 revokes)
{
	return blocks + DIV_ROUND_UP_ULL(blocks, LANEFS_JOURNAL_RECORDS) +
	       DIV_ROUND_UP_ULL(revokes, LANEFS_JOURNAL_RECORDS) + 1;
}

static struct lanefs_txn *lanefs_txn_new(struct lanefs_sb *sbi)
{
	struct lanefs_txn *txn = kzalloc(sizeof(*txn), GFP_NOFS | __GFP_NOFAIL);

	txn->t_needs = kcalloc(sbi->s_domains, sizeof(*txn->t_needs), GFP_NOFS | __GFP_NOFAIL);
	spin_lock_init(&txn->t_lock);
	lanefs_joinlist_init(&txn->t_bufs);
	INIT_LIST_HEAD(&txn->t_freed);
	INIT_LIST_HEAD(&txn->t_node);
	return txn;
}

void lanefs_txn_free(struct lanefs_txn *txn)
{
	if (!txn)
		return;
	lanefs_flush_put(txn->t_flush);
	kvfree(txn->t_vec);
	kfree(txn->t_needs);
	kfree(txn);
}

/* Asks for the commit of the running transaction; under j_lock. */
static void lanefs_want_commit(struct lanefs_domain *domain, const struct lanefs_txn *txn)
{
	lockdep_assert_held(&domain->j_lock);
	if (txn->t_seq <= domain->j_wanted)
		return;
	WRITE_ONCE(domain->j_wanted, txn->t_seq);
	wake_up(&domain->j_wait_commit_work);
}

/* Credits of those who have waited longer than `waiter`, or, without one, of all; under j_lock. */
static unsigned int lanefs_older_credits(const struct lanefs_domain *domain,
					 const struct lanefs_waiter *waiter)
{
	const struct lanefs_waiter *other;
	unsigned int credits = 0;

	lockdep_assert_held(&domain->j_lock);
	list_for_each_entry(other, &domain->j_waiters, w_node) {
		if (waiter && other->w_ticket >= waiter->w_ticket)
			break;
		credits += other->w_credits;
	}
	return credits;
}

/*
 * Whether the running transaction has room for so many credits, and as many as `older` beside;
 * under j_lock. -EAGAIN: not this one; -ENOSPC: the log does not.
 */
static int lanefs_txn_room(const struct lanefs_domain *domain, unsigned int credits,
			   unsigned int older)
{
	const struct lanefs_txn *txn = domain->j_running;
	unsigned int reserved = older + (txn ? txn->t_reserved : 0);
	unsigned int revokes = txn ? txn->t_revokes : 0;

	lockdep_assert_held(&domain->j_lock);
	if (txn && txn->t_locked)
		return -EAGAIN;
	if (reserved && reserved + credits > domain->j_max_txn)
		return -EAGAIN;
	if (domain->j_free < lanefs_log_need(reserved + credits, revokes + LANEFS_JOURNAL_RECORDS) +
			     LANEFS_LOG_SLACK)
		return -ENOSPC;
	return 0;
}

/* Whether a handle of several domains may not join the running transaction; under j_lock. */
static bool lanefs_ties_held(const struct lanefs_domain *domain, const struct lanefs_waiter *waiter)
{
	u64 seq = domain->j_running ? domain->j_running->t_seq : domain->j_next_seq;

	lockdep_assert_held(&domain->j_lock);
	return seq <= domain->j_held_seq && !(waiter && waiter->w_ticket < domain->j_held_ticket);
}

/*
 * Whether this part of the handle can join its domain now; under j_lock. `waiter`: as who it has
 * waited, if it has; those who have waited longer are left room. -EAGAIN: wait on j_wait_join,
 * holding no handle of any domain.
 */
static int lanefs_handle_admit(const struct lanefs_handle *h, int part,
			       const struct lanefs_waiter *waiter)
{
	struct lanefs_domain *domain = h->h_part[part].domain;
	unsigned int credits = h->h_part[part].credits;
	unsigned int older = lanefs_older_credits(domain, waiter);
	struct lanefs_txn *txn = domain->j_running;
	int err;

	lockdep_assert_held(&domain->j_lock);
	/* Nobody would commit what joins a journal that does not run. */
	if (READ_ONCE(domain->d_sbi->s_aborted) || !READ_ONCE(domain->d_sbi->s_started))
		return -EROFS;
	if (h->h_parts > 1 && lanefs_ties_held(domain, waiter))
		return -EAGAIN;
	err = lanefs_txn_room(domain, credits, older);
	if (err && txn && !txn->t_locked) {
		txn->t_reserved -= lanefs_slots_close(domain);
		err = lanefs_txn_room(domain, credits, older);
	}
	if (err == -ENOSPC)
		lanefs_checkpoint_request(domain);
	else if (err && txn && !txn->t_locked &&
		 (atomic_read(&txn->t_joined) > domain->j_max_txn / 2 ||
		  (!txn->t_handles && !lanefs_slots_busy(domain))))
		lanefs_want_commit(domain, txn);
	return err ? -EAGAIN : 0;
}

static bool lanefs_handle_admitted(const struct lanefs_handle *h, int part,
				   const struct lanefs_waiter *waiter)
{
	struct lanefs_domain *domain = h->h_part[part].domain;
	int err;

	spin_lock(&domain->j_lock);
	err = lanefs_handle_admit(h, part, waiter);
	spin_unlock(&domain->j_lock);
	return err != -EAGAIN;
}

/* The next handles on this CPU need not come here; under j_lock. */
static void lanefs_slot_grant(struct lanefs_domain *domain, struct lanefs_txn *txn,
			      unsigned int credits)
{
	unsigned int share = lanefs_slot_share(domain, credits);

	lockdep_assert_held(&domain->j_lock);
	if (READ_ONCE(domain->d_sbi->s_options.journal) != LANEFS_JOURNAL_CONCURRENT ||
	    !list_empty(&domain->j_waiters) || !share || lanefs_txn_room(domain, share, 0))
		return;
	txn->t_reserved += share;
	lanefs_slot_open(domain, share);
}

/* Under j_lock. -ENOBUFS: there is no running transaction, give a fresh one. */
static int lanefs_handle_join_locked(struct lanefs_handle *h, int part,
				     const struct lanefs_waiter *waiter,
				     struct lanefs_txn **fresh)
{
	struct lanefs_domain *domain = h->h_part[part].domain;
	unsigned int credits = h->h_part[part].credits;
	struct lanefs_txn *txn;
	int err;

	lockdep_assert_held(&domain->j_lock);
	err = lanefs_handle_admit(h, part, waiter);
	if (err)
		return err;
	txn = domain->j_running;
	if (!txn) {
		txn = *fresh;
		if (!txn)
			return -ENOBUFS;
		*fresh = NULL;
		txn->t_domain = domain;
		txn->t_seq = domain->j_next_seq++;
		txn->t_started = jiffies;
		WRITE_ONCE(domain->j_running, txn);
		WRITE_ONCE(domain->j_running_seq, txn->t_seq);
	}
	txn->t_handles++;
	txn->t_reserved += credits;
	domain->j_untied += h->h_parts > 1;
	h->h_part[part].txn = txn;
	lanefs_slot_grant(domain, txn, credits);
	return 0;
}

static int lanefs_handle_join(struct lanefs_handle *h, int part, const struct lanefs_waiter *waiter,
			      struct lanefs_txn **fresh)
{
	struct lanefs_domain *domain = h->h_part[part].domain;
	int err;

	/* What is to be tied asks under j_lock whether it may be. */
	h->h_part[part].slot = h->h_parts > 1 ? NULL :
			       lanefs_slot_enter(domain, h->h_part[part].credits);
	if (h->h_part[part].slot) {
		/* It stays the running transaction until this handle has ended. */
		h->h_part[part].txn = READ_ONCE(domain->j_running);
		return 0;
	}
	spin_lock(&domain->j_lock);
	err = lanefs_handle_join_locked(h, part, waiter, fresh);
	spin_unlock(&domain->j_lock);
	return err;
}

/* Under j_lock: a handle that joined has tied the transaction, or has left it. */
static void lanefs_untied_ended(struct lanefs_domain *domain)
{
	lockdep_assert_held(&domain->j_lock);
	if (!--domain->j_untied && wq_has_sleeper(&domain->j_wait_drained))
		wake_up(&domain->j_wait_drained);
}

static void lanefs_handle_leave(struct lanefs_handle *h, int part)
{
	struct lanefs_domain *domain = h->h_part[part].domain;
	unsigned int credits = h->h_part[part].credits, used = h->h_part[part].used;
	struct lanefs_slot *slot = h->h_part[part].slot;
	struct lanefs_txn *txn = h->h_part[part].txn;
	unsigned int left = credits - min(credits, used);
	bool drained = false, room = false;
	u64 seq = txn->t_seq;

	if (slot && lanefs_slot_give(&slot->s_state, left))
		return;
	spin_lock(&domain->j_lock);
	txn = domain->j_running;
	/* From a slot that was closed it has left already, and the commit need not have waited. */
	if (txn && txn->t_seq == seq) {
		txn->t_reserved -= left;
		if (!slot)
			txn->t_handles--;
		drained = txn->t_locked && !txn->t_handles;
		room = !txn->t_locked && waitqueue_active(&domain->j_wait_join);
	}
	spin_unlock(&domain->j_lock);
	if (drained)
		wake_up(&domain->j_wait_drained);
	if (room)
		wake_up(&domain->j_wait_join);
}

/*
 * Joins all domains, or, if one cannot be joined, none: then *blocked is that part. `waiters`: one
 * for each part, or NULL.
 */
static int lanefs_handle_join_all(struct lanefs_handle *h, const struct lanefs_waiter *waiters,
				  struct lanefs_txn **fresh, int *blocked)
{
	int i, err;

	for (i = 0; i < h->h_parts; i++) {
		err = lanefs_handle_join(h, i, waiters ? &waiters[i] : NULL, fresh);
		if (!err)
			continue;
		*blocked = i;
		while (--i >= 0) {
			lanefs_handle_leave(h, i);
			spin_lock(&h->h_part[i].domain->j_lock);
			lanefs_untied_ended(h->h_part[i].domain);
			spin_unlock(&h->h_part[i].domain->j_lock);
		}
		return err;
	}
	return 0;
}

/* Queues a waiting task in all its domains, so that each leaves room for it. */
static void lanefs_waiter_queue(struct lanefs_handle *h, struct lanefs_waiter *waiters)
{
	u64 ticket = atomic64_inc_return(&h->h_sbi->s_tickets);
	struct lanefs_waiter *before;
	struct lanefs_domain *domain;
	int i;

	for (i = 0; i < h->h_parts; i++) {
		domain = h->h_part[i].domain;
		waiters[i].w_ticket = ticket;
		waiters[i].w_credits = h->h_part[i].credits;
		spin_lock(&domain->j_lock);
		list_for_each_entry_reverse(before, &domain->j_waiters, w_node)
			if (before->w_ticket < ticket)
				break;
		list_add(&waiters[i].w_node, &before->w_node);
		spin_unlock(&domain->j_lock);
	}
}

static void lanefs_waiter_unqueue(struct lanefs_handle *h, struct lanefs_waiter *waiters)
{
	struct lanefs_domain *domain;
	bool more;
	int i;

	for (i = 0; i < h->h_parts; i++) {
		domain = h->h_part[i].domain;
		spin_lock(&domain->j_lock);
		list_del(&waiters[i].w_node);
		more = !list_empty(&domain->j_waiters);
		spin_unlock(&domain->j_lock);
		if (more)
			wake_up(&domain->j_wait_join);
	}
}

/* Waits until the handle may be let in, and helps where room is made, if others can rely on it. */
static void lanefs_handle_wait(const struct lanefs_handle *h, int part,
			       const struct lanefs_waiter *waiter)
{
	struct lanefs_domain *domain = h->h_part[part].domain;
	bool helps = !lanefs_may_be_throttled();

	for (;;) {
		wait_event(domain->j_wait_join,
			   (helps && READ_ONCE(domain->j_home_coop)) ||
			   lanefs_handle_admitted(h, part, waiter));
		if (!helps || !READ_ONCE(domain->j_home_coop))
			return;
		lanefs_coop_help(domain, &domain->j_home_coop);
	}
}

/* Each of the transactions joined needs the others. */
static void lanefs_handle_tie(struct lanefs_handle *h)
{
	int i, j;

	for (i = 0; i < h->h_parts; i++) {
		struct lanefs_txn *txn = h->h_part[i].txn;

		spin_lock(&txn->t_domain->j_lock);
		for (j = 0; j < h->h_parts; j++) {
			u32 other = h->h_part[j].domain->d_id;

			if (i != j && txn->t_needs[other] < h->h_part[j].txn->t_seq)
				txn->t_needs[other] = h->h_part[j].txn->t_seq;
		}
		txn->t_tied = true;
		WRITE_ONCE(txn->t_domain->j_tied, txn->t_seq);
		lanefs_untied_ended(txn->t_domain);
		spin_unlock(&txn->t_domain->j_lock);
	}
}

/*
 * Opens a handle on these domains (which may repeat): the operation may change `credits` blocks of
 * each. -EROFS: the file system was aborted, or has become read-only.
 */
int lanefs_begin(struct lanefs_handle *h, struct lanefs_sb *sbi, unsigned int credits,
		 const u32 *domains, int count)
{
	struct lanefs_waiter waiters[LANEFS_HANDLE_PARTS];
	struct lanefs_txn *fresh = NULL;
	int i, j, err, blocked;
	bool queued = false;

	WARN_ON_ONCE(current->journal_info);
	h->h_sbi = sbi;
	h->h_parts = 0;
	for (i = 0; i < count; i++) {
		for (j = 0; j < h->h_parts; j++)
			if (h->h_part[j].domain->d_id == domains[i])
				break;
		if (j < h->h_parts)
			continue;
		memset(&h->h_part[j], 0, sizeof(h->h_part[j]));
		h->h_part[j].domain = sbi->s_domain[domains[i]];
		h->h_part[j].credits = credits;
		h->h_parts++;
	}
	rwsem_acquire_read(&sbi->s_handle_map, 0, 0, _THIS_IP_);
	for (;;) {
		err = lanefs_handle_join_all(h, queued ? waiters : NULL, &fresh, &blocked);
		if (err == -ENOBUFS) {
			fresh = lanefs_txn_new(sbi);
			continue;
		}
		if (err != -EAGAIN)
			break;
		if (!queued)
			lanefs_waiter_queue(h, waiters);
		queued = true;
		lanefs_handle_wait(h, blocked, &waiters[blocked]);
	}
	if (queued)
		lanefs_waiter_unqueue(h, waiters);
	lanefs_txn_free(fresh);
	if (err) {
		rwsem_release(&sbi->s_handle_map, _THIS_IP_);
		return err;
	}
	if (h->h_parts > 1)
		lanefs_handle_tie(h);
	h->h_nofs = memalloc_nofs_save();
	current->journal_info = h;
	trace_lanefs_handle_start(h, credits);
	return 0;
}

void lanefs_end(struct lanefs_handle *h)
{
	int i;

	current->journal_info = NULL;
	memalloc_nofs_restore(h->h_nofs);
	for (i = 0; i < h->h_parts; i++) {
		WARN_ON_ONCE(h->h_part[i].used > h->h_part[i].credits);
		if (h->h_part[i].reserved)
			h->h_sbi->s_journal_ops->unreserve(h->h_part[i].domain,
							   h->h_part[i].reserved);
		lanefs_handle_leave(h, i);
	}
	rwsem_release(&h->h_sbi->s_handle_map, _THIS_IP_);
}

/* Which part of the handle is this domain's. Changing a domain that it has not joined is a bug. */
int lanefs_handle_part(const struct lanefs_handle *h, const struct lanefs_domain *domain)
{
	int i;

	for (i = 0; i < h->h_parts; i++)
		if (h->h_part[i].domain == domain)
			return i;
	BUG();
}

/* What can be waited for, and locked, whether or not the journal runs. */
void lanefs_journal_init(struct lanefs_domain *domain)
{
	spin_lock_init(&domain->j_lock);
	domain->j_next_seq = 1;
	INIT_LIST_HEAD(&domain->j_log);
	INIT_LIST_HEAD(&domain->j_waiters);
	mutex_init(&domain->j_commit_mutex);
	mutex_init(&domain->j_stable_mutex);
	mutex_init(&domain->j_checkpoint_mutex);
	init_waitqueue_head(&domain->j_wait_join);
	init_waitqueue_head(&domain->j_wait_drained);
	init_waitqueue_head(&domain->j_wait_committed[0]);
	init_waitqueue_head(&domain->j_wait_committed[1]);
	init_waitqueue_head(&domain->j_wait_helped);
	init_waitqueue_head(&domain->j_wait_commit_work);
	init_waitqueue_head(&domain->j_wait_checkpoint_work);
}

/*
 * Starts with an empty log in the current epoch; the domain superblock says so already. Sequences
 * go on from an earlier start in the same mount: inodes remember theirs.
 */
int lanefs_journal_start(struct lanefs_domain *domain)
{
	struct task_struct *task;

	domain->j_free = domain->d_layout.journal_blocks;
	domain->j_max_txn = domain->d_layout.journal_blocks / 3;
	task = kthread_run(lanefs_commit_thread, domain, "lanefs-commit/%u", domain->d_id);
	if (IS_ERR(task))
		return PTR_ERR(task);
	domain->j_commit_task = task;
	task = kthread_run(lanefs_checkpoint_thread, domain, "lanefs-ckpt/%u", domain->d_id);
	if (IS_ERR(task))
		return PTR_ERR(task);
	domain->j_checkpoint_task = task;
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

/*
 * The domain's transactions up to `seq` are tied to no others any more, but by handles that have
 * waited since before `ticket` was given out. What ties them already is noted in them afterwards.
 */
void lanefs_hold_ties(struct lanefs_domain *domain, u64 seq, u64 ticket)
{
	spin_lock(&domain->j_lock);
	if (seq > domain->j_held_seq) {
		domain->j_held_seq = seq;
		domain->j_held_ticket = ticket;
	}
	spin_unlock(&domain->j_lock);
	wait_event(domain->j_wait_drained, !READ_ONCE(domain->j_untied));
}

/* The running transaction takes no more handles; under j_lock. */
void lanefs_txn_lock(struct lanefs_txn *txn)
{
	lockdep_assert_held(&txn->t_domain->j_lock);
	txn->t_locked = true;
	lanefs_slots_close(txn->t_domain);
}

/* Waits until the handles of a locked transaction have ended. What they did is seen then. */
void lanefs_txn_drain(struct lanefs_txn *txn)
{
	struct lanefs_domain *domain = txn->t_domain;

	wait_event(domain->j_wait_drained, !READ_ONCE(txn->t_handles) && !lanefs_slots_busy(domain));
	/* The last one that was counted in the transaction ended under the lock. */
	spin_lock(&domain->j_lock);
	spin_unlock(&domain->j_lock);
}

/* Gives up the running transaction, if there is one, when its handles have ended. */
static void lanefs_running_drop(struct lanefs_domain *domain)
{
	struct lanefs_txn *txn;

	spin_lock(&domain->j_lock);
	txn = domain->j_running;
	if (txn)
		lanefs_txn_lock(txn);
	spin_unlock(&domain->j_lock);
	if (!txn)
		return;
	lanefs_txn_drain(txn);
	spin_lock(&domain->j_lock);
	WRITE_ONCE(domain->j_running, NULL);
	WRITE_ONCE(domain->j_running_seq, 0);
	spin_unlock(&domain->j_lock);
	lanefs_txn_drop(txn);
}

/*
 * The log was checkpointed and is empty, or the file system was aborted. An fsync may still be
 * about to commit, looking at the log, or making what is in there stable.
 */
void lanefs_journal_stop(struct lanefs_domain *domain)
{
	struct lanefs_txn *txn, *next;
	LIST_HEAD(log);

	if (domain->j_commit_task)
		kthread_stop(domain->j_commit_task);
	if (domain->j_checkpoint_task)
		kthread_stop(domain->j_checkpoint_task);
	domain->j_commit_task = NULL;
	domain->j_checkpoint_task = NULL;
	mutex_lock(&domain->j_commit_mutex);
	mutex_lock(&domain->j_stable_mutex);
	spin_lock(&domain->j_lock);
	list_splice_init(&domain->j_log, &log);
	spin_unlock(&domain->j_lock);
	list_for_each_entry_safe(txn, next, &log, t_node)
		lanefs_txn_drop(txn);
	mutex_unlock(&domain->j_stable_mutex);
	lanefs_running_drop(domain);
	mutex_unlock(&domain->j_commit_mutex);
}
